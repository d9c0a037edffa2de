#include "slide/test_dicom.hpp"

#ifdef SLIDESTREAM_HAVE_CHARLS
#include <charls/charls.h>
#endif

#include <algorithm>
#include <bit>

namespace slidestream::test {

namespace {

constexpr std::uint32_t undefined_length = 0xFFFFFFFF;

void put(Bytes& to, std::uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) to.push_back(static_cast<std::byte>(value >> (8 * i)));
}

void put_tag(Bytes& to, std::uint32_t tag) {
  put(to, tag >> 16, 2);
  put(to, tag & 0xFFFF, 2);
}

void put(Bytes& to, const Bytes& bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

void put_header(Bytes& to, std::uint32_t tag, const std::string& vr, std::uint32_t length, bool implicit) {
  put_tag(to, tag);
  if (implicit) return put(to, length, 4);
  for (const char c : vr) to.push_back(static_cast<std::byte>(c));
  const bool is_long =
      vr == "SQ" || vr == "UN" || vr == "UT" || vr == "UC" || vr == "UR" || vr[0] == 'O' || vr == "SV" || vr == "UV";
  if (is_long) put(to, 0, 2);
  put(to, length, is_long ? 4 : 2);
}

void put_item(Bytes& to, const Bytes& value) {
  put_tag(to, 0xFFFEE000);
  put(to, value.size(), 4);
  put(to, value);
}

Bytes text_bytes(std::string text, char pad) {
  if (text.size() % 2 == 1) text += pad;
  Bytes bytes;
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

JpegOptions jpeg_options(DicomOptions::Codec codec) {
  using Coding = JpegOptions::Coding;
  if (codec == DicomOptions::Codec::jpeg_rgb) return {.coding = Coding::rgb, .horizontal = 1, .vertical = 1};
  if (codec == DicomOptions::Codec::jpeg_grey) return {.coding = Coding::grey, .horizontal = 1, .vertical = 1};
  return {};
}

Bytes encode_frame(const Picture& tile, DicomOptions::Codec codec) {
  switch (codec) {
    case DicomOptions::Codec::none:
      return to_bytes(tile);
    case DicomOptions::Codec::jpeg2000:
      return encode_jpeg2000(tile);
    case DicomOptions::Codec::jpegls:
      return encode_jpegls(tile);
    default:
      return encode_jpeg(tile, jpeg_options(codec));
  }
}

std::vector<Bytes> encode_frames(const Picture& picture, const DicomOptions& options) {
  std::vector<Bytes> frames;
  for (int y = 0; y < picture.height; y += options.tile) {
    for (int x = 0; x < picture.width; x += options.tile) {
      frames.push_back(encode_frame(cut(picture, x, y, options.tile, options.tile), options.codec));
    }
  }
  return frames;
}

}  // namespace

DicomSet& DicomSet::text(std::uint32_t tag, const std::string& vr, std::string value) {
  values_[tag] = {vr, text_bytes(std::move(value), vr == "UI" ? '\0' : ' '), {}, {}};
  return *this;
}

DicomSet& DicomSet::number(std::uint32_t tag, const std::string& vr, std::int64_t value) {
  Bytes bytes;
  put(bytes, static_cast<std::uint64_t>(value), vr == "US" ? 2 : 4);
  values_[tag] = {vr, std::move(bytes), {}, {}};
  return *this;
}

DicomSet& DicomSet::real(std::uint32_t tag, float value) {
  Bytes bytes;
  put(bytes, std::bit_cast<std::uint32_t>(value), 4);
  values_[tag] = {"FL", std::move(bytes), {}, {}};
  return *this;
}

DicomSet& DicomSet::bytes(std::uint32_t tag, const std::string& vr, Bytes value) {
  values_[tag] = {vr, std::move(value), {}, {}};
  return *this;
}

DicomSet& DicomSet::items(std::uint32_t tag, std::vector<DicomSet> items) {
  values_[tag] = {"SQ", {}, std::move(items), {}};
  return *this;
}

DicomSet& DicomSet::encapsulated(std::uint32_t tag, std::vector<Bytes> items) {
  values_[tag] = {"OB", {}, {}, std::move(items)};
  return *this;
}

DicomSet& DicomSet::remove(std::uint32_t tag) {
  values_.erase(tag);
  return *this;
}

Bytes DicomSet::encode(const Coding& coding) const {
  Bytes all;
  for (const auto& [tag, value] : values_) {
    if (!value.pieces.empty()) {
      put_header(all, tag, value.vr, undefined_length, coding.implicit);
      for (const Bytes& piece : value.pieces) put_item(all, piece);
      put_tag(all, 0xFFFEE0DD);
      put(all, 0, 4);
      continue;
    }
    if (value.vr != "SQ") {
      put_header(all, tag, value.vr, static_cast<std::uint32_t>(value.bytes.size()), coding.implicit);
      put(all, value.bytes);
      continue;
    }
    Bytes items;
    for (const DicomSet& item : value.items) {
      const Bytes inside = item.encode(coding);
      if (!coding.undefined_lengths) {
        put_item(items, inside);
        continue;
      }
      put_tag(items, 0xFFFEE000);
      put(items, undefined_length, 4);
      put(items, inside);
      put_tag(items, 0xFFFEE00D);
      put(items, 0, 4);
    }
    const auto length = static_cast<std::uint32_t>(items.size());
    put_header(all, tag, "SQ", coding.undefined_lengths ? undefined_length : length, coding.implicit);
    put(all, items);
    if (!coding.undefined_lengths) continue;
    put_tag(all, 0xFFFEE0DD);
    put(all, 0, 4);
  }
  return all;
}

Bytes DicomFile::encode() const {
  Bytes all(128);
  put(all, text_bytes("DICM", ' '));
  DicomSet meta;
  meta.bytes(0x00020001, "OB", {std::byte{0}, std::byte{1}}).text(0x00020010, "UI", syntax);
  if (!media_class.empty()) meta.text(0x00020002, "UI", media_class);
  Bytes group = meta.encode({});
  put_header(all, 0x00020000, "UL", 4, false);
  put(all, group.size(), 4);
  put(all, group);
  const bool encapsulated = syntax.starts_with("1.2.840.10008.1.2.4");
  Bytes items;
  std::vector<std::uint64_t> offsets;
  std::vector<std::uint64_t> lengths;
  Bytes plain;
  for (const Bytes& frame : frames) {
    put(plain, frame);
    offsets.push_back(items.size());
    lengths.push_back(frame.size());
    // All but the last are even.
    const std::size_t each = (frame.size() / static_cast<std::size_t>(fragments) + 1) / 2 * 2;
    for (int i = 0; i < fragments; ++i) {
      const std::size_t begin = std::min(each * static_cast<std::size_t>(i), frame.size());
      const std::size_t end = i + 1 == fragments ? frame.size() : std::min(begin + each, frame.size());
      Bytes part(frame.begin() + static_cast<std::ptrdiff_t>(begin), frame.begin() + static_cast<std::ptrdiff_t>(end));
      if (part.size() % 2 == 1) part.push_back({});
      put_item(items, part);
    }
  }
  for (std::size_t i = 0; i < moved.size(); ++i) offsets[i] += static_cast<std::uint64_t>(moved[i]);
  DicomSet whole = set;
  if (encapsulated && table == Table::extended) {
    Bytes at;
    Bytes long_;
    for (const std::uint64_t offset : offsets) put(at, offset, 8);
    for (std::size_t i = 0; i < lengths.size(); ++i) put(long_, lengths[i] + (i + 1 < lengths.size() ? longer : 0), 8);
    whole.bytes(0x7FE00001, "OV", at).bytes(0x7FE00002, "OV", long_);
  }
  put(all, whole.encode(coding));
  if (!encapsulated) {
    if (plain.size() % 2 == 1) plain.push_back({});
    put_header(all, dicom_pixels, "OW", static_cast<std::uint32_t>(plain.size()), coding.implicit);
    put(all, plain);
    return all;
  }
  put_header(all, dicom_pixels, "OB", undefined_length, false);
  Bytes basic;
  if (table == Table::basic) {
    for (const std::uint64_t offset : offsets) put(basic, offset, 4);
  }
  put_item(all, basic);
  put(all, items);
  put_tag(all, 0xFFFEE0DD);
  put(all, 0, 4);
  return all;
}

DicomSet dicom_frame_at(std::int64_t column, std::int64_t row) {
  DicomSet position;
  position.number(0x0048021E, "SL", column).number(0x0048021F, "SL", row).text(0x0040074A, "DS", "0");
  DicomSet frame;
  frame.items(0x0048021A, {position});
  return frame;
}

Bytes encode_jpegls([[maybe_unused]] const Picture& picture, [[maybe_unused]] JpeglsOrder order,
                    [[maybe_unused]] int near, [[maybe_unused]] int bits) {
#ifdef SLIDESTREAM_HAVE_CHARLS
  const auto samples = static_cast<std::size_t>(picture.samples);
  const std::size_t pixels = picture.data.size() / samples;
  std::vector<std::uint8_t> source = picture.data;
  if (order == JpeglsOrder::components) {
    for (std::size_t s = 0; s < samples; ++s) {
      for (std::size_t i = 0; i < pixels; ++i) source[s * pixels + i] = picture.data[samples * i + s];
    }
  }
  if (bits > 8) source.resize(2 * source.size());  // whatever they are
  charls::jpegls_encoder encoder;
  encoder.frame_info(
      {static_cast<std::uint32_t>(picture.width), static_cast<std::uint32_t>(picture.height), bits, picture.samples});
  if (samples > 1) {
    encoder.interleave_mode(order == JpeglsOrder::components ? charls::interleave_mode::none
                            : order == JpeglsOrder::rows     ? charls::interleave_mode::line
                                                             : charls::interleave_mode::sample);
  }
  encoder.near_lossless(near);
  std::vector<std::uint8_t> coded(encoder.estimated_destination_size());
  encoder.destination(coded);
  coded.resize(encoder.encode(source));
  Bytes bytes;
  for (const std::uint8_t value : coded) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
#else
  return {};
#endif
}

DicomFile make_dicom(const Picture& picture, const DicomOptions& options) {
  using Codec = DicomOptions::Codec;
  DicomFile file;
  file.frames = encode_frames(picture, options);
  file.syntax = options.codec == Codec::none       ? "1.2.840.10008.1.2.1"
                : options.codec == Codec::jpeg2000 ? "1.2.840.10008.1.2.4.91"
                : options.codec == Codec::jpegls   ? "1.2.840.10008.1.2.4.80"
                                                   : "1.2.840.10008.1.2.4.50";
  const char* photometric = picture.samples == 1               ? "MONOCHROME2"
                            : options.codec == Codec::jpeg     ? "YBR_FULL_422"
                            : options.codec == Codec::jpeg2000 ? "YBR_ICT"
                                                               : "RGB";
  DicomSet measures;
  measures.text(0x00280030, "DS", options.spacing);
  DicomSet shared;
  shared.items(0x00289110, {measures});
  DicomSet path;
  path.text(0x00480106, "SH", "1").text(0x00480112, "DS", "20");
  file.set.text(0x00080008, "CS", "ORIGINAL\\PRIMARY\\" + options.flavour + "\\NONE")
      .text(0x00080016, "UI", "1.2.840.10008.5.1.4.1.1.77.1.6")
      .text(0x00080018, "UI", options.instance)
      .text(0x0020000E, "UI", options.series)
      .text(0x00209311, "CS", options.sparse ? "TILED_SPARSE" : "TILED_FULL")
      .number(0x00280002, "US", picture.samples)
      .text(0x00280004, "CS", photometric)
      .text(0x00280008, "IS", std::to_string(file.frames.size()))
      .number(0x00280010, "US", options.tile)
      .number(0x00280011, "US", options.tile)
      .number(0x00280100, "US", 8)
      .number(0x00280101, "US", 8)
      .number(0x00280102, "US", 7)
      .number(0x00280103, "US", 0)
      .number(0x00480006, "UL", picture.width)
      .number(0x00480007, "UL", picture.height)
      .items(0x00480105, {path})
      .items(0x52009229, {shared});
  if (picture.samples > 1) file.set.number(0x00280006, "US", 0);
  if (!options.sparse) return file;
  std::vector<DicomSet> frames;
  for (int y = 0; y < picture.height; y += options.tile) {
    for (int x = 0; x < picture.width; x += options.tile) frames.push_back(dicom_frame_at(x + 1, y + 1));
  }
  file.set.items(0x52009230, frames);
  return file;
}

TestTiff make_same_tiff(const Picture& picture, const DicomOptions& options) {
  using Codec = DicomOptions::Codec;
  TestDirectory directory = tiled_directory(
      static_cast<std::uint32_t>(picture.width), static_cast<std::uint32_t>(picture.height),
      static_cast<std::uint32_t>(options.tile), static_cast<std::uint32_t>(options.tile), picture.samples);
  constexpr std::uint64_t none = 1, jpeg = 7, jpeg2000 = 33005;
  constexpr std::uint64_t grey = 1, rgb = 2, ycbcr = 6;
  directory.set_short(259, options.codec == Codec::none ? none : options.codec == Codec::jpeg2000 ? jpeg2000 : jpeg);
  directory.set_short(262, picture.samples == 1 ? grey : options.codec == Codec::jpeg ? ycbcr : rgb);
  directory.tiles = encode_frames(picture, options);
  return {.directories = {directory}};
}

}  // namespace slidestream::test
