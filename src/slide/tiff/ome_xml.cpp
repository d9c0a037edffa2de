#include "slide/tiff/ome_xml.hpp"

#include <algorithm>
#include <array>
#include <pugixml.hpp>
#include <tuple>
#include <utility>

#include "config/positive_number.hpp"
#include "config/quoted_text.hpp"
#include "image/label_names.hpp"
#include "slide/number_text.hpp"
#include "slide/tiff/ome_image_reader.hpp"
#include "slide/tiff/pyramid.hpp"
#include "slide/tiff/xml_nodes.hpp"

namespace slidestream {
namespace {

using xml::attribute_of;
using xml::child_of;
using xml::for_each_element;
using xml::has_attribute;
using xml::is_named;

constexpr std::size_t most_ome_properties = 1000;

/// Letters alone, as OME's schema has them.
std::string shown_attribute(std::string_view name) {
  constexpr std::size_t longest = 40;
  const bool is_shown = name.size() <= longest && std::ranges::all_of(name, [](char c) {
                          return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == ':';
                        });
  return is_shown ? std::string(name) : "an attribute of an unknown name";
}

struct ObjectiveOfXml {
  std::string_view id;
  std::string_view instrument;
  std::string_view magnification;
};

class OmeReader {
 public:
  OmeReader(const pugi::xml_node& root, SlideInfo& info) : root_(root), info_(info) {}

  /// \param meant  the slide's image, where the file tells
  OmeXml read(OmeImageReader images, std::optional<std::size_t> meant) {
    std::vector<pugi::xml_node> nodes;
    for (const pugi::xml_node& child : root_.children()) {
      if (is_named(child, "Image")) nodes.push_back(child);
    }
    // Pixels without an Image around them are written, too.
    if (nodes.empty() && child_of(root_, "Pixels")) nodes.push_back(root_);
    for (const pugi::xml_node& node : nodes) result_.images.push_back(images.read(node));
    if (meant) result_.slide = *meant;
    if (!nodes.empty() && !meant) choose_slide();
    read_properties(nodes);
    info_.labels = holds_labels();
    if (nodes.empty()) {
      info_.warnings.push_back(child_of(root_, "BinaryOnly") ? "its OME-XML lies in another file, which isn't read"
                                                             : "its OME-XML declares no image");
      return std::move(result_);
    }
    count_images();
    const OmeImage& slide = result_.images[result_.slide];
    for (const char axis : slide.from_one) {
      info_.warnings.push_back(std::string("its OME-XML counts First") + axis + " from 1: planes are counted from 0");
    }
    for (const std::string& line : {slide.placed_twice, slide.shared}) {
      if (!line.empty()) info_.warnings.push_back(line);
    }
    compare_rivals(nodes);
    warn_of_repeated_attribute();
    warn_of_further_pixels(nodes[result_.slide]);
    compare_type(child_of(nodes[result_.slide], "Pixels"));
    if (may_be_another(nodes)) return std::move(result_);
    read_pixel_size(nodes[result_.slide]);
    read_magnification(nodes[result_.slide]);
    return std::move(result_);
  }

 private:
  static double area_of(const OmeImage& image) {
    return static_cast<double>(image.width) * static_cast<double>(image.height);
  }

  /// An image without directories here is the slide only if none has them but labels and the like. A macro image may be
  /// larger than a slide of a small region, but has another shape. What has the shape of the others and is the largest
  /// is no such image, whatever it is called.
  void choose_slide() {
    std::vector<OmeImage>& images = result_.images;
    const auto may_be_slide = [](const OmeImage& i) { return i.associated.empty(); };
    const auto is_here = [&](const OmeImage& i) { return may_be_slide(i) && !i.directories.empty(); };
    const bool are_here = std::ranges::any_of(images, is_here);
    const auto rank = [are_here](const OmeImage& i) {
      return std::tuple(!are_here || !i.directories.empty(), area_of(i), i.associated.empty());
    };
    const auto largest =
        std::ranges::max_element(images, [&](const OmeImage& a, const OmeImage& b) { return rank(a) < rank(b); });
    const auto declared =
        std::ranges::find_if(images, [&](const OmeImage& i) { return may_be_slide(i) && (!are_here || i.has_pixels); });
    const auto first = are_here ? std::ranges::find_if(images, is_here) : declared;
    if (first != declared) result_.absent = static_cast<std::size_t>(declared - images.begin());
    const bool has_shape =
        first == images.end() || has_shape_of({largest->width, largest->height}, {first->width, first->height});
    const bool is_slide = !largest->associated.empty() && !largest->directories.empty() && has_shape;
    if (!is_slide) {
      if (first != images.end()) result_.slide = static_cast<std::size_t>(first - images.begin());
      return;
    }
    result_.slide = static_cast<std::size_t>(largest - images.begin());
    if (images.size() > 1 && area_of(*largest) > 0.0) {
      info_.warnings.push_back("its largest image is read as the slide, though its OME-XML calls it " +
                               largest->associated);
    }
    largest->associated.clear();
  }

