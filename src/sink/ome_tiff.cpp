#include <sys/uio.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <optional>
#include <slidestream/error.hpp>
#include <string>
#include <utility>

#include "sink/file_marks.hpp"
#include "sink/image_formats.hpp"
#include "sink/image_sink.hpp"
#include "sink/ordered_sink.hpp"
#include "sink/partial_file.hpp"
#include "sink/tiff_head.hpp"

namespace slidestream {

namespace {

/// Frames of zstd that hold nothing, for filling up a tile. Skippable frames are meant for that, but Bio-Formats
/// doesn't read them. A frame is a magic number, a descriptor, a window, a size of 0, 4 or 8 bytes and blocks of
/// nothing of 3 bytes each (RFC 8878, section 3.1).
namespace empty_frame {

constexpr std::uint64_t least = 9;

/// Of its head, which is what the number of blocks can't change.
constexpr std::uint64_t size_field(std::uint64_t length) { return length % 3 * 4; }

constexpr bool is_possible(std::uint64_t length) { return length >= least + size_field(length); }

std::vector<std::byte> make(std::uint64_t length) {
  constexpr std::array<unsigned char, 4> magic{0x28, 0xB5, 0x2F, 0xFD};
  constexpr std::array<unsigned char, 3> descriptors{0x00, 0x80, 0xC0};  // by the size's bytes: 0, 4, 8
  std::vector<std::byte> frame(length);
  std::memcpy(frame.data(), magic.data(), magic.size());
  frame[magic.size()] = static_cast<std::byte>(descriptors[length % 3]);
  frame[length - 3] = std::byte{1};  // the last block
  return frame;
}

}  // namespace empty_frame

/// `pattern` so many times: what is there is doubled until it is all.
std::vector<std::byte> repeated(const std::vector<std::byte>& pattern, std::size_t times) {
  std::vector<std::byte> made(times * pattern.size());
  std::copy_n(pattern.begin(), times == 0 ? 0 : pattern.size(), made.begin());
  for (std::size_t done = pattern.size(); done < made.size(); done *= 2) {
    std::memcpy(made.data() + done, made.data(), std::min(done, made.size() - done));
  }
  return made;
}

/// A tile of nothing.
std::vector<std::byte> blank_pixels(const ImageDescription& description, int tile) {
  return repeated(blank_sample(description),
                  static_cast<std::size_t>(tile) * static_cast<std::size_t>(tile * description.format.channels));
}

/// What follows the placeholder. A reader may see a tile's new length with the placeholder's place; what it then reads
/// behind the placeholder mustn't disturb it. JPEG's decoders stop at EOI, and uncompressed tiles are all of one
/// length. Behind a frame of zstd there may only be whole frames: empty ones here, so that any length that
/// `OmeTiffSink::padding` gives ends with one.
Placeholder make_placeholder(const ImageDescription& description, const ImageOptions& options, TileEncoder& encoder) {
  const std::vector<std::byte> pixels = blank_pixels(description, options.tile);
  const Size side{options.tile, options.tile};
  const auto pitch = static_cast<std::ptrdiff_t>(pixels.size()) / options.tile;
  Placeholder made;
  made.tile = encoder.encode({pixels.data(), pitch, {0, 0, side.width, side.height}, side, description.format});
  if (options.compression == TileCompression::zstd) {
    const std::vector<std::byte> empty = empty_frame::make(empty_frame::least);
    const std::size_t largest = ZSTD_compressBound(pixels.size()) + 4 * empty.size();
    made.behind = repeated(empty, (largest + empty.size() - 1) / empty.size());
  }
  return made;
}

class OmeTiffSink final : public OrderedSink {
 public:
  OmeTiffSink(const std::filesystem::path& file, const ImageDescription& description, const ImageOptions& options,
              std::uint64_t data_at)
      : OrderedSink(file, PyramidLayout(description.size, options.tile, options.levels)),
        compression_(options.compression),
        format_(description.format),
        quality_(options.quality),
        subsampling_(options.subsampling) {
    const auto encoder = make_encoder();
    const Placeholder placeholder = make_placeholder(description, options, *encoder);
    TiffHead head = make_tiff_head(layout(), description, options, encoder->tables(), placeholder);
    tables_ = std::move(head.levels);
    for (const TileTables& level : tables_) {
      zeros_.resize(std::max<std::size_t>(zeros_.size(), level.placeholder_length + 1));
    }
    end_ = std::max<std::uint64_t>(head.bytes.size(), data_at);
    file_.emplace(file, head.bytes);
  }

  std::unique_ptr<TileEncoder> make_encoder() const override {
    return make_tile_encoder(compression_, format_, quality_, layout().tile(), subsampling_);
  }

  void discard() noexcept override { file_->discard(); }

 protected:
  std::vector<PublishedFile> finish() override {
    const std::uint64_t digest = file_->digest();
    file_->publish();
    return {{file(), end_, digest}};
  }

 private:
  /// Tiles of a level one after the other, from `first` of `at_once` on.
  struct Run {
    std::size_t first;
    std::size_t count;
  };

