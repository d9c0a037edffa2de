#include <cmath>
#include <slidestream/error.hpp>
#include <string>

#include "config/toml_text.hpp"
#include "sink/image_formats.hpp"

namespace slidestream {

namespace {

constexpr std::int64_t largest_side = 4294967295;           // what TIFF can say
constexpr std::int64_t most_tiles = std::int64_t{1} << 24;  // of level 0, as many as slides may have
constexpr int most_channels = 256;

void require(bool fine, const std::string& what, const std::string& allowed, const std::string& found) {
  if (!fine) throw ConfigError("image: " + what + " must be " + allowed + ", not " + found);
}

void require_between(const std::string& what, std::int64_t value, std::int64_t least, std::int64_t most) {
  require(value >= least && value <= most, what, "from " + std::to_string(least) + " to " + std::to_string(most),
          std::to_string(value));
}

}  // namespace

void check_image(const ImageDescription& description, const ImageOptions& options) {
  require_between("tile", options.tile, 16, 4096);
  require(options.tile % 16 == 0, "tile", "a multiple of 16", std::to_string(options.tile));
  require_between("quality", options.quality, 1, 100);
  require_between("levels", options.levels, 0, 32);
  require_between("channels", description.format.channels, 1, most_channels);
  require_between("width", description.size.width, 1, largest_side);
  require_between("height", description.size.height, 1, largest_side);
  const PyramidLayout layout(description.size, options.tile, 1);
  require(layout.tiles() <= most_tiles, "tile", "larger: at most " + std::to_string(most_tiles) + " are possible",
          std::to_string(options.tile) + " for " + std::to_string(layout.tiles()) + " tiles");
  for (const auto& [what, value] : {std::pair("mpp", description.mpp),
                                    {"mpp_y", description.mpp_y},
                                    {"magnification", description.magnification}}) {
    if (value) require(std::isfinite(*value) && *value > 0, what, "a positive number", to_toml_number(*value));
  }
  require(has_compression(options.format, options.compression), "compression",
          compressions_of(options.format, description.format) + " in this format", name_of(options.compression));
  require(can_encode(options.compression, description.format), "compression",
          "none or zstd for anything but 1 or 3 channels of 8 bits", name_of(options.compression));
  const bool jpeg = options.compression == TileCompression::jpeg || options.compression == TileCompression::copy;
  require(!description.labels || !jpeg, "compression", "none or zstd for labels", name_of(options.compression));
  if (options.compression != TileCompression::copy) return;
  require(options.copied != nullptr, "compression", "jpeg where there are no tiles to be copied", "copy");
  const JpegFrame& frame = options.copied->frame;
  require(frame.width == options.tile && frame.height == options.tile, "tile",
          std::to_string(frame.width) + ", the side of the tiles that are copied", std::to_string(options.tile));
  require(frame.components == static_cast<std::size_t>(description.format.channels), "channels",
          std::to_string(frame.components) + " as in the tiles that are copied",
          std::to_string(description.format.channels));
}

}  // namespace slidestream