  void count_images() {
    const OmeImage& slide = result_.images[result_.slide];
    // Those of other files, and those without pixels, aren't held.
    const auto is_absent = [](const OmeImage& i) { return i.is_placed && i.directories.empty(); };
    const bool are_absent = std::ranges::all_of(result_.images, is_absent);
    const auto is_held = [&](const OmeImage& i) {
      return &i == &slide || (are_absent ? !i.lies_elsewhere : !is_absent(i));
    };
    const auto held = std::ranges::count_if(result_.images, is_held);
    const auto slides =
        std::ranges::count_if(result_.images, [&](const OmeImage& i) { return i.associated.empty() && is_held(i); });
    const double area = area_of(slide);
    const bool is_largest = area == 0.0 || std::ranges::none_of(result_.images, [&](const OmeImage& i) {
                              return is_held(i) && area_of(i) > area;
                            });
    if (slides < 2 && is_largest) return;
    info_.warnings.push_back("holds " + std::to_string(held) + " images, and one is read" +
                             (is_largest ? "" : ", which isn't the largest"));
  }

  /// What the Pixels of an image say, in any valid unit.
  static SaidPixelSize size_of_pixels(const pugi::xml_node& image) {
    const pugi::xml_node pixels = child_of(image, "Pixels");
    const auto along = [&](const std::string& name) -> std::optional<double> {
      const std::optional<double> size = positive_number(attribute_of(pixels, name));
      const std::optional<double> unit = micrometres_of(attribute_of(pixels, name + "Unit"));
      return size && unit ? std::optional(*size * *unit) : std::nullopt;
    };
    return {along("PhysicalSizeX"), along("PhysicalSizeY")};
  }

  /// Another image may name the directory that is read.
  void compare_rivals(const std::vector<pugi::xml_node>& images) {
    const OmeImage& slide = result_.images[result_.slide];
    if (slide.directories.empty()) return;
    const std::size_t read = slide.directories.begin()->second;
    const std::string name = "image " + std::to_string(result_.slide) + " of its OME-XML";
    for (std::size_t i = 0; i < images.size(); ++i) {
      const auto& directories = result_.images[i].directories;
      if (i == result_.slide || directories.empty() || directories.begin()->second != read) continue;
      const std::size_t before = info_.warnings.size();
      compare_pixel_sizes(info_, size_of_pixels(images[result_.slide]), name, size_of_pixels(images[i]),
                          "image " + std::to_string(i) + " of the same directory");
      if (info_.warnings.size() > before) return;
    }
  }

  /// Where all Images lie in other files, this one may be any of them that has the slide's size. Those of different
  /// pixel sizes get a line, and nothing of the slide's is known.
  bool may_be_another(const std::vector<pugi::xml_node>& images) {
    const OmeImage& slide = result_.images[result_.slide];
    if (!slide.lies_elsewhere) return false;
    const SaidPixelSize said = size_of_pixels(images[result_.slide]);
    for (std::size_t i = 0; i < images.size(); ++i) {
      const OmeImage& other = result_.images[i];
      const bool is_as_large = other.width == slide.width && other.height == slide.height;
      if (!other.lies_elsewhere || !other.associated.empty() || !is_as_large) continue;
      if (!are_contrary(said, size_of_pixels(images[i]))) continue;
      const auto [first, last] = std::minmax(result_.slide, i);
      info_.warnings.push_back("which Image this file is isn't known: its OME-XML names other files, and images " +
                               std::to_string(first) + " and " + std::to_string(last) +
                               " differ in pixel size: pixel size, magnification and name don't count");
      info_.properties.erase("name");
      return true;
    }
    return false;
  }

