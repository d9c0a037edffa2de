#include "slide/tiff/ome_image_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "config/positive_number.hpp"
#include "slide/channels.hpp"
#include "slide/tiff/aperio.hpp"
#include "slide/tiff/xml_nodes.hpp"

namespace slidestream {
namespace {

using xml::attribute_of;
using xml::child_of;
using xml::has_attribute;
using xml::is_named;

/// Channels of an image whose names are kept.
constexpr std::size_t most_named_channels = 1000;
/// More than a slide may have planes (`choose_plane` refuses them), and three of it multiplied fit 64 bits.
constexpr std::size_t most_dimension = std::size_t{1} << 20;
/// Directories that all images together name.
constexpr std::size_t most_named_directories = std::size_t{1} << 17;

/// Planes in other files, of all images.
constexpr std::size_t most_elsewhere = 4096;

/// A whole number from 1 on, larger ones than 2^20 as 2^20; anything else is 1.
std::size_t dimension(std::string_view text) {
  const double value = positive_number(text).value_or(1.0);
  return static_cast<std::size_t>(std::clamp(value, 1.0, static_cast<double>(most_dimension)));
}

/// A whole number, 0 where it is none.
std::uint64_t whole(std::string_view text) {
  const double value = positive_number(text).value_or(0.0);
  return value < 1e15 ? static_cast<std::uint64_t>(value) : 0;
}

constexpr std::string_view order_unsaid = "XYCZT";

/// Whether it says that light of the sample was seen, in one of the ways that OME-XML has for it.
bool is_fluorescence(const pugi::xml_node& channel) {
  constexpr std::array<const char*, 3> only_then = {"Fluor", "EmissionWavelength", "ExcitationWavelength"};
  return std::ranges::any_of(only_then, [&](const char* name) { return !attribute_of(channel, name).empty(); }) ||
         attribute_of(channel, "ContrastMethod") == "Fluorescence" ||
         attribute_of(channel, "IlluminationType") == "Epifluorescence";
}

std::string name_of_channel(const pugi::xml_node& channel) {
  for (const char* name : {"Name", "Fluor"}) {
    if (const std::string_view said = attribute_of(channel, name); !said.empty()) return std::string(said);
  }
  for (const char* name : {"EmissionWavelength", "ExcitationWavelength"}) {
    if (const std::string_view said = attribute_of(channel, name); !said.empty()) return std::string(said) + " nm";
  }
  return {};
}

/// Whether TiffData, if any, names no directories: they are the next ones.
bool says_nothing(const std::vector<pugi::xml_node>& data) {
  return data.empty() || (data.size() == 1 && !has_attribute(data[0], "IFD") && !has_attribute(data[0], "PlaneCount"));
}

void displace(OmeImage& image, std::size_t plane, std::size_t before, std::size_t now) {
  image.displaced.push_back(before);
  if (!image.placed_twice.empty()) return;
  image.placed_twice = "its OME-XML gives plane " + std::to_string(plane) + " of the slide directory " +
                       std::to_string(before) + " and directory " + std::to_string(now) + ": the last one counts";
}

/// Axes along which parts are counted from 1, against the schema: one is behind the last, and none is the first.
std::string axes_from_one(const std::vector<pugi::xml_node>& data, const OmeImage& image) {
  std::string axes;
  for (const char axis : image.order.substr(2)) {
    const std::size_t size = image.size_along(axis);
    const std::string key = std::string("First") + axis;
    const auto is_at = [&](std::size_t place) {
      return std::ranges::any_of(data, [&](const auto& part) { return whole(attribute_of(part, key)) == place; });
    };
    if (size > 1 && is_at(size) && !is_at(0)) axes += axis;
  }
  return axes;
}

std::size_t plane_number(const pugi::xml_node& part, const OmeImage& image) {
  std::size_t number = 0;
  std::size_t stride = 1;
  for (const char axis : image.order.substr(2)) {
    const std::size_t size = image.size_along(axis);
    const std::string key = std::string("First") + axis;
    const std::size_t first = image.from_one.find(axis) == std::string::npos ? 0 : 1;
    number += stride * std::min<std::size_t>(whole(attribute_of(part, key)) - first, size - 1);
    stride *= size;
  }
  return number;
}

/// A name in small letters (ASCII), with what %20 and the like stand for.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (std::size_t i = 0; i < name.size(); ++i) {
    unsigned char c = static_cast<unsigned char>(name[i]);
    if (c == '%' && i + 2 < name.size()) {
      const char* end = name.data() + i + 3;
      unsigned char decoded = 0;
      const auto parsed = std::from_chars(name.data() + i + 1, end, decoded, 16);
      if (parsed.ec == std::errc() && parsed.ptr == end) {
        c = decoded;
        i += 2;
      }
    }
    plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return plain;
}

/// An UUID in small letters, without the prefix that some writers leave out.
std::string plain_uuid(std::string_view said) {
  constexpr std::string_view uuid_prefix = "urn:uuid:";
  std::string plain = plain_name(trimmed(said));
  if (plain.starts_with(uuid_prefix)) plain.erase(0, uuid_prefix.size());
  return plain;
}

/// What TiffData says of the file that it lies in.
struct FileOfPart {
  std::string_view name;
  std::string text;  ///< the UUID itself, as `plain_uuid`

