#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "codec/planar_encoder.hpp"
#include "sink/file_marks.hpp"
#include "sink/image_formats.hpp"
#include "sink/ordered_sink.hpp"
#include "sink/partial_file.hpp"
#include "sink/partial_folder.hpp"
#include "sink/zarr_metadata.hpp"
#include "sink/zarr_shards.hpp"

namespace slidestream {

namespace {

/// Threads that write chunks of one image at a time.
constexpr int chunk_writers = 8;

class OmeZarrSink final : public OrderedSink {
 public:
  OmeZarrSink(const std::filesystem::path& file, const ImageDescription& description, const ImageOptions& options)
      // A shard takes one chunk after the other.
      : OrderedSink(file, PyramidLayout(description.size, options.tile, options.levels),
                    options.zarr_version == 3 ? 1 : chunk_writers),
        description_(description),
        options_(options),
        format_(description.format),
        fill_(blank_sample(description)),
        folder_(file, partial_name(file)),
        shards_(folder_) {
    folder_.begin([&] {
      const auto [attributes, mark] = zarr_mark(options);
      folder_.write(attributes, mark);
      for (const auto& [name, text] : zarr_metadata(layout(), description, options)) {
        if (name == attributes) {
          folder_.replace(name, text);
        } else {
          folder_.write(name, text);
        }
      }
    });
  }

  std::unique_ptr<TileEncoder> make_encoder() const override {
    return make_planar_encoder(options_.compression, format_, options_.tile, fill_);
  }

  void set_values(const std::vector<ValueRange>& values) override {
    if (values.empty()) return;
    const auto [name, text] = zarr_attributes(layout(), description_, options_, values);
    folder_.replace(name, text);
  }

  void discard() noexcept override { folder_.discard(); }

 protected:
  std::uint64_t write(const std::vector<Tile>& tiles) override {
    std::uint64_t bytes = 0;
    for (const Tile& tile : tiles) {
      const std::string level = std::to_string(tile.level);
      const std::string row = "/" + std::to_string(tile.index.row);
      int channel = 0;
      for (const auto plane : planes_of(tile.tile.bytes, format_.channels)) {
        const std::string place = std::to_string(channel++) + row;
        bytes += plane.size();
        if (options_.zarr_version == 3) {
          shards_.add(level + "/c/" + place + "/0", plane, layout().columns(tile.level));
        } else {
          folder_.write(level + "/" + place + "/" + std::to_string(tile.index.column), plane);
        }
      }
    }
    return bytes;
  }

  std::vector<PublishedFile> finish() override {
    folder_.publish();
    return {{file(), folder_.bytes(), folder_.digest()}};
  }

 private:
  ImageDescription description_;
  ImageOptions options_;
  PixelFormat format_;
  std::vector<std::byte> fill_;
  PartialFolder folder_;
  ZarrShards shards_;  ///< whoever drains, and `publish`
};

bool is_own_attributes(const std::filesystem::path& file) { return has_mark(file, "\"slidestream\":"); }

bool is_own_ome_zarr(const std::filesystem::path& folder) {
  return is_own_attributes(folder / ".zattrs") || is_own_attributes(folder / "zarr.json");
}

/// The attributes come first.
std::optional<bool> is_own_begun_ome_zarr(const std::filesystem::path& folder) {
  for (const char* name : {".zattrs", "zarr.json"}) {
    std::error_code code;
    const std::filesystem::path file = folder / name;
    const bool is_there = std::filesystem::exists(std::filesystem::symlink_status(file, code));
    if (is_there) return is_empty_file(file) || is_own_attributes(file);
  }
  return std::nullopt;
}

}  // namespace

ImageFormatTraits ome_zarr_traits() {
  using enum TileCompression;
  return {.format = ImageFormat::ome_zarr,
          .suffixes = {".ome.zarr", ".zarr"},
          .tile = 1024,
          .compressions = {blosc_lz4, none, zstd},
          .compression = [](const auto& config, const auto&) { return config.zarr_version == 2 ? blosc_lz4 : zstd; },
          .is_folder = true,
          .has_planes = true,
          .make = make_ome_zarr_sink,
          .is_own = is_own_ome_zarr,
          .level_files = {"#", "c", "zarr.json"},
          .files = {".zattrs", ".zgroup", "zarr.json"},
          .is_own_begun = is_own_begun_ome_zarr,
          .has_own_part = is_own_ome_zarr};
}

std::unique_ptr<ImageSink> make_ome_zarr_sink(const std::filesystem::path& file, const ImageDescription& description,
                                              const ImageOptions& options) {
  check_image(description, options);
  return std::make_unique<OmeZarrSink>(file, description, options);
}

}  // namespace slidestream
