#include "support/host_coders/jpeg2000_decoder.hpp"

#include <algorithm>
#include <cstring>

#include "cuda/colour/convert_colour.hpp"
#include "cuda/jpeg2000/block_bits.hpp"
#include "cuda/jpeg2000/colour.hpp"
#include "cuda/jpeg2000/wavelet.hpp"

namespace slidestream::cuda {
namespace {

constexpr std::uint32_t most_pieces = 1U << 16;

struct BlockSize {
  std::uint32_t width;
  std::uint32_t height;
};

BlockSize size_of_block(const Jpeg2000Band& band, std::uint32_t number) {
  const std::uint32_t x = number % band.blocks_across << band.block_width_log;
  const std::uint32_t y = number / band.blocks_across << band.block_height_log;
  return {std::min(1U << band.block_width_log, band.width - x), std::min(1U << band.block_height_log, band.height - y)};
}

std::uint32_t blocks_in(const Jpeg2000Band& band) {
  if (band.width == 0 || band.height == 0) return 0;
  return band.blocks_across * ((band.height + (1U << band.block_height_log) - 1) >> band.block_height_log);
}

/// One level of a line of `count` values, `stride` apart: low ones first, then high ones.
template <class Wavelet>
void transform_line(typename Wavelet::Value* line, std::uint32_t count, std::size_t stride,
                    std::vector<typename Wavelet::Value>& scratch) {
  const std::uint32_t lows = (count + 1) / 2, highs = count / 2;
  scratch.resize(count);
  typename Wavelet::Column column;
  for (std::uint32_t i = 0; i < lows; ++i) {
    column.push(i, lows, highs, line[i * stride], i < highs ? line[(lows + i) * stride] : typename Wavelet::Value{},
                [&scratch](std::uint32_t at, typename Wavelet::Value value) { scratch[at] = value; });
  }
  for (std::uint32_t i = 0; i < count; ++i) line[i * stride] = scratch[i];
}

}  // namespace

HostArena::HostArena() : memory_(MqTables::bytes + LaneArena::warp_bytes) {
  const auto tables_made = make_mq_tables();
  std::copy(tables_made.begin(), tables_made.end(), memory_.begin());
}

std::uint32_t HostArena::load(std::uint32_t at) const noexcept {
  std::uint32_t value = 0;
  std::memcpy(&value, memory_.data() + at, sizeof(value));
  return value;
}
std::uint32_t HostArena::load_byte(std::uint32_t at) const noexcept { return memory_[at]; }
void HostArena::store(std::uint32_t at, std::uint32_t value) const noexcept {
  std::memcpy(memory_.data() + at, &value, sizeof(value));
}

HostJpeg2000Decoder::HostJpeg2000Decoder()
    : state_(most_tag_nodes + 2 * most_blocks), blocks_(most_blocks), pieces_(most_pieces) {}

Jpeg2000Reason HostJpeg2000Decoder::decode(std::span<const std::byte> bytes, const TileDemand& demand) {
  bytes = find_jpeg2000_codestream(bytes);
  Jpeg2000Header header;
  Jpeg2000Reason reason = parse_jpeg2000_header(bytes, header);
  if (reason != Jpeg2000Reason::none) return reason;
  PixelsOf pixels_of = PixelsOf::first;
  reason = judge_jpeg2000(header.parameters, demand, pixels_of);
  if (reason != Jpeg2000Reason::none) return reason;
  coding_ = {};
  reason = make_coding(header.parameters, components_for(pixels_of), coding_);
  if (reason != Jpeg2000Reason::none) return reason;
  padded_.assign(bytes.begin(), bytes.end());
  padded_.resize((bytes.size() + 15) / 16 * 16);
  reason = decode_tile(padded_, 0, {header.parts.data(), header.part_count}, coding_);
  if (reason == Jpeg2000Reason::none) make_pixels(coding_, demand.format, pixels_of);
  return reason;
}

Jpeg2000Reason HostJpeg2000Decoder::decode(std::uint8_t* plane, const Jpeg2000Batch& batch, std::uint32_t number,
                                           std::span<const std::byte> compressed, const ColourProgram* colours) {
  const std::byte* upload = batch.upload().data();
  const Jpeg2000UploadLayout& layout = batch.layout();
  const auto& tile = reinterpret_cast<const Jpeg2000DeviceTile*>(upload + layout.tiles)[number];
  const auto& coding = reinterpret_cast<const Jpeg2000Coding*>(upload + layout.codings)[tile.coding];
  const auto* parts = reinterpret_cast<const Jpeg2000TilePart*>(upload + layout.parts) + tile.first_part;
  const Jpeg2000Reason reason = decode_tile(compressed, tile.offset, {parts, tile.parts}, coding);
  if (reason != Jpeg2000Reason::none) return reason;
  const auto write = [&](const PixelFormat& format, PixelsOf pixels_of, std::int64_t origin, std::uint32_t pitch) {
    if (pitch == 0) return;
    if (tile.converted != 0) {
      make_converted(coding, format, tile.rgb_of, *colours);
    } else {
      make_pixels(coding, format, pixels_of);
    }
    const auto bytes = static_cast<std::int64_t>(format.pixel_bytes());
    for (std::int64_t y = tile.first_row; y < tile.first_row + tile.rows; ++y) {
      const std::uint8_t* from = pixels_.data() + bytes * (y * coding.width + tile.first_column);
      std::copy_n(from, bytes * tile.columns, plane + origin + y * pitch + bytes * tile.first_column);
    }
  };
  write(luminance_format, tile.luminance_of, tile.luminance_origin, tile.luminance_pitch);
  write(rgb_format, tile.rgb_of, tile.rgb_origin, tile.rgb_pitch);
  return reason;
}

Jpeg2000Reason HostJpeg2000Decoder::decode_tile(std::span<const std::byte> compressed, std::uint32_t offset,
                                                std::span<const Jpeg2000TilePart> parts, const Jpeg2000Coding& coding) {
  std::uint32_t piece_count = 0;
  Jpeg2000Reason reason = read_packets(reinterpret_cast<const std::uint8_t*>(compressed.data()) + offset, offset,
                                       parts.data(), static_cast<std::uint32_t>(parts.size()), coding,
                                       {state_.data(), 1, coding.nodes, coding.all_blocks}, blocks_.data(),
                                       {pieces_.data(), &piece_count, most_pieces});
  planes_.assign(plane_margin, 0);
  for (std::uint32_t b = 0; b < coding.bands_used && reason == Jpeg2000Reason::none; ++b) {
    const Jpeg2000Band& band = coding.bands[b];
    for (std::uint32_t i = 0; i < blocks_in(band) && reason == Jpeg2000Reason::none; ++i) {
      reason = decode_block(compressed, band, i, blocks_[band.first_block + i]);
    }
  }
  if (reason != Jpeg2000Reason::none) return reason;
  if (coding.reversible != 0) {
    transform<Wavelet53>(coding);
  } else {
    transform<Wavelet97>(coding);
  }
  return reason;
}

Jpeg2000Reason HostJpeg2000Decoder::decode_block(std::span<const std::byte> compressed, const Jpeg2000Band& band,
                                                 std::uint32_t number, Jpeg2000Block& block) {
  if (block.passes == 0) return Jpeg2000Reason::none;
  const BlockSize size = size_of_block(band, number);
  stream_.resize(stream_words(block.length));
  if (!join_block(reinterpret_cast<const std::uint8_t*>(compressed.data()), block, pieces_.data(), stream_.data())) {
    return Jpeg2000Reason::bad_stuffing;
  }
  block.planes = static_cast<std::uint32_t>(planes_.size());
  planes_.resize(planes_.size() + block_words(size.width, size.height, block.coded_planes));
  planes_.resize(planes_.size() + plane_margin);
  const BlockJob job{0, bit_words(block.length) - 1, block.planes,
                     block_shape(size.width, size.height, band.orientation, block.passes, band.block_style)};
  if (band.block_style != 0) {
    decode_bits<true>(job);
  } else {
    decode_bits<false>(job);
  }
  return Jpeg2000Reason::none;
}

template <bool styled>
void HostJpeg2000Decoder::decode_bits(const BlockJob& job) {
  BlockDecoder<HostArena, styled> decoder;
  decoder.start(job, stream_.data(), arena_, HostArena::lane, HostArena::tables);
  bool busy = true;
  while (busy) {
    if (!decoder.ready()) {
      if (decoder.holds()) {
        decoder.refetch(arena_, planes_.data());
      } else {
        busy = decoder.advance(arena_, planes_.data(), HostArena::tables);
      }
    }
    if (busy && decoder.ready()) decoder.step(arena_, stream_.data(), HostArena::tables);
  }
}

template <class Wavelet>
void HostJpeg2000Decoder::place_band(const Jpeg2000Coding& coding, const DecodedComponent& component,
                                     std::uint32_t number, std::vector<typename Wavelet::Value>& values) const {
  const Jpeg2000Band& band = coding.bands[component.first_band + number];
  const std::uint32_t levels_left = number == 0 ? component.levels : component.levels - (number - 1) / 3;
  const std::uint32_t kind = number == 0 ? 0 : (number - 1) % 3 + 1;
  const std::size_t pitch = component.width;
  const std::size_t origin = ((kind & 2U) != 0 ? reduced(component.height, levels_left) : 0) * pitch +
                             ((kind & 1U) != 0 ? reduced(component.width, levels_left) : 0);
  for (std::uint32_t i = 0; i < blocks_in(band); ++i) {
    const Jpeg2000Block& block = blocks_[band.first_block + i];
    const BlockSize size = size_of_block(band, i);
    const BlockScale scale = block_scale(block.passes, block.bit_planes, block.coded_planes, band.half_step);
    const std::uint32_t words = plane_words(size.width, size.height);
    const std::uint32_t* signs = planes_.data() + block.planes;
    for (std::uint32_t y = 0; y < size.height; ++y) {
      for (std::uint32_t x = 0; x < size.width; ++x) {
        const std::uint32_t word = y / 4 * ((size.width + 7) / 8) + x / 8, shift = x % 8 * 4 + y % 4;
        std::uint32_t magnitude = 0;
        for (std::uint32_t plane = 0; plane < block.coded_planes; ++plane) {
          magnitude = magnitude << 1 | (signs[words * (2 + plane) + word] >> shift & 1U);
        }
        const std::size_t row = (i / band.blocks_across << band.block_height_log) + y;
        const std::size_t column = (i % band.blocks_across << band.block_width_log) + x;
        const std::uint32_t negative = magnitude != 0 ? signs[word] >> shift & 1U : 0;
        values[origin + row * pitch + column] = Wavelet::value(magnitude, negative, scale);
      }
    }
  }
}

template <class Wavelet>
void HostJpeg2000Decoder::transform(const Jpeg2000Coding& coding) {
  using Value = typename Wavelet::Value;
  std::vector<Value> scratch;
  for (std::uint32_t c = 0; c < coding.components; ++c) {
    const DecodedComponent& component = coding.decoded[c];
    std::vector<Value>& values = values_[c].template of<Wavelet>();
    values.assign(std::size_t{component.width} * component.height, Value{});
    for (std::uint32_t band = 0; band < component.bands(); ++band) place_band<Wavelet>(coding, component, band, values);
    for (std::uint32_t left = component.levels; left-- > 0;) {
      const std::uint32_t width = reduced(component.width, left), height = reduced(component.height, left);
      for (std::uint32_t y = 0; y < height; ++y) {
        transform_line<Wavelet>(values.data() + std::size_t{y} * component.width, width, 1, scratch);
      }
      for (std::uint32_t x = 0; x < width; ++x) {
        transform_line<Wavelet>(values.data() + x, height, component.width, scratch);
      }
    }
  }
}

template <class Wavelet>
void HostJpeg2000Decoder::make_pixels_of(const Jpeg2000Coding& coding, int channels, PixelsOf pixels_of) {
  const auto at = [&](std::uint32_t c, std::uint32_t x, std::uint32_t y) {
    const DecodedComponent& component = coding.decoded[c];
    return values_[c].template of<Wavelet>()[std::size_t{y / component.dy} * component.width + x / component.dx];
  };
  pixels_.clear();
  for (std::uint32_t y = 0; y < coding.height; ++y) {
    for (std::uint32_t x = 0; x < coding.width; ++x) {
      if (components_for(pixels_of) == 1) {
        pixels_.insert(pixels_.end(), static_cast<std::size_t>(channels),
                       first_of(Wavelet::rounded(at(0, x, y)), pixels_of));
        continue;
      }
      const ColourSamples samples =
          undo_colour_transform(coding.colour_transform != 0, at(0, x, y), at(1, x, y), at(2, x, y));
      const Rgb rgb = rgb_of(samples, pixels_of);
      if (channels == 1) {
        pixels_.push_back(luminance(rgb.red, rgb.green, rgb.blue));
      } else {
        pixels_.insert(pixels_.end(), {rgb.red, rgb.green, rgb.blue});
      }
    }
  }
}

void HostJpeg2000Decoder::make_converted(const Jpeg2000Coding& coding, const PixelFormat& format, PixelsOf pixels_of,
                                         const ColourProgram& colours) {
  make_pixels(coding, rgb_format, pixels_of);
  const std::size_t count = pixels_.size() / 3;
  const auto channels = static_cast<std::size_t>(format.channels);
  for (std::size_t i = 0; i < count; ++i) {
    const Rgb to = converted_by_steps(colours, {pixels_[3 * i], pixels_[3 * i + 1], pixels_[3 * i + 2]});
    const std::uint8_t values[] = {to.red, to.green, to.blue};
    const std::uint8_t grey = luminance(to.red, to.green, to.blue);
    std::copy_n(channels == 1 ? &grey : values, channels, pixels_.data() + channels * i);
  }
  pixels_.resize(channels * count);
}

void HostJpeg2000Decoder::make_pixels(const Jpeg2000Coding& coding, const PixelFormat& format, PixelsOf pixels_of) {
  if (coding.reversible != 0) {
    make_pixels_of<Wavelet53>(coding, format.channels, pixels_of);
  } else {
    make_pixels_of<Wavelet97>(coding, format.channels, pixels_of);
  }
}

}  // namespace slidestream::cuda