  /// Without a word of it the file is this one.
  bool is_this() const { return name.empty() && text.empty(); }
};

FileOfPart file_of_part(const pugi::xml_node& part) {
  const pugi::xml_node uuid = child_of(part, "UUID");
  return {attribute_of(uuid, "FileName"), plain_uuid(uuid.child_value())};
}

/// Behind the last slash of either kind.
std::string_view last_part_of(std::string_view path) { return path.substr(path.find_last_of("/\\") + 1); }

bool is_same_name(std::string_view said, std::string_view name) { return said == name; }
bool is_same_last_part(std::string_view said, std::string_view name) { return last_part_of(said) == name; }
bool is_same_in_other_letters(std::string_view said, std::string_view name) {
  return plain_name(last_part_of(said)) == plain_name(name);
}

/// Two planes that have one directory, in a line.
std::string shared_directory(const std::map<std::size_t, std::size_t>& directories) {
  std::map<std::size_t, std::size_t> planes;
  for (const auto& [plane, directory] : directories) {
    const auto [first, is_new] = planes.try_emplace(directory, plane);
    if (is_new) continue;
    return "its OME-XML gives directory " + std::to_string(directory) + " to plane " + std::to_string(first->second) +
           " of the slide and to plane " + std::to_string(plane) + ": it is read as plane " +
           std::to_string(first->second);
  }
  return {};
}

}  // namespace

OmeImageReader::OmeImageReader(const pugi::xml_node& root, const std::vector<OmeDirectory>& main,
                               const std::string& file_name)
    : root_(root), main_(main), file_name_(file_name), uuid_(plain_uuid(attribute_of(root, "UUID"))) {
  const auto is_image = [](const pugi::xml_node& child) { return is_named(child, "Image"); };
  is_alone_ = std::ranges::count_if(root.children(), is_image) < 2;
  identify_file();
}

OmeImage OmeImageReader::read(const pugi::xml_node& node) {
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
    if (whole(said) > 0 && channels <= most_named_channels) image.channel_samples.push_back(whole(said));
    if (channels > most_named_channels) continue;
    image.has_fluorescence = image.has_fluorescence || is_fluorescence(child);
    if (std::string name = name_of_channel(child); !name.empty()) image.channels.push_back(std::move(name));
  }
  if (image.channels.size() != channels) image.channels.clear();
  if (image.channel_samples.size() != channels) image.channel_samples.clear();
  image.size_c = whole(attribute_of(pixels, "SizeC"));
  const std::size_t first = data.empty() ? next_ : static_cast<std::size_t>(whole(attribute_of(data[0], "IFD")));
  const std::size_t samples = first < main_.size() ? std::max<std::size_t>(1, main_[first].samples) : 1;
  const std::size_t declared = dimension(attribute_of(pixels, "SizeC"));
  image.depths = dimension(attribute_of(pixels, "SizeZ"));
  image.times = dimension(attribute_of(pixels, "SizeT"));
  const std::size_t per_channel = image.depths * image.times;
  // Samples of one directory, each called a channel, unless each has directories of its own.
  if (channels == samples && samples > 1 && one_sample_each && declared == samples &&
      count_like(first, data, is_alone_ && says_nothing(data)) < channels * per_channel) {
    channels = 1;
    image.channels_are_samples = true;
    image.samples = std::move(image.channels);
    image.channels.clear();
  }
  // Tags say how many samples a directory has. Where there are more directories than Channels for them, SizeC counts.
  const std::size_t by_tags = std::max<std::size_t>(1, declared / samples);
  image.size_c_counts =
      channels > 0 && by_tags > channels && count_like(first, data, is_alone_) > channels * per_channel;
  if (image.size_c_counts) image.channels.clear();
  if (image.size_c_counts || channels == 0) channels = by_tags;
  image.planes = channels * per_channel;
  image.order = attribute_of(pixels, "DimensionOrder");
  if (image.order.size() != order_unsaid.size()) image.order = order_unsaid;
  image.has_pixels = !data.empty() || !is_elsewhere;
  image.is_placed = !image.has_pixels;
  if (image.has_pixels) place(image, data);
  image.lies_elsewhere = !data.empty() && std::ranges::none_of(data, [&](const auto& part) { return is_here(part); });
  image.shared = shared_directory(image.directories);
  return image;
}