  /// XML allows each attribute once, and the parser doesn't mind.
  void warn_of_repeated_attribute() {
    std::string_view found;
    std::vector<std::string_view> names;
    for_each_element(root_, [&](const pugi::xml_node& node) {
      if (!found.empty()) return;
      names.clear();
      for (const pugi::xml_attribute& attribute : node.attributes()) names.emplace_back(attribute.name());
      std::ranges::sort(names);
      if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) found = *twice;
    });
    if (found.empty()) return;
    info_.warnings.push_back("an element of its OME-XML has " + shown_attribute(found) + " twice: the first counts");
  }

  void warn_of_further_pixels(const pugi::xml_node& image) {
    const auto is_pixels = [](const pugi::xml_node& child) { return is_named(child, "Pixels"); };
    const auto count = std::ranges::count_if(image.children(), is_pixels);
    if (count < 2) return;
    info_.warnings.push_back("the slide's Image in its OME-XML has " + std::to_string(count) +
                             " Pixels: the first counts");
  }

  /// What the slide's image is called, who made it, and the pairs of map annotations: <M K="key">value</M>.
  void read_properties(const std::vector<pugi::xml_node>& images) {
    const auto set = [this](std::string_view key, std::string_view value) {
      if (!value.empty()) info_.properties.insert_or_assign(std::string(key), std::string(value));
    };
    set("creator", attribute_of(root_, "Creator"));
    if (!images.empty() && images[result_.slide] != root_) set("name", attribute_of(images[result_.slide], "Name"));
    for_each_element(root_, [this](const pugi::xml_node& node) {
      if (!is_named(node, "M") || info_.properties.size() >= most_ome_properties) return;
      const std::string_view key = attribute_of(node, "K");
      if (!key.empty()) info_.properties.insert_or_assign(std::string(key), std::string(trimmed(node.child_value())));
    });
  }

  /// Whether the slide's image is one of labels that this program wrote.
  bool holds_labels() const {
    if (result_.images.empty()) return false;
    const OmeImage& image = result_.images[result_.slide];
    if (image.channels.size() != 1) return false;
    if (std::ranges::find(label_channels, std::string_view(image.channels[0])) == label_channels.end()) return false;
    bool is_own = false;
    for_each_element(root_, [&is_own](const pugi::xml_node& node) {
      is_own = is_own || (is_named(node, "MapAnnotation") && attribute_of(node, "Namespace") == own_annotation);
    });
    return is_own;
  }

  /// Samples of all that is read have 8 bits: other slides are refused by their tags.
  void compare_type(const pugi::xml_node& pixels) {
    constexpr std::array<std::string_view, 11> known = {
        "int8", "int16", "int32", "uint8", "uint16", "uint32", "float", "double", "complex", "double-complex", "bit"};
    const std::string_view type = attribute_of(pixels, "Type");
    if (type.empty() || type == "uint8") return;
    const bool is_known = std::ranges::find(known, type) != known.end();
    info_.warnings.push_back("its OME-XML says that Type is " + (is_known ? std::string(type) : unknown_value) +
                             ", and its samples have 8 bits: the tags count");
  }

  void read_pixel_size(const pugi::xml_node& image) {
    const pugi::xml_node pixels = child_of(image, "Pixels");
    const bool is_at_pixels = has_attribute(pixels, "PhysicalSizeX") || has_attribute(pixels, "PhysicalSizeY");
    const bool is_at_image = has_attribute(image, "PixelSizeX") || has_attribute(image, "PixelSizeY");
    // As in the schema of 2003, which has no units.
    const bool is_of_2003 = is_at_image && !is_at_pixels;
    const auto along = [&](char axis) -> std::optional<double> {
      const std::string name = std::string(is_of_2003 ? "PixelSize" : "PhysicalSize") + axis;
      const std::optional<double> size = said_number(attribute_of(is_of_2003 ? image : pixels, name), name, info_);
      if (!size || is_of_2003) return size;
      const std::string_view unit = attribute_of(pixels, name + "Unit");
      const std::optional<double> micrometres = micrometres_of(unit);
      if (!micrometres) {
        info_.warnings.push_back(name + "Unit is " + quoted_ome_unit(unit) + ", no unit of length: " + name +
                                 " is passed over");
        return std::nullopt;
      }
      return *size * *micrometres;
    };
    const std::optional<double> x = along('X');
    const std::string_view what_x = is_of_2003 ? "PixelSizeX" : "PhysicalSizeX";
    const std::string_view what_y = is_of_2003 ? "PixelSizeY" : "PhysicalSizeY";
    result_.pixel_size = said_pixel_sizes({x, along('Y')}, what_x, what_y, info_);
  }

