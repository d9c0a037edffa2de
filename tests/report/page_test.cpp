#include "report/page.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace slidestream::report;

namespace {

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

}  // namespace

TEST_CASE("nothing in the data ends its script element or begins a comment") {
  const std::string hostile = "</script><!-- <script>alert(1)</SCRIPT> <img src=x onerror=alert(1)> & \xe2\x80\xa8";
  const std::string safe = script_safe(nlohmann::json({{hostile, hostile}}).dump());
  CHECK(safe.find('<') == std::string::npos);
  CHECK(nlohmann::json::parse(safe)[hostile] == hostile);
}

TEST_CASE("text between tags stays text") { CHECK(html_text("<b> & \"x\"") == "&lt;b&gt; &amp; \"x\""); }

TEST_CASE("base64") {
  CHECK(base64("") == "");
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64(std::string("\xff\x00\xfe", 3)) == "/wD+");
}

TEST_CASE("a page is whole, holds the library's licence, and what it holds isn't looked into") {
  // Names of the page's own marks in the data must stay what they are.
  const std::string html = page(R"({"path":"@style@ @script@ @nonce@ @data@"})");
  CHECK(html.starts_with("<!doctype html>"));
  CHECK(html.find(R"({"path":"@style@ @script@ @nonce@ @data@"})") != std::string::npos);
  CHECK(html.find("Permission is hereby granted") != std::string::npos);
  CHECK(html.find("Chart.js v3") != std::string::npos);
  // The data, the library, the page's script.
  CHECK(count_of(html, "</script>") == 3);
  CHECK(count_of(html, "src=\"http") == 0);
  CHECK(html.find("default-src 'none'") != std::string::npos);
  CHECK(html.size() ==
        empty_page_size() + std::string_view(R"({"path":"@style@ @script@ @nonce@ @data@"})").size() - 2);
}

TEST_CASE("every page has another nonce") {
  const auto nonce = [](const std::string& html) { return html.substr(html.find("'nonce-"), 40); };
  CHECK(nonce(page("{}")) != nonce(page("{}")));
}
