#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// \file
/// A TIFF writer for tests: it writes what it is told, however wrong.

#include "support/temporary_folder.hpp"

namespace slidestream::test {

using Bytes = std::vector<std::byte>;

enum TagType : std::uint16_t {
  ascii = 2,
  short_ = 3,
  long_ = 4,
  rational = 5,
  undefined = 7,
  slong = 9,
  srational = 10,
  float_ = 11,
  double_ = 12,
  long8 = 16
};

/// One tag: numbers of its type, or raw bytes for ASCII and UNDEFINED.
struct TestTag {
  std::uint16_t tag = 0;
  std::uint16_t type = short_;
  std::vector<std::uint64_t> numbers;
  Bytes raw;
  std::uint64_t denominator = 1;  ///< of fractions
};

struct TestDirectory {
  std::vector<TestTag> tags;  ///< sorted when written
  std::vector<Bytes> tiles;   ///< an empty one gets offset 0 and byte count 0
  bool tiled = true;
  std::vector<TestDirectory> subs;
  bool chained = false;         ///< SubIFDs names the first of `subs` alone, which leads to the second, and so on
  int chain_to = -1;            ///< which of them the last one leads to
  std::uint64_t chain_end = 0;  ///< the place that it leads to without

  TestDirectory& set(std::uint16_t tag, std::uint16_t type, std::vector<std::uint64_t> numbers);
  TestDirectory& set_short(std::uint16_t tag, std::uint64_t value) { return set(tag, short_, {value}); }
  TestDirectory& set_text(std::uint16_t tag, const std::string& text);
  TestDirectory& set_bytes(std::uint16_t tag, const Bytes& bytes);
  TestDirectory& remove(std::uint16_t tag);
};

/// A directory with all that a sound image needs; `tiles` remain to be filled. Compression 1, photometric by samples.
TestDirectory tiled_directory(std::uint32_t width, std::uint32_t height, std::uint32_t tile_width,
                              std::uint32_t tile_height, int samples);
TestDirectory stripped_directory(std::uint32_t width, std::uint32_t height, std::uint32_t rows_per_strip, int samples);
/// A chequered picture in tiles of 64 pixels. Squares are as large as a share of the width says, so that pictures of
/// one shape are levels of each other.
TestDirectory chequered_directory(std::uint32_t width, std::uint32_t height, int brightness = 200);

struct TestTiff {
  std::vector<TestDirectory> directories;
  bool big = false;
  bool big_endian = false;
  int loop_to = -1;  ///< the directory that the last one's "next" points to

  Bytes bytes() const;
};

Bytes read_file(const std::filesystem::path& path);

}  // namespace slidestream::test
