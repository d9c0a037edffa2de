#pragma once

#include <cstddef>
#include <slidestream/slide.hpp>
#include <span>
#include <vector>

#include "codec/jpeg_stream.hpp"

namespace slidestream {

/// A white tile that is coded like another one: components, sampling, tables, markers. What that one brings of tables
/// this one does as well, so that decoders which keep tables from tile to tile have those of the file.
/// \param tables  that tiles share; empty: none. \param like  a JPEG that can be decoded. \param content  of it.
/// \param colour  what its components are. \throws TileError when libjpeg fails, or its Huffman codes can't say white.
std::vector<std::byte> make_white_tile(std::span<const std::byte> tables, std::span<const std::byte> like,
                                       const JpegContent& content, Colour colour);

}  // namespace slidestream