  /// How many bytes are to follow a tile of `length` bytes: none is shorter than the placeholder, so that a reader that
  /// takes the old length with the new offset gets a whole tile all the same.
  std::uint64_t padding(int level, std::uint64_t length) const noexcept {
    if (compression_ == TileCompression::none) return 0;
    const std::uint64_t least = tables_[static_cast<std::size_t>(level)].placeholder_length;
    std::uint64_t wanted = std::max(length, least);
    // TIFF wants tiles to begin at even bytes.
    if (compression_ != TileCompression::zstd) return wanted + wanted % 2 - length;
    // For zstd, so that whole empty frames behind the placeholder fill the same length.
    const auto fits = [&] {
      return (wanted - least) % empty_frame::least == 0 &&
             (wanted == length || empty_frame::is_possible(wanted - length));
    };
    while (!fits()) ++wanted;
    return wanted - length;
  }

  /// Data, then lengths, then offsets: whoever reads in between finds the placeholder or the tile. Returns the bytes of
  /// data.
  std::uint64_t write(const std::vector<Tile>& tiles) override {
    std::vector<::iovec> pieces;
    std::vector<std::uint64_t> offsets;
    std::vector<std::uint64_t> lengths;
    std::deque<std::vector<std::byte>> frames;
    std::uint64_t end = end_;
    for (const Tile& each : tiles) {
      const std::span<const std::byte> bytes = each.tile.bytes;
      const std::uint64_t pad = padding(each.level, bytes.size());
      // A copied tile is as long as it was: the byte that makes the next one begin at an even place isn't part of it.
      const bool as_it_was = compression_ == TileCompression::copy && each.level == 0 && pad == 1 &&
                             bytes.size() >= tables_.front().placeholder_length;
      offsets.push_back(end);
      lengths.push_back(bytes.size() + (as_it_was ? 0 : pad));
      end += bytes.size() + pad;
      pieces.push_back({const_cast<std::byte*>(bytes.data()), bytes.size()});
      if (pad == 0) continue;
      if (compression_ == TileCompression::zstd) frames.push_back(empty_frame::make(pad));
      pieces.push_back({compression_ == TileCompression::zstd ? frames.back().data() : zeros_.data(), pad});
    }
    file_->write(end_, pieces);
    const std::uint64_t bytes = end - std::exchange(end_, end);
    const std::vector<Run> runs = runs_of(tiles);
    for (const Run& run : runs) write_table(tiles, run, lengths, &TileTables::lengths);
    for (const Run& run : runs) write_table(tiles, run, offsets, &TileTables::offsets);
    return bytes;
  }

  std::vector<Run> runs_of(const std::vector<Tile>& tiles) const {
    std::vector<Run> runs;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const bool follows =
          i > 0 && tiles[i].level == tiles[i - 1].level && place_in_table(tiles[i]) == place_in_table(tiles[i - 1]) + 1;
      if (follows) {
        ++runs.back().count;
      } else {
        runs.push_back({i, 1});
      }
    }
    return runs;
  }

  std::uint64_t place_in_table(const Tile& tile) const {
    return static_cast<std::uint64_t>(tile.index.row * layout().columns(tile.level) + tile.index.column);
  }

  void write_table(const std::vector<Tile>& tiles, const Run& run, const std::vector<std::uint64_t>& numbers,
                   std::vector<std::uint64_t> TileTables::*table) {
    const Tile& first = tiles[run.first];
    const auto bytes = std::as_bytes(std::span(numbers).subspan(run.first, run.count));
    for (const std::uint64_t copy : tables_[static_cast<std::size_t>(first.level)].*table) {
      file_->write(copy + 8 * place_in_table(first), bytes);
    }
  }

  TileCompression compression_;
  PixelFormat format_;
  int quality_;
  ChromaSubsampling subsampling_;
  std::optional<PartialFile> file_;  ///< always there; whoever drains, and `publish`
  std::vector<TileTables> tables_;
  std::vector<std::byte> zeros_;
  std::uint64_t end_ = 0;  ///< of the file; whoever drains
};

bool is_own_ome_tiff(const std::filesystem::path& file) {
  return tiff_description(file).find("Creator=\"slidestream ") != std::string::npos;
}

}  // namespace

ImageFormatTraits ome_tiff_traits() {
  using enum TileCompression;
  return {.format = ImageFormat::ome_tiff,
          .suffixes = {".ome.tif", ".ome.tiff", ".tif", ".tiff"},
          .compressions = {jpeg, none, zstd, copy},
          .compression = [](const auto&, const PixelFormat& pixels) { return can_encode(jpeg, pixels) ? jpeg : zstd; },
          .takes_encoded_tiles = true,
          .make = [](const auto& file, const auto& description,
                     const auto& options) { return make_ome_tiff_sink(file, description, options); },
          .is_own = is_own_ome_tiff,
          .is_own_slide = is_own_ome_tiff};
}

std::unique_ptr<ImageSink> make_ome_tiff_sink(const std::filesystem::path& file, const ImageDescription& description,
                                              const ImageOptions& options, std::uint64_t data_at) {
  check_image(description, options);
  return std::make_unique<OmeTiffSink>(file, description, options, data_at);
}

}  // namespace slidestream
