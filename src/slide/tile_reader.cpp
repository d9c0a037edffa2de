#include "slide/tile_reader.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <slidestream/error.hpp>
#include <span>
#include <stdexcept>
#include <string>

#include "slide/decode_memory.hpp"
#include "slide/file.hpp"
#include "slide/slide_impl.hpp"
#include "slide/tile_bytes.hpp"
#include "slide/tile_job.hpp"

namespace slidestream {

namespace {

void whiten(const HostPixels& out) {
  for (std::int64_t y = 0; y < out.height; ++y) std::memset(out.data + y * out.pitch, 255, out.row_bytes());
}

void read_pixels(const Slide& slide, std::size_t level_index, std::int64_t first_column, std::int64_t first_row,
                 const HostPixels& out, BadTilePolicy on_bad_tile, std::vector<bool>* bad) {
  const Level& level = slide.info().levels.at(level_index);
  const bool inside = first_column >= 0 && first_row >= 0 && out.width > 0 && out.height > 0 &&
                      out.width <= level.width - first_column && out.height <= level.height - first_row;
  if (!inside) throw std::invalid_argument("the rectangle to read lies outside the level");
  const std::function<bool()>& give_up = impl_of(slide).give_up;
  TileReader reader;
  for (std::int64_t row = first_row / level.tile_height; row * level.tile_height < first_row + out.height; ++row) {
    for (std::int64_t column = first_column / level.tile_width; column * level.tile_width < first_column + out.width;
         ++column) {
      if (give_up && give_up()) throw_stopped(slide.info().path, "was being read");
      const TilePart part = part_of_tile(level, column, row, first_column, first_row, out);
      const std::int64_t index = row * level.columns + column;
      const TileFate fate = reader.read(slide, level_index, index, part.from_x, part.from_y, part.out, on_bad_tile);
      if (bad != nullptr && fate == TileFate::bad) bad->at(static_cast<std::size_t>(index)) = true;
    }
  }
}

}  // namespace

TilePart part_of_tile(const Level& level, std::int64_t column, std::int64_t row, std::int64_t first_column,
                      std::int64_t first_row, const HostPixels& out) {
  const std::int64_t left = std::max(first_column, column * level.tile_width);
  const std::int64_t top = std::max(first_row, row * level.tile_height);
  const std::int64_t right = std::min(first_column + out.width, (column + 1) * level.tile_width);
  const std::int64_t bottom = std::min(first_row + out.height, (row + 1) * level.tile_height);
  return {left - column * level.tile_width,
          top - row * level.tile_height,
          {out.data + (top - first_row) * out.pitch +
               (left - first_column) * static_cast<std::int64_t>(out.format.pixel_bytes()),
           out.pitch, right - left, bottom - top, out.format}};
}

TileFate TileReader::read(const Slide& slide, std::size_t level_index, std::int64_t index, std::int64_t from_x,
                          std::int64_t from_y, const HostPixels& out, BadTilePolicy on_bad_tile) {
  const Level& level = slide.info().levels.at(level_index);
  const TileRange range = slide.tile(level_index, index);
  if (range.length == 0) {
    whiten(out);
    return TileFate::missing;
  }
  try {
    if (!slide.contains(range)) throw TileError("lies outside the file");
    if (claims_too_many_bytes(slide.coded_level(level_index), range))
      throw TileError("claims more bytes than its pixels could need");
    const bool is_large = range.length > most_kept_bytes;
    DecodeMemory::Lease memory;
    std::unique_ptr<std::byte[]> own;
    if (is_large) {
      // Samples that lie in the file as they are take nothing else to decode. Pieces may be joined.
      const std::uint64_t times = coding_of(slide, level_index).in_items ? 2 : 1;
      memory = level.codec == Codec::none ? memory_for(impl_of(slide), level_index, index, range.length)
                                          : memory_for_input(impl_of(slide), level_index, index, times * range.length);
      own = std::make_unique_for_overwrite<std::byte[]>(range.length);
    } else if (bytes_.size() < range.length) {
      // Growing alone: what is resized is filled with zeros first.
      bytes_.resize(range.length);
    }
    const std::span<std::byte> bytes(is_large ? own.get() : bytes_.data(), range.length);
    slide.read(range.offset, bytes);
    decoder_.decode(slide, level_index, index, bytes, from_x, from_y, out);
    return TileFate::decoded;
  } catch (const TileError& error) {
    if (on_bad_tile == BadTilePolicy::white) {
      whiten(out);
      return TileFate::bad;
    }
    throw_slide_error(slide.info().path, "level " + std::to_string(level_index) + " tile " + std::to_string(index) +
                                             " (column " + std::to_string(index % level.columns) + ", row " +
                                             std::to_string(index / level.columns) + "): " + error.what());
  }
}

void read_luminance(const Slide& slide, std::size_t level, std::int64_t first_column, std::int64_t first_row,
                    const HostPixels& out, BadTilePolicy on_bad_tile) {
  if (out.format != luminance_format) throw std::invalid_argument("read_luminance: the pixels aren't luminance");
  read_pixels(slide, level, first_column, first_row, out, on_bad_tile, nullptr);
}

void read_rgb(const Slide& slide, std::size_t level, std::int64_t first_column, std::int64_t first_row,
              const HostPixels& out, BadTilePolicy on_bad_tile, std::vector<bool>* bad) {
  if (out.format != rgb_format) throw std::invalid_argument("read_rgb: the pixels aren't RGB");
  read_pixels(slide, level, first_column, first_row, out, on_bad_tile, bad);
}

}  // namespace slidestream
