#include "slide/tiff/aperio.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "slide/pixel_size.hpp"

namespace slidestream {
namespace {

constexpr std::string_view blanks = " \t\r\n";
constexpr std::size_t most_properties = 1000;
constexpr std::size_t most_searched = 4096;  ///< bytes of a description, for the name of an image

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string_view first_line(std::string_view text) { return trim(text.substr(0, text.find_first_of("\r\n"))); }

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// The first word of a text that names an image that is no level, in small letters. Letters alone make words.
std::string name_in(std::string_view text, bool first_word_only) {
  constexpr std::array<std::string_view, 5> names = {"label", "macro", "overview", "barcode", "thumbnail"};
  for (auto at = text.begin(); at != text.end();) {
    const auto begin = std::find_if(at, text.end(), is_letter);
    const auto end = std::find_if_not(begin, text.end(), is_letter);
    std::string word(begin, end);
    for (char& c : word) c = static_cast<char>(c | 0x20);
    const bool is_name = std::find(names.begin(), names.end(), word) != names.end();
    if (is_name || first_word_only) return is_name ? word : std::string();
    at = end;
  }
  return {};
}

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
  while (bar != std::string_view::npos && info.properties.size() < most_properties) {
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
    rest.remove_prefix(close);  // so that no text is looked through twice
  }
}

/// Images that an OME-XML text declares; 1 where the others are called label, macro and the like.
int declared_images(std::string_view xml) {
  constexpr std::string_view image = "<Image ";
  int images = 0;
  bool one_slide = true;
  for (std::size_t at = xml.find(image); at != std::string_view::npos; at = xml.find(image, at)) {
    const std::size_t end = xml.find('>', at);
    if (end == std::string_view::npos) break;
    const bool is_slide = name_in(attribute(xml.substr(at, end - at), "Name"), false).empty();
    if (is_slide != (images == 0)) one_slide = false;
    ++images;
    at = end;
  }
  return one_slide ? 1 : images;
}

void read_ome(std::string_view xml, SlideInfo& info) {
  info.format = "ome-tiff";
  read_ome_properties(xml, info);
  if (const int images = declared_images(xml); images > 1) {
    info.warnings.push_back("holds " + std::to_string(images) + " images, and one is read");
  }
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
  const auto size_along = [&](const std::string& name) -> std::optional<double> {
    const std::string_view unit = attribute(xml, name + "Unit");
    const auto known = std::ranges::find(units, unit, &Unit::name);
    const std::optional<double> size = positive(attribute(xml, name));
    if (known == units.end() || !size) return std::nullopt;
    return *size * known->micrometres;
  };
  set_pixel_size(info, size_along("PhysicalSizeX"), size_along("PhysicalSizeY"));
  info.magnification = positive(attribute(xml, "NominalMagnification"));
}

/// A whole number from 1 to 65,536; anything else is 1.
std::size_t count_of(std::string_view text) {
  const double value = positive(text).value_or(1.0);
  return value >= 1.0 && value <= 65536.0 ? static_cast<std::size_t>(value) : 1;
}

}  // namespace

OmePlanes ome_planes(std::string_view description, std::size_t samples) {
  OmePlanes planes;
  if (description.find("<OME ") == std::string_view::npos) return planes;
  std::string_view pixels = description.substr(std::min(description.find("<Pixels "), description.size()));
  pixels = pixels.substr(0, pixels.find("</Pixels>"));
  const std::string_view head = pixels.substr(0, pixels.find('>'));
  std::size_t channels = 0;
  for (std::size_t at = pixels.find("<Channel "); at != std::string_view::npos && channels < most_properties;
       at = pixels.find("<Channel ", at)) {
    const std::size_t end = pixels.find('>', at);
    // One without an end is none, and no text is looked through twice.
    if (end == std::string_view::npos) break;
    ++channels;
    const std::string_view element = pixels.substr(at, end - at);
    at = end;
    if (const std::string_view name = attribute(element, "Name"); !name.empty()) {
      planes.names.push_back(unescaped(name));
    }
  }
  if (planes.names.size() != channels) planes.names.clear();
  if (channels == 0) channels = std::max<std::size_t>(1, count_of(attribute(head, "SizeC")) / samples);
  const std::size_t others = count_of(attribute(head, "SizeZ")) * count_of(attribute(head, "SizeT"));
  planes.count = channels * others;
  return planes;
}

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

std::string associated_name(std::string_view description, DescriptionPlace place) {
  if (trim(description).starts_with('<')) return {};
  // Aperio: the line after the first begins with the name, and properties follow behind bars.
  const std::size_t end = description.find('\n');
  const bool one_line = end == std::string_view::npos;
  const std::string_view second = one_line ? description : description.substr(end + 1);
  if (place == DescriptionPlace::first_image) return name_in(second, true);
  if (description.starts_with("Aperio") && !one_line) return name_in(second.substr(0, second.find('|')), false);
  return name_in(description.substr(0, most_searched), false);
}

}  // namespace slidestream
