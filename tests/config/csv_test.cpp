#include "config/csv.hpp"

#include <doctest/doctest.h>

#include <slidestream/error.hpp>

using namespace slidestream;

namespace {

using Fields = std::vector<std::string>;

std::vector<Fields> fields_of(std::string_view text) {
  std::vector<Fields> all;
  for (CsvRecord& record : parse_csv(text, "x.csv")) all.push_back(std::move(record.fields));
  return all;
}

}  // namespace

TEST_CASE("CSV as RFC 4180 has it") {
  CHECK(fields_of("").empty());
  CHECK(fields_of("\r\n\n\r").empty());
  CHECK(fields_of("a,b\nc,d\n") == std::vector<Fields>{{"a", "b"}, {"c", "d"}});
  CHECK(fields_of("a,b\r\nc,d") == std::vector<Fields>{{"a", "b"}, {"c", "d"}});
  CHECK(fields_of("a\rb\r\rc") == std::vector<Fields>{{"a"}, {"b"}, {"c"}});
  CHECK(fields_of("\xef\xbb\xbf"
                  "a,b") == std::vector<Fields>{{"a", "b"}});
  CHECK(fields_of(",\n") == std::vector<Fields>{{"", ""}});
  CHECK(fields_of("a,") == std::vector<Fields>{{"a", ""}});
  CHECK(fields_of("\"a,b\",\"c\"\"d\",\"e\r\nf\"\r\n\"\",g\n") ==
        std::vector<Fields>{{"a,b", "c\"d", "e\r\nf"}, {"", "g"}});
  CHECK(fields_of("a b, c\"d\n") == std::vector<Fields>{{"a b", " c\"d"}});
}

TEST_CASE("CSV records know their lines") {
  const auto records = parse_csv("a\n\n\"b\nc\"\r\nd", "x.csv");
  REQUIRE(records.size() == 3);
  CHECK(records[0].line == 1);
  CHECK(records[1].line == 3);
  CHECK(records[2].line == 5);
}

TEST_CASE("CSV that isn't") {
  CHECK_THROWS_WITH_AS(parse_csv("a\n\"b\n\n", "x.csv"), "x.csv:2: a quote is opened and never closed", ConfigError);
  CHECK_THROWS_WITH_AS(parse_csv("\"a\"b\n", "x.csv"),
                       "x.csv:1: text after a closing quote; expected a comma or a new line", ConfigError);
}

TEST_CASE("text for spreadsheets is no formula and steers no terminal") {
  CHECK(spreadsheet_text("=1+1") == "'=1+1");
  CHECK(spreadsheet_text("@a") == "'@a");
  CHECK(spreadsheet_text("+a") == "'+a");
  CHECK(spreadsheet_text("-a") == "'-a");
  CHECK(spreadsheet_text("\ta") == "' a");
  CHECK(spreadsheet_text("a\x1b[31m") == "a [31m");
  for (const char* same : {"", "-1.5e-3", "12", "a=b", "slide.svs"}) CHECK(spreadsheet_text(same) == same);
}

TEST_CASE("a record of CSV has as many fields as tables have, and no more") {
  const std::string all(most_csv_fields - 1, ',');
  CHECK(parse_csv("a\n" + all + "\n", "x.csv").at(1).fields.size() == most_csv_fields);
  CHECK_THROWS_WITH_AS(parse_csv("a\n" + all + ",\n", "x.csv"), "x.csv:2: more than 65536 fields in one record",
                       ConfigError);
}

TEST_CASE("a record of CSV has so many bytes, and no more") {
  const std::string all(most_csv_bytes, 'a');
  CHECK(parse_csv("a\n" + all + "\n", "x.csv").at(1).fields.front().size() == most_csv_bytes);
  // In one field, in several, in quotes, and over several lines.
  for (const std::string& record : {all + "a", "a," + all, "\"" + all + "\"", "\"\n\n" + all + "\""}) {
    CHECK_THROWS_WITH_AS(parse_csv("a\n" + record + "\n", "x.csv"), "x.csv:2: more than 16 MiB in one record",
                         ConfigError);
  }
}
