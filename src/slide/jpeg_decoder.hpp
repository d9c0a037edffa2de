#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "slide/tile_job.hpp"

namespace slidestream {

/// Whether a JPEGTables tag of so many bytes is long enough to hold a table at all; shorter ones count as none.
bool jpeg_tables_hold_a_table(std::uint64_t bytes);

/// Memory that decoding an image takes, in bytes, where all of it comes in one scan that is no progressive one.
std::uint64_t sequential_jpeg_bytes(std::uint64_t width, std::uint64_t samples) noexcept;

/// The same of an image that comes in several scans, as progressive ones do: libjpeg keeps all its coefficients. 0
/// where it comes in one. `front` reaches up to its first scan at least. \throws TileError where it doesn't, or is
/// damaged
std::uint64_t several_scans_jpeg_bytes(std::span<const std::byte> tables, std::span<const std::byte> front);

/// What is wrong with a JPEGTables tag; empty when nothing is.
std::string damage_of_jpeg_tables(std::span<const std::byte> tables);

/// JPEG tiles to luminance or RGB with libjpeg-turbo and its defaults: accurate integer IDCT, fancy upsampling.
/// What components mean decide the slide's photometric tag and what the tile says itself, as `colour_of_jpeg` has it;
/// Aperio writes RGB components without a marker. The frame header says how they are sampled.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(JpegDecoder&&) noexcept;
  JpegDecoder& operator=(JpegDecoder&&) noexcept;

  /// \throws TileError for any libjpeg error, for damaged or incomplete scan data, and for a frame of another size. A
  ///   missing EOI after the last MCU and bytes after EOI are fine.
  void decode(const TileJob& job, std::span<const std::byte> bytes);

 private:
  struct Kept;

  std::vector<std::uint8_t> scratch_;  // some rows of samples
  std::unique_ptr<Kept> kept_;         // what the next tile can be decoded with, if it has the same tables
};

}  // namespace slidestream
