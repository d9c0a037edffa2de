#include "synth/synth.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "slidestream/error.hpp"
#include "synth/aperio_file.hpp"
#include "synth/associated.hpp"
#include "synth/description.hpp"
#include "synth/dicom_folder.hpp"
#include "synth/mosaic.hpp"
#include "synth/pyramid.hpp"
#include "synth/tile_encoder.hpp"
#include "synth/tissue.hpp"
#include "synth/workers.hpp"
#include "system/control_groups.hpp"

namespace slidestream {

namespace synth {
namespace {

constexpr std::int64_t largest_side = 10'000'000;                     // pixels
constexpr std::int64_t most_tiles = std::int64_t{1} << 24;            // of level 0
constexpr std::int64_t most_distinct_pixels = std::int64_t{1} << 30;  // kept compressed and reduced
constexpr std::uint64_t classic_limit = 0xFFFFFFFFU - (64U << 20);    // leaves room for directories and pictures

/// A classic TIFF can't hold the slide.
struct Outgrown {};

[[noreturn]] void refuse(const std::string& option, const std::string& allowed, const std::string& found) {
  throw ConfigError("synth: " + option + " must be " + allowed + ", not " + found);
}

void check_range(const std::string& option, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value < least || value > most) {
    refuse(option, "from " + std::to_string(least) + " to " + std::to_string(most), std::to_string(value));
  }
}

std::int64_t tiles_along(std::int64_t pixels, int tile) { return (pixels + tile - 1) / tile; }

void check(const SynthOptions& options) {
  check_range("width", options.width, 1, largest_side);
  check_range("height", options.height, 1, largest_side);
  check_range("tile", options.tile, 16, 4096);
  if (options.tile % 16 != 0) refuse("tile", "a multiple of 16", std::to_string(options.tile));
  check_range("quality", options.quality, 1, 100);
  check_range("levels", options.levels, 1, 16);
  check_range("threads", options.threads, 0, 1024);
  const std::int64_t tiles = tiles_along(options.width, options.tile) * tiles_along(options.height, options.tile);
  if (tiles > most_tiles) {
    throw ConfigError("synth: a slide of " + std::to_string(options.width) + " x " + std::to_string(options.height) +
                      " has " + std::to_string(tiles) + " tiles; at most " + std::to_string(most_tiles) +
                      " are possible: use larger tiles");
  }
  check_range("distinct", options.distinct, 0, most_distinct_pixels / (std::int64_t{options.tile} * options.tile));
  // libtiff leaves the tags out where no tile has an offset, and then it isn't a slide any more.
  check_range("missing tiles", options.missing_tiles, 0, tiles - 1);
  check_range("corrupt tiles", options.corrupt_tiles, 0, tiles - options.missing_tiles);
  if (options.corrupt_tiles > 0 && options.codec == SynthCodec::none) {
    throw ConfigError("synth: uncompressed tiles can't be corrupt: any bytes are pixels");
  }
  check_range("parts", options.parts, 1, 64);
  if (options.format == SynthFormat::svs && (options.parts != 1 || options.offsets != SynthOffsets::basic)) {
    throw ConfigError("synth: parts and tables of offsets are DICOM's");
  }
  if (!(options.mpp >= 0.001 && options.mpp <= 1000.0)) {
    refuse("mpp", "from 0.001 to 1000 micrometres a pixel", std::to_string(options.mpp));
  }
}

/// Which tiles of level 0 are missing and which are corrupt.
struct Defects {
  std::unordered_set<std::int64_t> missing;
  std::unordered_set<std::int64_t> corrupt;
};

Defects choose_defects(const SynthOptions& options, std::int64_t tiles) {
  // Floyd's sample: distinct tiles, each as likely as any other.
  const std::int64_t wanted = std::int64_t{options.missing_tiles} + options.corrupt_tiles;
  std::set<std::int64_t> seen;
  std::vector<std::int64_t> chosen;
  for (std::int64_t last = tiles - wanted; last < tiles; ++last) {
    const auto any =
        static_cast<std::int64_t>(hash(mix(options.seed) + 7, last, 0) % static_cast<std::uint64_t>(last + 1));
    const std::int64_t tile = seen.insert(any).second ? any : *seen.insert(last).first;
    chosen.push_back(tile);
  }
  // The sample's order favours late tiles at its end, so that which defect a tile gets is drawn anew.
  for (std::int64_t i = wanted - 1; i > 0; --i) {
    std::swap(chosen[i], chosen[hash(mix(options.seed) + 8, i, 0) % static_cast<std::uint64_t>(i + 1)]);
  }
  Defects defects;
  defects.missing.insert(chosen.begin(), chosen.begin() + options.missing_tiles);
  defects.corrupt.insert(chosen.begin() + options.missing_tiles, chosen.end());
  return defects;
}

/// A tile of level 0, and its part of the level below.
struct Tile {
  Bytes compressed;
  Bytes quarter;
};

std::filesystem::path without_last_slash(std::filesystem::path path) {
  while (!path.has_filename() && path.has_relative_path()) path = path.parent_path();
  return path;
}

class Writer {
 public:
  Writer(const std::filesystem::path& file, const SynthOptions& options)
      : file_(without_last_slash(file)),
        options_(options),
        columns_(tiles_along(options.width, options.tile)),
        rows_(tiles_along(options.height, options.tile)),
        islands_(options.width, options.height, options.seed),
        defects_(choose_defects(options, columns_ * rows_)) {
    const auto cores = static_cast<std::size_t>(allowed_processors());
    const std::size_t threads = options.threads > 0 ? static_cast<std::size_t>(options.threads) : cores;
    for (std::size_t worker = 0; worker < threads; ++worker) {
      painters_.emplace_back(options.tile, options.seed);
      encoders_.emplace_back(options.codec, options.quality, options.tile);
    }
    if (options.distinct > 0) {
      const std::int64_t distinct = std::min<std::int64_t>(options.distinct, columns_ * rows_);
      mosaic_.emplace(islands_, options.tile, options.seed, static_cast<int>(distinct));
      make_stock();
    }
  }

