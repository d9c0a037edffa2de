#include "sink/view_page.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "sink/view_files.hpp"

namespace slidestream {

namespace {

/// For an HTML document's text.
std::string html_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&') {
      safe += "&amp;";
    } else if (c == '<') {
      safe += "&lt;";
    } else {
      safe += c;
    }
  }
  return safe;
}

/// A name as a part of a URL, byte by byte: those that aren't UTF-8, too.
std::string url_text(std::string_view name) {
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~";
  constexpr char digits[] = "0123456789ABCDEF";
  std::string text;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (plain.find(c) != std::string_view::npos) {
      text += c;
    } else {
      text += {'%', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return text;
}

/// JSON that may stand in a script.
std::string script_text(const nlohmann::ordered_json& json) {
  std::string safe;
  for (const char c : json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace)) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string view_page(const PyramidLayout& layout, const ImageDescription& description, const std::string& folder,
                      const std::string& partial_folder) {
  nlohmann::ordered_json image = {{"name", description.name},           {"width", layout.size(0).width},
                                  {"height", layout.size(0).height},    {"tile", layout.tile()},
                                  {"levels", layout.levels()},          {"folder", url_text(folder)},
                                  {"partial", url_text(partial_folder)}};
  if (description.mpp) image["mpp"] = *description.mpp;
  const std::vector<std::pair<std::string_view, std::string>> parts = {
      {"@title@",
       html_text(nlohmann::json::parse(
                     nlohmann::json(description.name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
                     .get<std::string>())},
      {"@leaflet-style@", std::string(leaflet_style())},
      {"@leaflet@", std::string(leaflet_script())},
      {"@licence@", html_text(leaflet_licence())},
      {"@image@", script_text(image)},
      {"@script@", std::string(view_script())}};
  std::string_view rest = view_markup();
  std::string page;
  for (const auto& [mark, text] : parts) {
    const std::size_t at = rest.find(mark);
    page += rest.substr(0, at);
    page += text;
    rest = rest.substr(at + mark.size());
  }
  return page + std::string(rest);
}

bool is_view_page(const std::filesystem::path& file) {
  std::error_code ignored;
  const auto status = std::filesystem::symlink_status(file, ignored);
  if (!std::filesystem::exists(status)) return true;
  if (!std::filesystem::is_regular_file(status)) return false;
  if (std::filesystem::file_size(file, ignored) == 0) return true;
  constexpr std::string_view mark = "<script type=\"application/json\" id=\"what\">";
  std::ifstream in(file, std::ios::binary);
  std::string line;
  while (std::getline(in, line)) {
    if (line.starts_with(mark)) return true;
  }
  return false;
}

}  // namespace slidestream
