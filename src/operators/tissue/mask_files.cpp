#include "operators/tissue/mask_files.hpp"

#include <slidestream/pipeline.hpp>
#include <span>
#include <system_error>

#include "codec/tile_encoder.hpp"
#include "image/label_names.hpp"
#include "image/views.hpp"
#include "operators/tissue/outlines.hpp"
#include "sink/image_sink.hpp"
#include "sink/partial_file.hpp"

namespace slidestream::operators {
namespace {

/// Has `write` make the file, and takes away what it leaves of it when it fails.
template <class Write>
void write_or_remove(const std::filesystem::path& file, const Write& write) {
  try {
    write();
  } catch (...) {
    std::error_code code;
    std::filesystem::remove(partial_name(file), code);
    throw;
  }
}

}  // namespace

void write_outlines(const Mask& mask, const std::filesystem::path& file, const std::optional<double>& mpp,
                    double simplify) {
  const std::string text = geojson_of(mask, mpp, simplify);
  write_or_remove(file, [&] {
    PartialFile partial(file);
    partial.write(0, std::as_bytes(std::span(text)));
    partial.publish();
  });
}

void write_mask(const Mask& mask, const std::filesystem::path& file, const std::string& name,
                const std::vector<std::pair<std::string, std::string>>& settings,
                const std::vector<std::pair<std::string, std::string>>& figures, const std::optional<double>& mpp,
                const std::optional<double>& mpp_y) {
  ImageDescription description;
  description.name = name;
  description.size = mask.size;
  description.format = luminance_format;
  if (mpp) description.mpp = *mpp * mask.scale.x;
  if (mpp_y) description.mpp_y = *mpp_y * mask.scale.y;
  description.channel_names = {channel_of_mask};
  description.labels = true;
  description.settings = settings;
  description.figures = figures;
  description.creator = std::string("slidestream ") + version();
  ImageOptions options;
  options.compression = TileCompression::zstd;
  options.levels = 1;
  const ConstHostView pixels = {reinterpret_cast<const std::byte*>(mask.pixels.data()),
                                mask.size.width,
                                {0, 0, mask.size.width, mask.size.height},
                                mask.size,
                                description.format};
  const auto encoder = make_tile_encoder(options.compression, description.format, options.quality, options.tile);
  write_or_remove(file, [&] {
    const auto sink = make_ome_tiff_sink(file, description, options);
    const PyramidLayout& layout = sink->layout();
    for (std::int64_t row = 0; row < layout.rows(0); ++row) {
      for (std::int64_t column = 0; column < layout.columns(0); ++column) {
        const TileIndex index = {column, row};
        const auto tile = encoder->encode(part_of(pixels, layout.rect(0, index)));
        if (sink->put(0, index, EncodedTile(tile))) sink->drain();
      }
    }
    sink->publish();
  });
}

}  // namespace slidestream::operators
