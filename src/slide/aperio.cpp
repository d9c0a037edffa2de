#include "slide/aperio.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace slidestream {
namespace {

constexpr std::string_view blanks = " \t\r\n";

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

void read_ome(std::string_view xml, SlideInfo& info) {
  info.format = "ome-tiff";
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
  if (!line.empty()) info.properties.insert_or_assign("description", std::string(line));
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
