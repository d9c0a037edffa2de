#include "synth/dicom_folder.hpp"

#include <stdlib.h>  // mkdtemp

#include <algorithm>
#include <array>
#include <cerrno>
#include <slidestream/error.hpp>
#include <system_error>
#include <utility>

#include "sink/dicom_item.hpp"

namespace slidestream::synth {

namespace {

constexpr const char* whole_slide_class = "1.2.840.10008.5.1.4.1.1.77.1.6";
constexpr const char* explicit_syntax = "1.2.840.10008.1.2.1";
constexpr DicomTag frames_tag = 0x7FE00010;
constexpr std::uint64_t item_header = 8;
constexpr std::uint64_t undefined_length = 0xFFFFFFFF;
constexpr std::uint64_t largest_basic_offset = 0xFFFFFFFF;

const char* syntax_of(const SynthOptions& options) {
  if (options.codec == SynthCodec::none) return explicit_syntax;
  if (options.codec != SynthCodec::jpeg2000) return "1.2.840.10008.1.2.4.50";
  return options.quality == 100 ? "1.2.840.10008.1.2.4.90" : "1.2.840.10008.1.2.4.91";
}

const char* photometric_of(const SynthOptions& options) {
  switch (options.codec) {
    case SynthCodec::jpeg_grey:
      return "MONOCHROME2";
    case SynthCodec::jpeg_420:
    case SynthCodec::jpeg_422:
    case SynthCodec::jpeg_444:
      return "YBR_FULL_422";
    case SynthCodec::jpeg2000:
      return options.quality == 100 ? "YBR_RCT" : "YBR_ICT";
    default:
      return "RGB";
  }
}

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// The header of an element or item: tag, and a length of 32 bits; where `vr` isn't null, that before it.
void append_header(std::vector<std::byte>& to, DicomTag tag, const char* vr, std::uint64_t length) {
  append_number(to, static_cast<std::uint16_t>(tag >> 16));
  append_number(to, static_cast<std::uint16_t>(tag));
  if (vr != nullptr) {
    append(to, std::as_bytes(std::span(vr, 2)));
    append_number(to, std::uint16_t{0});
  }
  append_number(to, static_cast<std::uint32_t>(length));
}

/// Preamble and group 2.
std::vector<std::byte> beginning(const char* syntax, const std::string& instance) {
  std::vector<std::byte> bytes(128);
  append(bytes, std::as_bytes(std::span("DICM", 4)));
  DicomItem meta;
  const std::array version = {std::byte{0}, std::byte{1}};
  meta.bytes(0x00020001, "OB", version);
  meta.text(0x00020002, "UI", whole_slide_class);
  meta.text(0x00020003, "UI", instance);
  meta.text(0x00020010, "UI", syntax);
  meta.text(0x00020012, "UI", "2.25.330435420577133411823418163462017640593");
  const std::vector<std::byte> group = meta.encoded();
  DicomItem length;
  length.uint32(0x00020000, static_cast<std::uint32_t>(group.size()));
  append(bytes, length.encoded());
  append(bytes, group);
  return bytes;
}

DicomItem frame_at(std::int64_t column, std::int64_t row) {
  DicomItem position;
  position.decimal(0x0040074A, 0.0);
  const auto put = [&position](DicomTag tag, std::int64_t value) {
    std::vector<std::byte> number;
    append_number(number, static_cast<std::int32_t>(value));
    position.bytes(tag, "SL", number);
  };
  put(0x0048021E, column);
  put(0x0048021F, row);
  DicomItem frame;
  frame.sequence(0x0048021A, {position});
  return frame;
}

}  // namespace

/// What the elements of an instance say of its image.
struct DicomFolder::Image {
  std::string name;  ///< of the file, without ".dcm"
  const char* flavour = "VOLUME";
  const char* photometric = "RGB";
  int samples = 3;
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::int64_t tile_width = 0;
  std::int64_t tile_height = 0;
  double mm = 0.0;  ///< side of a pixel
  bool sparse = false;
  const char* syntax = explicit_syntax;
};

DicomFolder::DicomFolder(std::filesystem::path folder, const SynthOptions& options)
    : folder_(std::move(folder)), final_(folder_), options_(options) {
  std::string name = folder_.string() + ".XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    throw OutputError(folder_.string() + ": " + std::generic_category().message(errno));
  }
  made_ = name;
  std::filesystem::permissions(made_,
                               std::filesystem::perms::group_read | std::filesystem::perms::group_exec |
                                   std::filesystem::perms::others_read | std::filesystem::perms::others_exec,
                               std::filesystem::perm_options::add);
  const std::string all = std::to_string(options.width) + " " + std::to_string(options.height) + " " +
                          std::to_string(options.tile) + " " + std::to_string(static_cast<int>(options.codec)) + " " +
                          std::to_string(options.quality) + " " + std::to_string(options.seed) + " " +
                          std::to_string(options.distinct) + " " + std::to_string(options.levels) + " " +
                          std::to_string(options.missing_tiles) + " " + std::to_string(options.corrupt_tiles) + " " +
                          std::to_string(options.mpp) + " " + std::to_string(options.parts);
  identity_.add(std::as_bytes(std::span(all)));
}

