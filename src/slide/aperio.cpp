#include "slide/aperio.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

namespace slidestream {
namespace {

constexpr std::string_view blanks = " \t\r\n";
constexpr std::size_t most_properties = 1000;

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string_view first_line(std::string_view text) { return trim(text.substr(0, text.find_first_of("\r\n"))); }

/// A positive, finite number; anything else is none.
std::optional<double> positive(std::string_view text) {
  text = trim(text);
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value) || value <= 0.0) return std::nullopt;
  return value;
}

void read_aperio(std::string_view description, SlideInfo& info) {
  info.format = "aperio";
  std::size_t bar = description.find('|');
  while (bar != std::string_view::npos) {
    const std::size_t next = description.find('|', bar + 1);
    const std::string_view pair = description.substr(bar + 1, next == std::string_view::npos ? next : next - bar - 1);
    const std::size_t equals = pair.find('=');
    const std::string_view key = trim(pair.substr(0, equals));
    if (equals != std::string_view::npos && !key.empty()) {
      info.properties.insert_or_assign(std::string(key), std::string(trim(pair.substr(equals + 1))));
    }
    bar = next;
  }
  const auto number = [&info](const char* key) -> std::optional<double> {
    const auto found = info.properties.find(key);
    return found == info.properties.end() ? std::nullopt : positive(found->second);
  };
  info.mpp = number("MPP");
  info.magnification = number("AppMag");
}

/// The value of the first attribute with this name in XML text; empty when there is none.
std::string_view attribute(std::string_view xml, std::string_view name) {
  for (std::size_t at = xml.find(name); at != std::string_view::npos; at = xml.find(name, at + 1)) {
    const std::string_view rest = xml.substr(at + name.size());
    const bool starts = at > 0 && blanks.find(xml[at - 1]) != std::string_view::npos;
    if (!starts || rest.size() < 2 || rest[0] != '=' || rest[1] != '"') continue;
    const std::size_t end = rest.find('"', 2);
    if (end != std::string_view::npos) return rest.substr(2, end - 2);
  }
  return {};
}

/// Text of XML as it is meant.
std::string unescaped(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, char>, 5> names{
      {{"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&amp;", '&'}}};
  std::string result;
  while (!text.empty()) {
    const auto found =
        std::find_if(names.begin(), names.end(), [text](const auto& name) { return text.starts_with(name.first); });
    result += found == names.end() ? text.front() : found->second;
    text.remove_prefix(found == names.end() ? 1 : found->first.size());
  }
  return result;
}

/// What the first image of an OME-XML text is called, who made it, and the pairs of map annotations: <M
/// K="key">value</M>.
void read_ome_properties(std::string_view xml, SlideInfo& info) {
  const std::string_view root = xml.substr(std::min(xml.find("<OME "), xml.size()));
  const std::string_view image = root.substr(std::min(root.find("<Image "), root.size()));
  const auto set = [&info](const char* key, std::string_view value) {
    if (!value.empty()) info.properties.insert_or_assign(key, unescaped(value));
  };
  set("creator", attribute(root.substr(0, root.find('>')), "Creator"));
  set("name", attribute(image.substr(0, image.find('>')), "Name"));
  std::string_view rest = root;
  while (info.properties.size() < most_properties) {
    const std::size_t at = rest.find("<M K=\"");
    if (at == std::string_view::npos) return;
    rest.remove_prefix(at + 2);
    const std::size_t open = rest.find('>');
    const std::size_t close = rest.find("</M>");
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) return;
    const std::string key = unescaped(attribute(rest.substr(0, open), "K"));
    if (!key.empty()) info.properties.insert_or_assign(key, unescaped(trim(rest.substr(open + 1, close - open - 1))));
  }
}

void read_ome(std::string_view xml, SlideInfo& info) {
  info.format = "ome-tiff";
  read_ome_properties(xml, info);
  const std::string_view unit = attribute(xml, "PhysicalSizeXUnit");
  struct Unit {
    std::string_view name;
    double micrometres;
  };
  constexpr std::array<Unit, 6> units{{{"", 1.0},
                                       {"\xC2\xB5m", 1.0},  // micro sign
                                       {"\xCE\xBCm", 1.0},  // Greek mu
                                       {"nm", 1e-3},
                                       {"mm", 1e3},
                                       {"cm", 1e4}}};
  for (const Unit& known : units) {
    if (unit != known.name) continue;
    if (const auto size = positive(attribute(xml, "PhysicalSizeX"))) info.mpp = *size * known.micrometres;
  }
  info.magnification = positive(attribute(xml, "NominalMagnification"));
}

}  // namespace

void read_description(std::string_view description, SlideInfo& info) {
  const std::string_view line = first_line(description);
  // XML says nothing in its first line.
  if (!line.empty() && !line.starts_with("<?xml")) info.properties.insert_or_assign("description", std::string(line));
  if (description.starts_with("Aperio")) {
    read_aperio(description, info);
  } else if (description.find("<OME ") != std::string_view::npos) {
    read_ome(description, info);
  } else {
    info.format = "tiff";
  }
}

std::string associated_name(std::string_view description) {
  // Aperio: the line after the first begins with the name.
  const std::size_t end = description.find('\n');
  const std::string_view second = end == std::string_view::npos ? description : trim(description.substr(end + 1));
  for (const char* name : {"label", "macro", "thumbnail"}) {
    if (second.starts_with(name)) return name;
  }
  return {};
}

}  // namespace slidestream