  SynthSummary write(bool big_tiff) {
    const bool is_tiff = options_.format == SynthFormat::svs;
    const std::unique_ptr<SlideFile> made = open(big_tiff);
    SlideFile& slide = *made;
    // What waits lies beside the slide: in place of a folder there can be no file.
    Pyramid pyramid(is_tiff ? file_ : std::filesystem::path(file_.string() + ".levels"), options_, encoders_);
    const Bytes tables = encoders_.front().tables();

    slide.begin_level(options_.width, options_.height, tables, describe_slide(options_));
    for (std::int64_t row = 0; row < rows_; ++row) {
      write_row(row, slide, pyramid);
      if (is_tiff && !big_tiff && slide.size() + pyramid.size() > classic_limit) throw Outgrown{};
    }
    pyramid.finish();
    slide.end_level();

    const Picture thumbnail = pyramid.thumbnail();
    slide.write_picture(Beside::thumbnail, thumbnail, describe_thumbnail(options_, thumbnail));
    for (std::size_t level = 0; level < pyramid.levels().size(); ++level) {
      const LevelSize size = pyramid.levels()[level];
      slide.begin_level(size.width, size.height, tables, describe_level(options_, size));
      for (std::int64_t i = 0; i < pyramid.tiles(level); ++i) slide.write_tile(i, pyramid.tile(level, i));
      slide.end_level();
    }
    const Picture label = make_label(options_.seed);
    slide.write_picture(Beside::label, label, describe_associated("label", label));
    const Picture macro = make_macro(label, thumbnail);
    slide.write_picture(Beside::macro, macro, describe_associated("macro", macro));

    slide.publish();
    return {columns_ * rows_, static_cast<int>(pyramid.levels().size()) + 1, slide.size(), big_tiff};
  }

 private:
  std::unique_ptr<SlideFile> open(bool big_tiff) const {
    if (options_.format == SynthFormat::dicom) return std::make_unique<DicomFolder>(file_, options_);
    return std::make_unique<AperioFile>(file_, options_, big_tiff);
  }

  Tile make_tile(std::size_t worker, const std::vector<std::uint8_t>& rgb) {
    return {encoders_[worker].encode(rgb), reduce_tile(rgb, options_.tile)};
  }

  std::vector<std::uint8_t> canvas() const {
    return std::vector<std::uint8_t>(static_cast<std::size_t>(options_.tile) * options_.tile * 3);
  }

  void make_stock() {
    stock_.resize(mosaic_->stock().size());
    parallel_for(painters_.size(), static_cast<std::int64_t>(stock_.size()), [&](std::int64_t i, std::size_t worker) {
      std::vector<std::uint8_t> rgb = canvas();
      const Mosaic::Tile& tile = mosaic_->stock()[i];
      painters_[worker].paint_repeatable(tile.corners, tile.variant, rgb);
      stock_[i] = make_tile(worker, rgb);
    });
  }

  void write_row(std::int64_t row, SlideFile& slide, Pyramid& pyramid) {
    std::vector<Tile> own;
    std::vector<const Tile*> tiles(columns_);
    if (mosaic_) {
      for (std::int64_t column = 0; column < columns_; ++column) {
        tiles[column] = &stock_[mosaic_->choose(column, row)];
      }
    } else {
      own.resize(columns_);
      parallel_for(painters_.size(), columns_, [&](std::int64_t column, std::size_t worker) {
        std::vector<std::uint8_t> rgb = canvas();
        painters_[worker].paint(islands_, column * options_.tile, row * options_.tile, rgb);
        own[column] = make_tile(worker, rgb);
      });
      for (std::int64_t column = 0; column < columns_; ++column) tiles[column] = &own[column];
    }

    std::vector<const Bytes*> quarters;
    for (std::int64_t column = 0; column < columns_; ++column) {
      const std::int64_t index = row * columns_ + column;
      quarters.push_back(&tiles[column]->quarter);
      // A tile that libtiff never gets has byte count and offset 0; in DICOM it has no frame.
      if (defects_.missing.contains(index)) continue;
      if (defects_.corrupt.contains(index)) {
        Bytes damaged = tiles[column]->compressed;
        corrupt(options_.codec, damaged);
        slide.write_tile(index, damaged);
      } else {
        slide.write_tile(index, tiles[column]->compressed);
      }
    }
    pyramid.add_row(quarters);
  }

  std::filesystem::path file_;
  SynthOptions options_;
  std::int64_t columns_;
  std::int64_t rows_;
  Islands islands_;
  Defects defects_;
  std::vector<TissuePainter> painters_;  ///< one a thread
  std::vector<TileEncoder> encoders_;    ///< one a thread
  std::optional<Mosaic> mosaic_;
  std::vector<Tile> stock_;
};

}  // namespace
}  // namespace synth

SynthSummary write_synthetic_slide(const std::filesystem::path& file, const SynthOptions& options) {
  synth::check(options);
  synth::Writer writer(file, options);
  try {
    return writer.write(options.big_tiff);
  } catch (const synth::Outgrown&) {
    // How well tiles compress is known only now.
    return writer.write(true);
  }
}

}  // namespace slidestream