DicomFolder::~DicomFolder() {
  spilled_.reset();
  std::error_code ignored;
  if (!made_.empty()) std::filesystem::remove_all(made_, ignored);
}

std::string DicomFolder::uid(const std::string& role) const { return dicom_uid("", identity_, role); }

void DicomFolder::begin_level(std::int64_t width, std::int64_t height, std::span<const std::uint8_t> tables,
                              const std::string&) {
  ++level_;
  width_ = width;
  height_ = height;
  if (level_ == 0) level_0_width_ = width;
  tables_.assign(tables.begin(), tables.end());
  frames_.clear();
  spilled_.emplace(made_ / "frames");
}

void DicomFolder::spill(std::span<const std::uint8_t> bytes) {
  if (!spilled_->write(spilled_->size(), bytes)) spilled_->fail("");
  size_ += bytes.size();
}

void DicomFolder::write_tile(std::int64_t index, std::span<const std::uint8_t> bytes) {
  Frame frame{index, spilled_->size(), bytes.size()};
  if (!encapsulated()) {
    frames_.push_back(frame);
    return spill(bytes);
  }
  // Tables that TIFF keeps apart stand between SOI and what follows it.
  const std::span<const std::uint8_t> before =
      tables_.size() < 4 ? std::span<const std::uint8_t>() : std::span(tables_).subspan(2, tables_.size() - 4);
  frame.bytes += before.size();
  std::vector<std::byte> header;
  append_header(header, 0xFFFEE000, nullptr, frame.bytes + frame.bytes % 2);
  frames_.push_back(frame);
  spill({reinterpret_cast<const std::uint8_t*>(header.data()), header.size()});
  spill(bytes.first(2));
  spill(before);
  spill(bytes.subspan(2));
  constexpr std::array<std::uint8_t, 1> padding{};
  if (frame.bytes % 2 != 0) spill(padding);
}

void DicomFolder::end_level() {
  const std::int64_t columns = (width_ + options_.tile - 1) / options_.tile;
  const std::int64_t rows = (height_ + options_.tile - 1) / options_.tile;
  Image image;
  image.name = "level-" + std::to_string(level_);
  image.photometric = photometric_of(options_);
  image.samples = options_.codec == SynthCodec::jpeg_grey ? 1 : 3;
  image.width = width_;
  image.height = height_;
  image.tile_width = image.tile_height = options_.tile;
  image.mm = options_.mpp / 1000.0 * static_cast<double>(level_0_width_) / static_cast<double>(width_);
  image.sparse = static_cast<std::int64_t>(frames_.size()) != columns * rows;
  image.syntax = syntax_of(options_);
  const std::int64_t parts =
      level_ > 0 ? 1 : std::min<std::int64_t>(options_.parts, static_cast<std::int64_t>(frames_.size()));
  for (std::int64_t part = 0; part < parts; ++part) write_part(image, part, parts);
  spilled_.reset();
}

