#pragma once

#include <cstdint>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/test_tiff.hpp"

/// \file
/// Pictures for tests, their encoders, and the plain decoding that tests compare with.

namespace slidestream::test {

/// Interleaved 8-bit samples.
struct Picture {
  int width = 0;
  int height = 0;
  int samples = 1;
  std::vector<std::uint8_t> data;

  const std::uint8_t* at(int x, int y) const { return data.data() + (y * width + x) * samples; }
};

/// Means of blocks of `by` x `by` pixels, smaller ones at the right and lower edge, rounded half up.
Picture reduced(const Picture& picture, int by);

/// Smooth texture with some noise, different for each seed.
Picture make_picture(int width, int height, int samples, unsigned seed);

/// Pink and purple patches on glass: densities of two stains, which `seed` turns a little.
Picture make_stained_picture(int width, int height, unsigned seed);

/// A part of a picture, its edge samples repeated beyond the edge: a padded tile.
Picture cut(const Picture& picture, int x, int y, int width, int height);

Bytes to_bytes(const Picture& picture);

struct JpegOptions {
  enum class Coding { grey, ycbcr, rgb, unknown } coding = Coding::ycbcr;
  int horizontal = 2;  ///< sampling factors of the first component
  int vertical = 2;
  int chroma_horizontal = 1;  ///< of the others
  int chroma_vertical = 1;
  int quality = 75;
  int restart_interval = 0;
  bool progressive = false;
  bool arithmetic = false;
  bool without_tables = false;  ///< an abbreviated stream: the tables come from `encode_jpeg_tables`
};

Bytes encode_jpeg(const Picture& picture, const JpegOptions& options = {});
Bytes encode_jpeg_tables(const JpegOptions& options = {});

/// libjpeg-turbo's own grey output of a whole JPEG: JCS_GRAYSCALE, JDCT_ISLOW.
Picture decode_jpeg_grey(const Bytes& bytes);
/// libjpeg-turbo's own RGB output with its defaults. `rgb_coded`: what three components are, whatever markers say.
Picture decode_jpeg_rgb(const Bytes& bytes, bool rgb_coded = false);
/// The components as they are coded, without any colour conversion.
Picture decode_jpeg_components(const Bytes& bytes);

struct Jpeg2000Options {
  bool irreversible = true;
  bool colour_transform = true;
  bool jp2 = false;
  int chroma_dx = 1;  ///< components 1 and 2 have a sample for so many columns
  int precision = 8;
  bool is_signed = false;
  int tile_size = 0;  ///< of the codestream's own tiles; 0: one tile
  int chroma_dy = 1;  ///< components 1 and 2 have a sample for so many rows
  int levels = 3;
  int block_width = 64;
  int block_height = 64;
  int progression = 0;  ///< LRCP, RLCP, RPCL, PCRL, CPRL
  int layers = 1;
  float rate = 8;  ///< irreversible: of compression, of the last layer
  bool sop_markers = false;
  bool eph_markers = false;
  std::vector<int> precincts = {};  ///< their sides, of the largest resolution first; the last holds for all others
  char tile_parts = 0;              ///< 'R', 'L' or 'C': a tile-part for each resolution, layer or component
  int block_style = 0;
  bool packet_lengths = false;  ///< PLT and TLM
};

Bytes encode_jpeg2000(const Picture& picture, const Jpeg2000Options& options = {});

/// A codestream of one tile-part whose coding is said by that part's header; the main header then says the contrary of
/// the component transform. Samples stay.
Bytes with_coding_in_tile(Bytes codestream);

/// One component of a whole codestream, without inverse colour transform.
Picture decode_jpeg2000_component(const Bytes& codestream, unsigned component);
/// All components, colour transform undone.
Picture decode_jpeg2000_rgb(const Bytes& codestream);

/// The formula of the design, pixel by pixel.
std::vector<std::uint8_t> formula(const Picture& picture);
/// The first three samples of every pixel; where there are fewer, the first three times.
std::vector<std::uint8_t> rgb_of(const Picture& picture);
/// Sample `s` of every pixel.
std::vector<std::uint8_t> sample(const Picture& picture, int s);

/// The whole of a level through `read_luminance`.
std::vector<std::uint8_t> read_level(const Slide& slide, std::size_t level = 0);

/// The same through `read_rgb`.
std::vector<std::uint8_t> read_level_rgb(const Slide& slide, std::size_t level = 0);

/// What opening, or opening and reading all of level 0, says: "" when all is well, else the error's text.
std::string open_error(const std::filesystem::path& path, const OpenOptions& options = {});
std::string read_error(const std::filesystem::path& path);

}  // namespace slidestream::test
