#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "sink/dicom_attributes.hpp"
#include "sink/dicom_head.hpp"
#include "sink/dicom_uid.hpp"
#include "sink/file_marks.hpp"
#include "sink/image_formats.hpp"
#include "sink/ordered_sink.hpp"
#include "sink/partial_file.hpp"
#include "sink/partial_folder.hpp"
#include "sink/stray_files.hpp"

namespace slidestream {

namespace {

constexpr std::uint64_t item_header = 8;
constexpr std::size_t marker_bytes = 2;
constexpr std::uint64_t largest_basic_offset = ~std::uint32_t{0};
constexpr std::uint64_t largest_plain_bytes = 0xFFFFFFFE;

constexpr std::array adobe_rgb = {std::byte{0xFF}, std::byte{0xEE}, std::byte{0},   std::byte{14},  // APP14
                                  std::byte{'A'},  std::byte{'d'},  std::byte{'o'}, std::byte{'b'},
                                  std::byte{'e'},  std::byte{0},    std::byte{100}, std::byte{0},
                                  std::byte{0},    std::byte{0},    std::byte{0},   std::byte{0}};

std::string name_of_level(int level) { return "level-" + std::to_string(level) + ".dcm"; }

/// Tables between SOI and EOI.
std::span<const std::byte> inner(std::span<const std::byte> tables) {
  return tables.size() < 2 * marker_bytes ? std::span<const std::byte>()
                                          : tables.subspan(marker_bytes, tables.size() - 2 * marker_bytes);
}

/// Whether Adobe's marker stands before the frame's header. \param tile  as `append_picture` made it.
bool has_adobe(std::span<const std::byte> tile) {
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(tile[i]); };
  for (std::size_t i = marker_bytes; i + 3 < tile.size() && at(i) == 0xFF;) {
    const unsigned marker = at(i + 1);
    if (marker == 0xEE) return true;
    if (marker < 0xDB && marker != 0xC4) return false;
    i += marker == 0xFF ? 1 : marker_bytes + (at(i + 2) << 8 | at(i + 3));
  }
  return false;
}

/// A level that is being written.
struct Instance {
  DicomLevel level;
  std::string file;
  std::vector<std::byte> before;  ///< what stands between a tile's SOI and the rest of it
  bool marks_rgb = false;         ///< Adobe's marker is to say that colours are R, G and B
  std::uint64_t end = 0;          ///< of the items, from the first one on
  std::uint64_t coded_bytes = 0;
};

class DicomSink final : public OrderedSink {
 public:
  DicomSink(const std::filesystem::path& file, const ImageDescription& description, const ImageOptions& options)
      : OrderedSink(file, PyramidLayout(description.size, options.tile, options.levels)),
        description_(description),
        options_(options),
        jpeg_(options.compression != TileCompression::none),
        attributes_(options.dicom.attributes.empty() ? DicomAttributes()
                                                     : read_dicom_attributes(options.dicom.attributes)),
        folder_(file, partial_name(file)) {
    const std::vector<std::byte> tables = make_encoder()->tables();
    const DicomUids blank = uids_of({});
    folder_.begin([&] {
      for (int level = 0; level < layout().levels(); ++level) {
        instances_.push_back(begin(level, tables));
        folder_.append(instances_.back().file, head_of(instances_.back(), blank));
      }
    });
  }

  std::unique_ptr<TileEncoder> make_encoder() const override {
    return make_tile_encoder(options_.compression, description_.format, options_.quality, layout().tile(),
                             options_.subsampling);
  }

  void discard() noexcept override { folder_.discard(); }

 protected:
  std::uint64_t write(const std::vector<Tile>& tiles) override {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < tiles.size();) {
      const std::size_t first = i;
      while (i < tiles.size() && tiles[i].level == tiles[first].level) ++i;
      bytes +=
          write(instances_[static_cast<std::size_t>(tiles[first].level)], std::span(tiles).subspan(first, i - first));
    }
    return bytes;
  }

  std::vector<PublishedFile> finish() override {
    for (Instance& instance : instances_) {
      if (instance.level.jpeg) end_items(instance);
    }
    const DicomHash content = content_of_all();
    for (const Instance& instance : instances_) {
      folder_.overwrite(instance.file, 0, head_of(instance, uids_of(content, instance.level.level)));
    }
    for (const Instance& instance : instances_) folder_.complete(instance.file);
    folder_.publish();
    return {{file(), folder_.bytes(), folder_.digest()}};
  }