  static std::string_view magnification_of(const pugi::xml_node& objective) {
    for (const char* name : {"NominalMagnification", "CalibratedMagnification"}) {
      if (const std::string_view value = attribute_of(objective, name); !value.empty()) return value;
      // Before 2012 it was an element.
      if (const pugi::xml_node element = child_of(objective, name)) return element.child_value();
    }
    return {};
  }

  void read_magnification(const pugi::xml_node& image) {
    std::vector<ObjectiveOfXml> objectives;
    for_each_element(root_, [&](const pugi::xml_node& node) {
      if (!is_named(node, "Objective")) return;
      objectives.push_back({attribute_of(node, "ID"), attribute_of(node.parent(), "ID"), magnification_of(node)});
    });
    std::string_view id;
    for (const char* name : {"ObjectiveSettings", "ObjectiveRef", "ObjectiveSettingsRef"}) {
      if (id.empty()) id = attribute_of(child_of(image, name), "ID");
    }
    const auto keep = [&](auto&& is_meant) {
      if (std::ranges::any_of(objectives, is_meant)) std::erase_if(objectives, std::not_fn(is_meant));
    };
    if (!id.empty()) {
      std::erase_if(objectives, [&](const ObjectiveOfXml& o) { return o.id != id; });
      if (objectives.empty()) {
        info_.warnings.push_back("ObjectiveSettings names " + quoted_ome_id(id, "Objective:") +
                                 ", which its OME-XML doesn't have");
        return;
      }
    } else if (const std::string_view instrument = attribute_of(child_of(image, "InstrumentRef"), "ID");
               !instrument.empty()) {
      keep([&](const ObjectiveOfXml& o) { return o.instrument == instrument; });
    }
    if (objectives.empty()) return;
    const std::string_view first = objectives.front().magnification;
    if (std::ranges::any_of(objectives, [&](const ObjectiveOfXml& o) { return o.magnification != first; })) {
      info_.warnings.push_back("its OME-XML lists " + std::to_string(objectives.size()) +
                               " objectives and doesn't say which is the slide's");
      return;
    }
    info_.magnification = said_number(first, "NominalMagnification", info_);
  }

  const pugi::xml_node root_;
  SlideInfo& info_;
  OmeXml result_;
};

}  // namespace

std::optional<std::size_t> OmeXml::image_at(std::size_t directory, std::uint64_t width, std::uint64_t height) const {
  for (std::size_t i = 0; i < images.size(); ++i) {
    const OmeImage& image = images[i];
    const bool is_as_large = image.width == width && image.height == height;
    if (i == slide || !is_as_large || image.directories.empty()) continue;
    if (image.directories.begin()->second == directory) return i;
  }
  return std::nullopt;
}

std::optional<OmeXml> read_ome_xml(std::string_view description, const std::vector<OmeDirectory>& main,
                                   const std::string& file_name, SlideInfo& info, std::optional<std::size_t> meant) {
  const std::size_t begin = description.find('<');
  if (begin == std::string_view::npos || description.find("OME") == std::string_view::npos) return std::nullopt;
  // A byte order mark, blanks, and a line of somebody else's before it.
  const std::string_view text = description.substr(begin);
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
  const pugi::xml_node root = document.document_element();
  if (!is_named(root, "OME")) return std::nullopt;
  info.format = "ome-tiff";
  if (!parsed) {
    info.warnings.push_back("its OME-XML is damaged at byte " +
                            std::to_string(begin + static_cast<std::size_t>(parsed.offset)) + " (" +
                            parsed.description() + "): nothing of it is used");
    OmeXml damaged;
    damaged.is_damaged = true;
    return damaged;
  }
  return OmeReader(root, info).read({root, main, file_name}, meant);
}

}  // namespace slidestream
