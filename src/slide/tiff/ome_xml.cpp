#include "slide/tiff/ome_xml.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <pugixml.hpp>
#include <tuple>
#include <utility>

#include "config/positive_number.hpp"
#include "config/quoted_text.hpp"
#include "image/label_names.hpp"
#include "slide/channels.hpp"
#include "slide/number_text.hpp"
#include "slide/tiff/aperio.hpp"
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
constexpr std::size_t most_dimension = 65536;
/// Directories that all images together name.
constexpr std::size_t most_named_directories = std::size_t{1} << 17;

/// Planes in other files, of all images.
constexpr std::size_t most_elsewhere = 4096;

/// A whole number from 1 to 65,536; anything else is 1.
std::size_t dimension(std::string_view text) {
  const double value = positive_number(text).value_or(1.0);
  return value >= 1.0 && value <= static_cast<double>(most_dimension) ? static_cast<std::size_t>(value) : 1;
}

/// A whole number, 0 where it is none.
std::uint64_t whole(std::string_view text) {
  const double value = positive_number(text).value_or(0.0);
  return value < 1e15 ? static_cast<std::uint64_t>(value) : 0;
}

constexpr std::string_view order_unsaid = "XYCZT";

/// Planes of an image along one axis of its order, C, Z or T.
std::size_t size_along(const OmeImage& image, char axis) {
  if (axis == 'C') return image.planes / (image.depths * image.times);
  return axis == 'Z' ? image.depths : image.times;
}