 private:
  Instance begin(int level, std::span<const std::byte> tables) const {
    const CopiedLevel* copied = level == 0 ? options_.copied.get() : nullptr;
    const bool colour = description_.format.channels == 3;
    const bool ycbcr = jpeg_ && (copied == nullptr || copied->ycbcr);
    Instance made;
    made.file = name_of_level(level);
    made.level.level = level;
    made.level.jpeg = jpeg_;
    // Of YCbCr in JPEG the only value (PS3.5, table 8.2.1-1; PS3.3, C.8.12.4.1.5), whatever its sampling (C.7.6.3.1.2).
    made.level.photometric = !colour ? "MONOCHROME2" : ycbcr ? "YBR_FULL_422" : "RGB";
    made.level.frames = static_cast<std::uint64_t>(layout().tiles(level));
    made.level.copied = copied != nullptr;
    made.marks_rgb = jpeg_ && colour && !ycbcr;
    const auto shared = inner(copied != nullptr ? std::span<const std::byte>(copied->tables) : tables);
    made.before.assign(shared.begin(), shared.end());
    const std::uint64_t own = item_header + 1 + made.before.size() + adobe_rgb.size();
    const std::uint64_t coded = copied != nullptr ? copied->most_bytes : made.level.frames * 2 * frame_bytes();
    made.level.extended = coded + made.level.frames * own > largest_basic_offset;
    return made;
  }

  std::uint64_t frame_bytes() const noexcept {
    const auto side = static_cast<std::uint64_t>(layout().tile());
    return side * side * static_cast<std::uint64_t>(description_.format.channels);
  }

  std::vector<std::byte> head_of(const Instance& instance, const DicomUids& uids) const {
    return dicom_head(layout(), description_, attributes_, uids, instance.level);
  }

  std::uint64_t write(Instance& instance, std::span<const Tile> tiles) {
    std::vector<::iovec> pieces;
    std::deque<std::array<std::byte, item_header>> headers;
    std::uint64_t bytes = 0;
    const auto add = [&](std::span<const std::byte> piece) {
      if (piece.empty()) return;
      pieces.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
      bytes += piece.size();
    };
    for (const Tile& each : tiles) {
      const std::span<const std::byte> tile = each.tile.bytes;
      if (!instance.level.jpeg) {
        add(tile);
        continue;
      }
      const bool marked = instance.marks_rgb && !has_adobe(tile);
      const std::uint64_t length = tile.size() + instance.before.size() + (marked ? adobe_rgb.size() : 0);
      if (instance.end > largest_basic_offset && !instance.level.extended) {
        throw Error(file().string() + ": its tiles take more bytes than twice its pixels");
      }
      instance.level.offsets.push_back(instance.end);
      instance.level.lengths.push_back(length);
      instance.end += item_header + length + length % 2;
      instance.coded_bytes += length;
      headers.push_back(item_of(length + length % 2));
      add(headers.back());
      add(tile.first(marker_bytes));
      if (marked) add(adobe_rgb);
      add(instance.before);
      add(tile.subspan(marker_bytes));
      if (length % 2 != 0) add(padding_);
    }
    folder_.append(instance.file, pieces);
    return bytes;
  }

  static std::array<std::byte, item_header> item_of(std::uint64_t length) {
    std::array<std::byte, item_header> bytes{};
    const std::array numbers = {std::uint32_t{0xE000FFFE}, static_cast<std::uint32_t>(length)};
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    return bytes;
  }

  void end_items(Instance& instance) {
    std::vector<std::byte> end;
    append_number(end, std::uint32_t{0xE0DDFFFE});
    append_number(end, std::uint32_t{0});
    folder_.append(instance.file, end);
    instance.level.ratio = static_cast<double>(frame_bytes() * instance.level.frames) /
                           static_cast<double>(std::max<std::uint64_t>(instance.coded_bytes, 1));
  }

  /// Stands for all that the files will hold but for UIDs: their heads, and digests of what was written so far.
  DicomHash content_of_all() {
    DicomHash all;
    const DicomUids blank = uids_of({});
    for (const Instance& instance : instances_) {
      all.add(head_of(instance, blank));
      const std::uint64_t written = folder_.digest_of_unfinished(instance.file);
      all.add(std::as_bytes(std::span(&written, 1)));
    }
    return all;
  }

