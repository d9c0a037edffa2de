#include "config/bounded_json.hpp"

#include <doctest/doctest.h>

#include <istream>
#include <nlohmann/json.hpp>
#include <slidestream/error.hpp>
#include <sstream>
#include <string>
#include <string_view>

using namespace slidestream;

namespace {

std::string read(BoundedJson& json) {
  std::string text;
  for (auto c = json.sbumpc(); c != std::streambuf::traits_type::eof(); c = json.sbumpc()) {
    text += static_cast<char>(c);
  }
  return text;
}

std::string error_of(const std::string& text) {
  try {
    BoundedJson json(text);
    read(json);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

const std::string refused = "has a text, a number or a gap of more than 1 MiB at byte ";
constexpr std::size_t too_many = BoundedJson::most_bytes + 1;

}  // namespace

TEST_CASE("JSON is passed on as it is, however much of it there is") {
  std::string text = "[";
  for (int i = 0; text.size() < 3 * BoundedJson::most_bytes; ++i) {
    text += R"({"a\\": "\"b\\\"", "c)" + std::to_string(i) + R"(": [true, -1.5e+3, null]}, )";
  }
  text += "0]";
  BoundedJson of_text(text);
  CHECK(read(of_text) == text);
  std::istringstream stream(text);
  BoundedJson of_stream(*stream.rdbuf());
  CHECK(read(of_stream) == text);
  CHECK(error_of("\"" + std::string(BoundedJson::most_bytes - 2, 'a') + "\"").empty());
  // Numbers alone, too.
  std::string numbers = "[";
  while (numbers.size() < 2 * BoundedJson::most_bytes) numbers += "12,-3.5e2, 0,";
  CHECK(error_of(numbers).empty());
}

TEST_CASE("A zero byte isn't the end of JSON") {
  for (const char* const rest : {"", " ", "]"}) {
    CAPTURE(rest);
    const std::string text = std::string("[1]") + '\0' + rest;
    BoundedJson json(text);
    std::istream in(&json);
    CHECK_FALSE(nlohmann::json::accept(in));
  }
  BoundedJson sound(std::string_view("[1] "));
  std::istream in(&sound);
  CHECK(nlohmann::json::accept(in));
}

TEST_CASE("A text, a number or a gap that is too long is refused where it begins") {
  CHECK(error_of("[1, \"" + std::string(too_many, 'a')) == refused + "5");
  CHECK(error_of("[1, \"" + std::string(too_many, '\\')) == refused + "5");
  CHECK(error_of("{\"b\": \"\\\"" + std::string(too_many, 'a') + "\"}") == refused + "7");
  CHECK(error_of("[1, " + std::string(too_many, '7') + "]") == refused + "5");
  CHECK(error_of("[12" + std::string(too_many, ' ') + "]") == refused + "2");
  CHECK(error_of(std::string(too_many, '[')) == refused + "1");
}

TEST_CASE("Of an object, members that are asked for are read") {
  const auto found =
      members_of(R"({"a": 1, "b": {"c": [1, "x"]}, "d": {"a": 2}, "a": 3, "e": [{"b": 4}]})", {"a", "b"});
  CHECK(found == nlohmann::ordered_json::parse(R"({"a": 3, "b": {"c": [1, "x"]}})"));
  for (const char* const text : {"", "[]", "3", "{\"a\": 1", "{\"a\": 1}}", "{\"b\": 1e999}"}) {
    CHECK_MESSAGE(members_of(text, {"a"}) == nlohmann::ordered_json::object(), text);
  }
}

TEST_CASE("Members that are larger than a run writes them count as none") {
  const auto none = nlohmann::ordered_json::object();
  std::string list = "[0";
  for (int i = 0; i < 10'000; ++i) list += ",0";
  list += "]";
  CHECK(members_of("{\"a\": " + list + ", \"b\": 1}", {"a", "b"}) == none);
  CHECK(members_of("{\"a\": " + list + ", \"b\": 1}", {"b"}) == nlohmann::ordered_json::parse("{\"b\": 1}"));
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  CHECK(members_of("{\"a\": " + deep + "}", {"a"}) == none);
  CHECK(members_of("{\"a\": " + deep + "}", {"b"}) == none);
  const std::string half = "\"" + std::string(BoundedJson::most_bytes / 2, 'a') + "\"";
  CHECK(members_of("{\"a\": [" + half + "," + half + "," + half + "]}", {"a"}) == none);
}