void DicomFolder::write_picture(Beside which, const Picture& picture, const std::string&) {
  Image image;
  image.flavour = which == Beside::label ? "LABEL" : which == Beside::macro ? "OVERVIEW" : "THUMBNAIL";
  image.name = which == Beside::label ? "label" : which == Beside::macro ? "overview" : "thumbnail";
  image.width = image.tile_width = picture.width;
  image.height = image.tile_height = picture.height;
  image.mm = options_.mpp / 1000.0 * static_cast<double>(level_0_width_) / static_cast<double>(picture.width);
  frames_ = {{0, 0, picture.rgb.size()}};
  spilled_.emplace(made_ / "frames");
  spill(picture.rgb);
  write_part(image, 0, 1);
  spilled_.reset();
}

void DicomFolder::write_part(const Image& image, std::int64_t part, std::int64_t parts) {
  const auto all = static_cast<std::int64_t>(frames_.size());
  const std::int64_t first = all * part / parts;
  const std::int64_t end = all * (part + 1) / parts;
  const std::span<const Frame> frames(frames_.data() + first, static_cast<std::size_t>(end - first));
  const std::string name = image.name + (parts > 1 ? "-" + std::to_string(part + 1) : "");
  const std::string instance = uid(name);
  const bool encapsulated = std::string(image.syntax) != explicit_syntax;

  DicomItem set;
  set.text(0x00080008, "CS", std::string("ORIGINAL\\PRIMARY\\") + image.flavour + "\\NONE");
  set.text(0x00080016, "UI", whole_slide_class);
  set.text(0x00080018, "UI", instance);
  set.text(0x00080060, "CS", "SM");
  set.text(0x00080070, "LO", "slidestream");
  set.text(0x0020000D, "UI", uid("study"));
  set.text(0x0020000E, "UI", uid("series"));
  set.text(0x00200052, "UI", uid("frame of reference"));
  if (parts > 1) {
    set.text(0x00209161, "UI", uid("concatenation"));
    set.uint16(0x00209162, static_cast<std::uint16_t>(part + 1));
    set.uint16(0x00209163, static_cast<std::uint16_t>(parts));
    set.uint32(0x00209228, static_cast<std::uint32_t>(first));
  }
  set.text(0x00209311, "CS", image.sparse ? "TILED_SPARSE" : "TILED_FULL");
  set.uint16(0x00280002, static_cast<std::uint16_t>(image.samples));
  set.text(0x00280004, "CS", image.photometric);
  if (image.samples > 1) set.uint16(0x00280006, 0);
  set.text(0x00280008, "IS", std::to_string(frames.size()));
  set.uint16(0x00280010, static_cast<std::uint16_t>(image.tile_height));
  set.uint16(0x00280011, static_cast<std::uint16_t>(image.tile_width));
  set.uint16(0x00280100, 8);
  set.uint16(0x00280101, 8);
  set.uint16(0x00280102, 7);
  set.uint16(0x00280103, 0);
  set.float32(0x00480001, static_cast<float>(image.mm * static_cast<double>(image.width)));
  set.float32(0x00480002, static_cast<float>(image.mm * static_cast<double>(image.height)));
  set.uint32(0x00480006, static_cast<std::uint32_t>(image.width));
  set.uint32(0x00480007, static_cast<std::uint32_t>(image.height));
  set.uint32(0x00480303, 1);  // focal planes
  DicomItem path;
  path.text(0x00480106, "SH", "1");
  path.decimal(0x00480112, 10.0 / options_.mpp);
  set.sequence(0x00480105, {path});
  DicomItem measures;
  const std::array pixel = {image.mm, image.mm};
  measures.decimals(0x00280030, pixel);
  DicomItem shared;
  shared.sequence(0x00289110, {measures});
  set.sequence(0x52009229, {shared});
  if (image.sparse) {
    const std::int64_t columns = (image.width + image.tile_width - 1) / image.tile_width;
    std::vector<DicomItem> positions;
    for (const Frame& frame : frames) {
      positions.push_back(
          frame_at(frame.tile % columns * image.tile_width + 1, frame.tile / columns * image.tile_height + 1));
    }
    set.sequence(0x52009230, positions);
  }

  const std::uint64_t from = frames.front().at;
  const std::uint64_t last = frames.back().at + (encapsulated ? item_header : 0) + frames.back().bytes;
  const std::uint64_t bytes = last - from + (encapsulated ? frames.back().bytes % 2 : 0);
  std::vector<std::byte> basic;
  if (encapsulated && options_.offsets != SynthOffsets::none) {
    const bool extended = options_.offsets == SynthOffsets::extended || bytes > largest_basic_offset;
    std::vector<std::byte> offsets;
    std::vector<std::byte> lengths;
    for (const Frame& frame : frames) {
      if (!extended) {
        append_number(basic, static_cast<std::uint32_t>(frame.at - from));
        continue;
      }
      append_number(offsets, frame.at - from);
      append_number(lengths, frame.bytes);
    }
    if (extended) {
      set.bytes(0x7FE00001, "OV", offsets);
      set.bytes(0x7FE00002, "OV", lengths);
    }
  }
  if (!encapsulated && bytes + bytes % 2 >= undefined_length) {
    spilled_->fail("an instance holds less than 4 GiB of uncompressed pixels; divide the slide into more parts");
  }

  std::vector<std::byte> head = beginning(image.syntax, instance);
  append(head, set.encoded());
  std::vector<std::byte> tail;
  append_header(head, frames_tag, encapsulated ? "OB" : "OW", encapsulated ? undefined_length : bytes + bytes % 2);
  if (encapsulated) {
    append_header(head, 0xFFFEE000, nullptr, basic.size());
    append(head, basic);
    append_header(tail, 0xFFFEE0DD, nullptr, 0);
  } else if (bytes % 2 != 0) {
    tail.push_back(std::byte{0});
  }
  write_file(name + ".dcm", head, from, bytes, tail);
}