  DicomUids uids_of(const DicomHash& content, int level = 0) const {
    const auto uid = [&](const std::string& role) { return dicom_uid(options_.dicom.uid_root, content, role); };
    return {.study = uid("study"),
            .series = uid("series"),
            .frame_of_reference = uid("frame of reference"),
            .dimensions = uid("dimensions"),
            .specimen = uid("specimen"),
            .container = content.hexadecimal(),
            .instance = uid("instance " + std::to_string(level))};
  }

  ImageDescription description_;
  ImageOptions options_;
  bool jpeg_;
  DicomAttributes attributes_;
  PartialFolder folder_;
  std::vector<Instance> instances_;  ///< whoever drains, and `publish`
  const std::array<std::byte, 1> padding_{};
};

std::string begin_dicom_run(const Config& config) {
  if (config.dicom.attributes.empty()) {
    return "dicom.attributes isn't set: patient, study and specimen stay empty in DICOM files";
  }
  read_dicom_attributes(config.dicom.attributes);
  return {};
}

/// The DICOM files of a folder, without stray and empty ones.
std::vector<std::filesystem::path> instances_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code code;
  std::filesystem::directory_iterator entry(folder, code);
  for (; !code && entry != std::filesystem::directory_iterator(); entry.increment(code)) {
    if (entry->path().extension() != ".dcm" || is_stray_file(*entry) || is_empty_file(entry->path())) continue;
    files.push_back(entry->path());
  }
  return files;
}

/// Each instance says it.
std::optional<bool> is_own_begun_dicom(const std::filesystem::path& folder) {
  const auto files = instances_in(folder);
  if (files.empty()) return std::nullopt;
  return std::ranges::all_of(files, [](const auto& file) { return has_mark(file, "slidestream"); });
}

bool has_own_instance(const std::filesystem::path& folder) {
  // Manufacturer and SoftwareVersions lie before everything that is large.
  constexpr std::size_t head = std::size_t{1} << 16;
  return std::ranges::any_of(instances_in(folder),
                             [](const auto& file) { return has_mark(file, "slidestream", head); });
}

/// By SoftwareVersions, which lies before everything that is large.
bool is_own_instance(const std::filesystem::path& file) {
  constexpr std::size_t head = 8192;
  constexpr std::string_view software("\x18\0\x20\x10LO", 6);
  constexpr std::size_t length_bytes = 2;
  const std::string bytes = first_bytes_of(file, head);
  const std::size_t at = bytes.find(software);
  return at != std::string::npos && bytes.find("slidestream ", at) == at + software.size() + length_bytes;
}

}  // namespace

ImageFormatTraits dicom_traits() {
  using enum TileCompression;
  return {.format = ImageFormat::dicom,
          .suffixes = {".dicom"},
          .compressions = {jpeg, none, copy},
          .compression = [](const auto&, const auto&) { return jpeg; },
          .is_folder = true,
          .has_any_name = true,
          .holds_8_bits = true,
          .needs_pixel_size = true,
          .settings = "dicom",
          .begin = begin_dicom_run,
          .takes_encoded_tiles = true,
          .make = make_dicom_sink,
          .is_own = [](const auto& folder) { return is_own_begun_dicom(folder).value_or(false); },
          .is_own_slide = is_own_instance,
          .files = {"level-0.dcm", "level-#.dcm"},
          .is_own_begun = is_own_begun_dicom,
          .has_own_part = has_own_instance};
}

std::unique_ptr<ImageSink> make_dicom_sink(const std::filesystem::path& file, const ImageDescription& description,
                                           const ImageOptions& options) {
  check_image(description, options);
  const PyramidLayout layout(description.size, options.tile, 1);
  if (!description.mpp) throw Error(file.string() + ": DICOM can't do without the size of a pixel, which isn't known");
  const auto side = static_cast<std::uint64_t>(options.tile);
  const auto raw = static_cast<std::uint64_t>(layout.tiles(0)) * side * side *
                   static_cast<std::uint64_t>(description.format.channels);
  if (options.compression == TileCompression::none && raw > largest_plain_bytes) {
    throw Error(file.string() + ": uncompressed DICOM holds less than 4 GiB, and this image has " +
                std::to_string(raw) + " bytes; use image.compression = \"jpeg\"");
  }
  return std::make_unique<DicomSink>(file, description, options);
}

}  // namespace slidestream
