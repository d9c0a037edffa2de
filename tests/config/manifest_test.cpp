#include "config/manifest.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <slidestream/error.hpp>
#include <string>
#include <vector>

#include "runtime/machine.hpp"

namespace slidestream::test {

namespace {

using Lines = std::vector<std::string>;

std::vector<ManifestLine> entries_of(const std::string& text, Lines& warnings) {
  return csv_entries(
      text, "list.csv", [](const std::string& cell) { return cell.ends_with(".svs"); }, warnings);
}

}  // namespace

TEST_CASE("a CSV's column mpp may have micrometres per pixel in brackets behind its name") {
  for (const char* name :
       {"MPP (um/px)", "mpp(um/px)", "mpp [UM/PX]", "Mpp (\xc2\xb5m/px)", "mpp (\xce\xbcm/pixel)", "mpp (\xb5m/px)",
        "mpp (um / pixel)", "mpp (microns per pixel)", "mpp (Micrometres/Pixels)"}) {
    CAPTURE(name);
    for (const char* separator : {",", ";", "\t", "|"}) {
      CAPTURE(separator);
      Lines warnings;
      const auto entries =
          entries_of(std::string("wsi") + separator + name + "\na.svs" + separator + "0.5\n", warnings);
      REQUIRE(entries.size() == 1);
      CHECK(entries[0].path == "a.svs");
      CHECK(entries[0].mpp == 0.5);
      CHECK(warnings == Lines{"list.csv: the slides are those of column 'wsi'"});
    }
  }
  Lines warnings;
  CHECK_THROWS_WITH_AS(entries_of("path,mpp,mpp (um/px)\na.svs,0.5,0.25\n", warnings),
                       "list.csv: columns 'mpp' and 'mpp (um/px)' are both sizes of pixels; expected one", ConfigError);
}

TEST_CASE("a CSV's header isn't repeated where it may be the path of a slide") {
  Lines warnings;
  CHECK(entries_of("mpp 0 DOE JANE\na.svs\n", warnings).size() == 1);
  CHECK(warnings ==
        Lines{"list.csv: line 1 is taken for a header without a column path; the slides are those of column 1"});
  warnings.clear();
  CHECK(entries_of("sep=,\n\nid,image\n1,a.svs\n", warnings).size() == 1);
  CHECK(warnings ==
        Lines{"list.csv: line 3 is taken for a header without a column path; the slides are those of column 2"});
}

TEST_CASE("a CSV's first line is a slide where its first cell is a path, also if nothing is there") {
  for (const std::string first :
       {"/mnt/pacs/series1", "series/1", "..\\series1", "C:\\series1", "archive/case.svs;x", "archive/case.svs\tx",
        "case-1.svs;note", "case-1.svs\tnote", "case-1.svs|note", " case-1.svs ;note", " case-1.svs "}) {
    CAPTURE(first);
    Lines warnings;
    const auto entries = entries_of(first + "\nb.svs\n", warnings);
    REQUIRE(entries.size() == 2);
    CHECK(entries[0].path == first);
    CHECK(warnings.empty());
  }
}

TEST_CASE("a slash in a unit or in a later cell leaves a CSV its header") {
  for (const std::string& header :
       {std::string("um/px,image"), std::string("MPP (um/px),image"), std::string("id,sex (m/f)")}) {
    CAPTURE(header);
    Lines warnings;
    const auto entries = entries_of(header + "\n0.5,b.svs\n", warnings);
    REQUIRE(entries.size() == 1);
    CHECK(entries[0].path == "b.svs");
    CHECK(entries[0].mpp == (header.starts_with("MPP") ? 0.5 : 0.0));
  }
}

TEST_CASE("a line of a CSV with more columns than a table has is named") {
  for (const char separator : {',', ';', '\t', '|'}) {
    CAPTURE(separator);
    Lines warnings;
    const std::string header = "path" + std::string(most_csv_fields, separator);
    CHECK_THROWS_WITH_AS(
        list_reader("sep=" + std::string(1, separator) + "\n" + header + "\na.svs\n", "list.csv").next(),
        "list.csv:2: more than 65536 fields in one record", ConfigError);
    // Without a separator that can be found, a semicolon, tab or bar is part of the one cell.
    if (separator != ',') continue;
    CHECK_THROWS_WITH_AS(entries_of(header + "\na.svs\n", warnings), "list.csv:1: more than 65536 fields in one record",
                         ConfigError);
  }
}

TEST_CASE("blank columns at the end of a header are counted once, whatever the number of lines") {
  std::string text = "path" + std::string(most_csv_fields - 1, ',') + "\n";
  constexpr std::size_t lines = 100'000;
  for (std::size_t i = 0; i < lines; ++i) text += "a.svs\n";
  Lines warnings;
  // Looked at for each line, they would take minutes.
  CHECK(entries_of(text, warnings).size() == lines);
  CHECK(warnings.empty());
}

#ifndef SLIDESTREAM_SANITIZED  // sanitizers keep memory of their own
TEST_CASE("a header of any length takes no memory beyond a record's") {
  const std::string long_name(std::size_t{40} << 20, 'a');
  for (const std::string& text : {"path," + long_name + "\na.svs,1\n", "path;\"" + long_name + "\"\na.svs;1\n"}) {
    Lines warnings;
    if (!runtime::reset_peak_memory()) return;
    const std::uint64_t before = runtime::peak_memory().value_or(0);
    CHECK_THROWS_WITH_AS(entries_of(text, warnings), "list.csv:1: more than 16 MiB in one record", ConfigError);
    CHECK(runtime::peak_memory().value_or(0) - before < (std::uint64_t{64} << 20));
  }
}

TEST_CASE("blank cells of a CSV take no memory beyond their record") {
  const std::string cells(most_csv_fields - 1, ',');
  std::string text = "path" + cells + "\n";
  constexpr std::size_t lines = 100;
  for (std::size_t i = 0; i < lines; ++i) text += "a.svs" + cells + "\n";
  Lines warnings;
  if (!runtime::reset_peak_memory()) return;
  const std::uint64_t before = runtime::peak_memory().value_or(0);
  CHECK(entries_of(text, warnings).size() == lines);
  CHECK(runtime::peak_memory().value_or(0) - before < (std::uint64_t{64} << 20));
}
#endif

TEST_CASE("a long cell of signs for micro is no unit") {
  std::string cell;
  for (int i = 0; i < 1'000'000; ++i) cell += "\xc2\xb5";
  Lines warnings;
  CHECK(entries_of("path," + cell + "\na.svs,1\n", warnings).size() == 1);
  CHECK(warnings.empty());
}

TEST_CASE("lines with # before a CSV's known header are comments") {
  for (const char* comments : {"# slides\n", "#a,b;c\n#\n\n# \"d\n", "\xef\xbb\xbf# slides\r\n\r\n"}) {
    for (const char* separator : {",", ";"}) {
      CAPTURE(comments);
      Lines warnings;
      const auto entries =
          entries_of(std::string(comments) + "path" + separator + "mpp\na.svs" + separator + "0.5\n", warnings);
      REQUIRE(entries.size() == 1);
      CHECK(entries[0].path == "a.svs");
      CHECK(entries[0].mpp == 0.5);
      CHECK(warnings == Lines{});
    }
  }
  // Lines keep their numbers.
  Lines warnings;
  CHECK(entries_of("# a\n# b\npath,mpp\na.svs,0.5\n", warnings)[0].line == 4);
  CHECK(entries_of("\r\n# a\r\n\r# b\rpath,mpp\na.svs,0.5\n", warnings)[0].line == 6);
  // A header may begin with #, and so may a slide.
  CHECK(entries_of("#id,mpp\na.svs,0.5\n", warnings)[0].mpp == 0.5);
  const auto slides = entries_of("#1.svs\n#2.svs\n", warnings);
  REQUIRE(slides.size() == 2);
  CHECK(slides[0].path == "#1.svs");
  CHECK(slides[1].path == "#2.svs");
}

}  // namespace slidestream::test