void DicomFolder::write_file(const std::string& name, std::span<const std::byte> head, std::uint64_t from,
                             std::uint64_t bytes, std::span<const std::byte> tail) {
  TemporaryFile file(made_ / name);
  const auto put = [&file](std::span<const std::uint8_t> piece) {
    if (!file.write(file.size(), piece)) file.fail("");
  };
  const auto plain = [](std::span<const std::byte> piece) {
    return std::span(reinterpret_cast<const std::uint8_t*>(piece.data()), piece.size());
  };
  put(plain(head));
  std::vector<std::uint8_t> block(std::min<std::uint64_t>(bytes, std::uint64_t{1} << 22));
  for (std::uint64_t done = 0; done < bytes; done += block.size()) {
    block.resize(std::min<std::uint64_t>(block.size(), bytes - done));
    if (!spilled_->read(from + done, block)) spilled_->fail("");
    put(block);
  }
  put(plain(tail));
  size_ += head.size() + tail.size();
  file.publish();
}

void DicomFolder::publish() {
  std::error_code error;
  const auto check = [&] {
    if (error) throw OutputError(folder_.string() + ": " + error.message());
  };
  final_.check();
  // What a link leads to isn't replaced, and a folder can't take its place.
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(folder_, error))) {
    std::filesystem::remove(folder_, error);
    check();
  }
  if (std::filesystem::exists(folder_, error)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
      if (entry.path().extension() != ".dcm") {
        throw OutputError(folder_.string() + ": holds " + entry.path().filename().string() + ", which isn't DICOM");
      }
    }
    check();
    std::filesystem::remove_all(folder_, error);
    check();
  }
  std::filesystem::rename(made_, folder_, error);
  check();
  made_.clear();
}

}  // namespace slidestream::synth
