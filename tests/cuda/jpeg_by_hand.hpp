#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "slide/test_tiff.hpp"

/// \file
/// JPEG tiles that encoders don't make: any number, identifiers and sampling of components, markers and tables. Their
/// coefficients are made up, and coded by libjpeg-turbo as a transcoder does; headers are then put together by hand.

namespace slidestream::test {

enum class JpegProcess { baseline, extended, progressive, arithmetic, twelve_bits, lossless };
inline constexpr int jpeg_processes = 6;

/// Where a tile's tables stand.
enum class JpegTables {
  inside,      ///< in the tile
  outside,     ///< in JPEGTables
  both,        ///< in both and different: the tile's count
  split,       ///< those for quantisation in JPEGTables, Huffman's in the tile
  no_huffman,  ///< those for quantisation in the tile, and no others
  none,
};
inline constexpr int jpeg_table_places = 6;

/// Factors of up to four components; a few that can't be, too.
struct JpegSampling {
  std::array<std::array<int, 2>, 4> factors;  ///< horizontal, vertical
  bool first_is_densest;                      ///< of as many components as there are, and usual
};
const std::vector<JpegSampling>& jpeg_samplings();

struct JpegByHand {
  int width = 44;
  int height = 28;
  std::vector<std::uint8_t> ids = {1, 2, 3};       ///< one a component
  std::size_t sampling = 0;                        ///< of `jpeg_samplings`
  std::array<int, 4> quantisation = {0, 1, 1, 1};  ///< number of each component's table, 0 or 1
  JpegProcess process = JpegProcess::baseline;
  JpegTables tables = JpegTables::inside;
  int adobe = -1;  ///< the transform that an Adobe marker names; -1: no marker
  bool jfif = false;
  int restart_interval = 0;
};

Bytes make_jpeg(const JpegByHand& options);

/// The JPEGTables of a level whose tiles have their tables there; empty where they have them themselves.
Bytes make_jpeg_tables(JpegTables tables);

std::string describe(const JpegByHand& options);

/// A JPEG's segments after SOI, with their markers, and from the first scan on all as one.
std::vector<Bytes> jpeg_segments(const Bytes& jpeg);
Bytes join_segments(const std::vector<Bytes>& segments);

}  // namespace slidestream::test