/// Where a plane is along an axis, from 0.
std::size_t place_along(const OmeImage& image, std::size_t plane, char wanted) {
  for (const char axis : image.order.substr(2)) {
    const std::size_t size = size_along(image, axis);
    if (axis == wanted) return plane % size;
    plane /= size;
  }
  return 0;
}

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
  OmeReader(const pugi::xml_node& root, const std::vector<std::uint64_t>& samples, const std::string& file_name,
            SlideInfo& info)
      : root_(root), samples_(samples), file_name_(file_name), info_(info), uuid_(attribute_of(root, "UUID")) {}

  /// \param meant  the slide's image, where the file tells
  OmeXml read(std::optional<std::size_t> meant) {
    std::vector<pugi::xml_node> nodes;
    for (const pugi::xml_node& child : root_.children()) {
      if (is_named(child, "Image")) nodes.push_back(child);
    }
    // Pixels without an Image around them are written, too.
    if (nodes.empty() && child_of(root_, "Pixels")) nodes.push_back(root_);
    for (const pugi::xml_node& node : nodes) result_.images.push_back(image_of(node));
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
    if (!slide.placed_twice.empty()) info_.warnings.push_back(slide.placed_twice);
    compare_rivals(nodes);
    warn_of_repeated_attribute();
    warn_of_further_pixels(nodes[result_.slide]);
    compare_type(child_of(nodes[result_.slide], "Pixels"));
    read_pixel_size(nodes[result_.slide]);
    read_magnification(nodes[result_.slide]);
    return std::move(result_);
  }

 private:
  /// Whether it says that light of the sample was seen, in one of the ways that OME-XML has for it.
  static bool is_fluorescence(const pugi::xml_node& channel) {
    constexpr std::array<const char*, 3> only_then = {"Fluor", "EmissionWavelength", "ExcitationWavelength"};
    return std::ranges::any_of(only_then, [&](const char* name) { return !attribute_of(channel, name).empty(); }) ||
           attribute_of(channel, "ContrastMethod") == "Fluorescence" ||
           attribute_of(channel, "IlluminationType") == "Epifluorescence";
  }

  static std::string name_of_channel(const pugi::xml_node& channel) {
    for (const char* name : {"Name", "Fluor"}) {
      if (const std::string_view said = attribute_of(channel, name); !said.empty()) return std::string(said);
    }
    for (const char* name : {"EmissionWavelength", "ExcitationWavelength"}) {
      if (const std::string_view said = attribute_of(channel, name); !said.empty()) return std::string(said) + " nm";
    }
    return {};
  }

  OmeImage image_of(const pugi::xml_node& node) {
    OmeImage image;
    image.name = node == root_ ? std::string_view() : attribute_of(node, "Name");
    image.associated = name_of_associated_in(image.name);
    const pugi::xml_node pixels = child_of(node, "Pixels");
    image.width = whole(attribute_of(pixels, "SizeX"));
    image.height = whole(attribute_of(pixels, "SizeY"));
    std::vector<pugi::xml_node> data;
    bool is_elsewhere = false;
    std::size_t channels = 0;
    bool one_sample_each = true;
    for (const pugi::xml_node& child : pixels.children()) {
      if (is_named(child, "TiffData")) data.push_back(child);
      is_elsewhere = is_elsewhere || is_named(child, "MetadataOnly") || is_named(child, "BinData");
      if (!is_named(child, "Channel")) continue;
      ++channels;
      const std::string_view said = attribute_of(child, "SamplesPerPixel");
      one_sample_each = one_sample_each && dimension(said) == 1;
      if (whole(said) > 0 && channels <= most_ome_properties) image.channel_samples.push_back(whole(said));
      if (channels > most_ome_properties) continue;
      image.has_fluorescence = image.has_fluorescence || is_fluorescence(child);
      if (std::string name = name_of_channel(child); !name.empty()) image.channels.push_back(std::move(name));
    }
    if (image.channels.size() != channels) image.channels.clear();
    if (image.channel_samples.size() != channels) image.channel_samples.clear();
    image.size_c = whole(attribute_of(pixels, "SizeC"));
    const std::size_t first = data.empty() ? next_ : static_cast<std::size_t>(whole(attribute_of(data[0], "IFD")));
    const std::size_t samples = first < samples_.size() ? std::max<std::size_t>(1, samples_[first]) : 1;
    const std::size_t declared = dimension(attribute_of(pixels, "SizeC"));
    // Samples of one directory, each called a channel.
    if (channels == samples && samples > 1 && one_sample_each && declared == samples) {
      channels = 1;
      image.channels_are_samples = true;
      image.samples = std::move(image.channels);
      image.channels.clear();
    }
    if (channels == 0) channels = std::max<std::size_t>(1, declared / samples);
    image.depths = dimension(attribute_of(pixels, "SizeZ"));
    image.times = dimension(attribute_of(pixels, "SizeT"));
    image.planes = channels * image.depths * image.times;
    image.order = attribute_of(pixels, "DimensionOrder");
    if (image.order.size() != order_unsaid.size()) image.order = order_unsaid;
    image.has_pixels = !data.empty() || !is_elsewhere;
    image.is_placed = !image.has_pixels;
    if (image.has_pixels) place(image, data);
    return image;
  }

  /// Which directories an image's planes are.
  void place(OmeImage& image, const std::vector<pugi::xml_node>& data) {
    const auto put = [&](std::size_t plane, std::size_t directory) {
      if (plane >= image.planes || directory >= samples_.size()) return false;
      if (++named_ > most_named_directories) return false;
      const auto [before, is_new] = image.directories.try_emplace(plane, directory);
      if (!is_new && before->second != directory) displace(image, plane, before->second, directory);
      before->second = directory;
      next_ = std::max(next_, directory + 1);
      return true;
    };
    const bool says_nothing =
        data.empty() || (data.size() == 1 && !has_attribute(data[0], "IFD") && !has_attribute(data[0], "PlaneCount"));
    if (says_nothing) {
      image.is_placed = !data.empty() && !is_here(data[0], data);
      if (image.is_placed) return;
      for (std::size_t plane = 0, at = next_; put(plane, at); ++plane, ++at) continue;
      return;
    }
    image.is_placed = true;
    image.from_one = axes_from_one(data, image);
    for (const pugi::xml_node& part : data) {
      const std::uint64_t first = whole(attribute_of(part, "IFD"));
      const std::uint64_t count = has_attribute(part, "PlaneCount") ? whole(attribute_of(part, "PlaneCount"))
                                  : has_attribute(part, "IFD")      ? 1
                                                                    : image.planes;
      const std::size_t plane = plane_number(part, image);
      if (!is_here(part, data)) {
        place_elsewhere(image, plane, count, attribute_of(child_of(part, "UUID"), "FileName"));
        continue;
      }
      for (std::uint64_t i = 0; i < count; ++i) {
        if (!put(plane + static_cast<std::size_t>(i), static_cast<std::size_t>(first + i))) break;
      }
    }
  }

  static void displace(OmeImage& image, std::size_t plane, std::size_t before, std::size_t now) {
    image.displaced.push_back(before);
    if (!image.placed_twice.empty()) return;
    image.placed_twice = "its OME-XML gives plane " + std::to_string(plane) + " of the slide directory " +
                         std::to_string(before) + " and directory " + std::to_string(now) + ": the last one counts";
  }

  void place_elsewhere(OmeImage& image, std::size_t plane, std::uint64_t count, std::string_view file) {
    const std::string name = file.empty() ? "another file" : short_name(std::string(file));
    for (std::uint64_t i = 0; i < count && plane + i < image.planes; ++i) {
      if (++elsewhere_ > most_elsewhere) return;
      image.elsewhere[plane + static_cast<std::size_t>(i)] = name;
    }
  }

  /// Axes along which parts are counted from 1, against the schema: one is behind the last, and none is the first.
  static std::string axes_from_one(const std::vector<pugi::xml_node>& data, const OmeImage& image) {
    std::string axes;
    for (const char axis : image.order.substr(2)) {
      const std::size_t size = size_along(image, axis);
      const std::string key = std::string("First") + axis;
      const auto is_at = [&](std::size_t place) {
        return std::ranges::any_of(data, [&](const auto& part) { return whole(attribute_of(part, key)) == place; });
      };
      if (size > 1 && is_at(size) && !is_at(0)) axes += axis;
    }
    return axes;
  }

  static std::size_t plane_number(const pugi::xml_node& part, const OmeImage& image) {
    std::size_t number = 0;
    std::size_t stride = 1;
    for (const char axis : image.order.substr(2)) {
      const std::size_t size = size_along(image, axis);
      const std::string key = std::string("First") + axis;
      const std::size_t first = image.from_one.find(axis) == std::string::npos ? 0 : 1;
      number += stride * std::min<std::size_t>(whole(attribute_of(part, key)) - first, size - 1);
      stride *= size;
    }
    return number;
  }

  /// Whether a part of an image lies in this file.
  bool is_here(const pugi::xml_node& part, const std::vector<pugi::xml_node>& data) const {
    const pugi::xml_node uuid = child_of(part, "UUID");
    if (!uuid) return true;
    const std::string_view own = trimmed(uuid_);
    if (!own.empty() && !trimmed(uuid.child_value()).empty()) return trimmed(uuid.child_value()) == own;
    const std::string_view name = attribute_of(uuid, "FileName");
    if (name == file_name_) return true;
    // A file that was renamed.
    return std::ranges::all_of(
        data, [&](const pugi::xml_node& other) { return attribute_of(child_of(other, "UUID"), "FileName") == name; });
  }

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
    const auto is_held = [&](const OmeImage& i) { return are_absent || &i == &slide || !is_absent(i); };
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
  const std::vector<std::uint64_t>& samples_;
  const std::string& file_name_;
  SlideInfo& info_;
  const std::string_view uuid_;
  OmeXml result_;
  std::size_t next_ = 0;       ///< directory behind those that images before were found to have
  std::size_t named_ = 0;      ///< directories, by all images
  std::size_t elsewhere_ = 0;  ///< planes in other files, of all images
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

std::vector<std::string> plane_names(const OmeImage& image) {
  if (image.depths * image.times == 1) return image.channels;
  // Each stands in many planes' names.
  std::vector<std::string> channels;
  for (const std::string& name : image.channels) channels.push_back(short_name(name));
  std::vector<std::string> names;
  for (std::size_t plane = 0; plane < image.planes; ++plane) {
    const auto along = [&](char axis) { return place_along(image, plane, axis); };
    std::string name;
    const auto add = [&name](const std::string& text) { name += (name.empty() ? "" : ", ") + text; };
    if (!channels.empty()) {
      add(channels[along('C')]);
    } else if (size_along(image, 'C') > 1) {
      add("c " + std::to_string(along('C')));
    }
    if (image.depths > 1) add("z " + std::to_string(along('Z')));
    if (image.times > 1) add("t " + std::to_string(along('T')));
    names.push_back(std::move(name));
  }
  return names;
}

std::optional<OmeXml> read_ome_xml(std::string_view description, const std::vector<std::uint64_t>& samples,
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
  return OmeReader(root, samples, file_name, info).read(meant);
}

}  // namespace slidestream
