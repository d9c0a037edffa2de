#include "report/page.hpp"

#include <array>
#include <random>
#include <utility>

#include "report/page_files.hpp"

namespace slidestream::report {

namespace {

/// Scripts and styles of the page carry a number that nobody can know beforehand, and the browser runs no others: text
/// that found its way into the markup would stay text.
std::string fresh_nonce() {
  std::random_device device;
  std::string nonce;
  for (int i = 0; i < 4; ++i) {
    std::uint32_t bits = device();
    for (int digit = 0; digit < 8; ++digit, bits >>= 4) nonce += "0123456789abcdef"[bits & 15];
  }
  return nonce;
}

}  // namespace

std::string script_safe(std::string_view json) {
  // In JSON it stands in strings alone.
  std::string safe;
  safe.reserve(json.size() + json.size() / 64);
  for (const char c : json) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string html_text(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t at) {
      return at < bytes.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at])) : 0U;
    };
    const std::uint32_t three = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    text += digits[three >> 18];
    text += digits[three >> 12 & 63];
    text += i + 1 < bytes.size() ? digits[three >> 6 & 63] : '=';
    text += i + 2 < bytes.size() ? digits[three & 63] : '=';
  }
  return text;
}

std::size_t empty_page_size() { return page("{}").size(); }

std::string page(std::string_view json) {
  const std::array<std::pair<std::string_view, std::string>, 6> parts = {{
      {"@nonce@", fresh_nonce()},
      {"@style@", std::string(page_style())},
      {"@chart@", std::string(chart_script())},
      {"@script@", std::string(page_script())},
      {"@licence@", html_text(chart_licence())},
      {"@data@", script_safe(json)},
  }};
  // In one walk over the page's own text, so that what a part holds is never looked into.
  std::string_view rest = page_markup();
  std::string html;
  while (!rest.empty()) {
    std::size_t at = rest.size();
    const std::pair<std::string_view, std::string>* first = nullptr;
    for (const auto& part : parts) {
      if (const std::size_t found = rest.find(part.first); found < at) {
        at = found;
        first = &part;
      }
    }
    html += rest.substr(0, at);
    rest.remove_prefix(at);
    if (first == nullptr) continue;
    html += first->second;
    rest.remove_prefix(first->first.size());
  }
  return html;
}

}  // namespace slidestream::report