/// Directories of the first one's size and samples. \param of_all  not only those that `data` names
std::size_t OmeImageReader::count_like(std::size_t first, const std::vector<pugi::xml_node>& data, bool of_all) {
  if (first >= main_.size()) return 0;
  if (of_all) return static_cast<std::size_t>(std::ranges::count(main_, main_[first]));
  std::set<std::size_t> like;
  for (const pugi::xml_node& part : data) {
    if (!is_here(part)) continue;
    const std::uint64_t begin = whole(attribute_of(part, "IFD"));
    const std::uint64_t count = std::max<std::uint64_t>(1, whole(attribute_of(part, "PlaneCount")));
    for (std::uint64_t at = begin; at < main_.size() && at - begin < count; ++at) {
      if (++counted_ > most_named_directories) return like.size();
      if (main_[static_cast<std::size_t>(at)] == main_[first]) like.insert(static_cast<std::size_t>(at));
    }
  }
  return like.size();
}

/// Which directories an image's planes are.
void OmeImageReader::place(OmeImage& image, const std::vector<pugi::xml_node>& data) {
  const auto put = [&](std::size_t plane, std::size_t directory) {
    if (plane >= image.planes || directory >= main_.size()) return false;
    if (++named_ > most_named_directories) return false;
    const auto [before, is_new] = image.directories.try_emplace(plane, directory);
    if (!is_new && before->second != directory) displace(image, plane, before->second, directory);
    before->second = directory;
    next_ = std::max(next_, directory + 1);
    return true;
  };
  if (says_nothing(data)) {
    image.is_placed = !data.empty() && !is_here(data[0]);
    if (image.is_placed) {
      place_elsewhere(image, 0, image.planes, file_of_part(data[0]).name);
      return;
    }
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
    if (!is_here(part)) {
      place_elsewhere(image, plane, count, file_of_part(part).name);
      continue;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!put(plane + static_cast<std::size_t>(i), static_cast<std::size_t>(first + i))) break;
    }
  }
}

void OmeImageReader::place_elsewhere(OmeImage& image, std::size_t plane, std::uint64_t count, std::string_view file) {
  const std::string name = file.empty() ? "another file" : short_name(std::string(file));
  for (std::uint64_t i = 0; i < count && plane + i < image.planes; ++i) {
    if (++elsewhere_ > most_elsewhere) return;
    image.elsewhere[plane + static_cast<std::size_t>(i)] = name;
  }
}

/// Whether a part of an image lies in this file.
bool OmeImageReader::is_here(const pugi::xml_node& part) const {
  const FileOfPart file = file_of_part(part);
  if (file.is_this()) return true;
  if (!uuid_.empty() && !file.text.empty()) return file.text == uuid_;
  if (is_renamed_) return true;
  return file.name.empty() ? file.text == own_text_ : file.name == own_name_;
}

/// Which of the files that the text names this one is: the one of its name, else of its name behind a path, else in
/// other letters. Where none has it, the only one, unless a part says that it lies in this file.
void OmeImageReader::identify_file() {
  std::set<std::string_view> names;
  std::set<std::string> texts;
  std::map<std::string_view, std::string> text_of;
  bool is_named_this = false;
  for (const pugi::xml_node& image : root_.children()) {
    for (const pugi::xml_node& part : child_of(image, "Pixels").children()) {
      if (!is_named(part, "TiffData")) continue;
      const FileOfPart file = file_of_part(part);
      is_named_this = is_named_this || file.is_this();
      if (!file.name.empty()) names.insert(file.name);
      if (!file.text.empty()) texts.insert(file.text);
      if (!file.name.empty()) text_of.try_emplace(file.name, file.text);
    }
  }
  for (const auto is_same : {&is_same_name, &is_same_last_part, &is_same_in_other_letters}) {
    std::vector<std::string_view> found;
    std::ranges::copy_if(names, std::back_inserter(found),
                         [&](std::string_view name) { return is_same(name, file_name_); });
    if (found.empty()) continue;
    if (found.size() > 1) return;
    own_name_ = found.front();
    own_text_ = text_of[own_name_];
    return;
  }
  is_renamed_ = !is_named_this && names.size() < 2 && texts.size() < 2;
}

}  // namespace slidestream
