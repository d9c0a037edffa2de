#include <cstring>
#include <slidestream/error.hpp>
#include <string>
#include <utility>

#include "slide/decode_memory.hpp"
#include "slide/jpeg2000_decoder.hpp"
#include "slide/jpeg_decoder.hpp"
#include "slide/tiff/lerc_tile.hpp"
#include "slide/tiff/lzma_tile.hpp"
#include "slide/tiff/plane_tiles.hpp"
#include "slide/tiff/tiff_container.hpp"
#include "slide/tile_job.hpp"
#include "slide/uncompressed.hpp"
#include "slide/webp_tables.hpp"

namespace slidestream {
namespace {

/// A handle from the level's pool; it goes back when it has done its work, and is closed when that threw.
class Lease {
 public:
  Lease(const File& file, const TiffContainer::LevelPlace& level, std::uint64_t largest_allocation)
      : pool_(*level.pool), handle_(pool_.take(file, level.directory, largest_allocation)) {}
  TiffFile& operator*() const noexcept { return *handle_; }
  void give_back() { pool_.give_back(std::move(handle_)); }

 private:
  TiffPool& pool_;
  std::unique_ptr<TiffFile> handle_;
};

}  // namespace

std::unique_ptr<TiffFile> TiffPool::take(const File& file, std::uint64_t directory_offset,
                                         std::uint64_t largest_allocation) {
  if (process_ == ::getpid()) {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      std::unique_ptr<TiffFile> handle = std::move(free_.back());
      free_.pop_back();
      return handle;
    }
  }
  auto handle = std::make_unique<TiffFile>(file, largest_allocation);
  if (!handle->set_directory(directory_offset)) throw TileError("libtiff: " + handle->message());
  return handle;
}

void TiffPool::give_back(std::unique_ptr<TiffFile> handle) {
  if (process_ != ::getpid()) return;
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(handle));
}

void TiffContainer::decode(const TileJob& job, std::span<const std::byte> bytes, TileScratch& scratch) const {
  if (job.level.codec != Codec::planes) {
    const auto tile = static_cast<std::uint64_t>(job.index);
    return decode_by_libtiff(job, levels_[job.level_index].planes.first_tile + tile, bytes, scratch);
  }
  JpegDecoder jpeg;
  decode_planes(job, [&](std::size_t plane, const HostPixels& out) { decode_plane(job, plane, out, jpeg, scratch); });
}

void TiffContainer::decode_plane(const TileJob& job, std::size_t plane, const HostPixels& out, JpegDecoder& jpeg,
                                 TileScratch& scratch) const {
  const LevelPlanes& planes = levels_[job.level_index].planes;
  const Level& level = planes.level;
  const std::uint64_t tile =
      plane * static_cast<std::uint64_t>(level.columns * level.rows) + static_cast<std::uint64_t>(job.index);
  const std::vector<std::byte> bytes = read_plane_tile(job.slide, level, planes.coding.tiles[tile]);
  const TileJob one{.slide = job.slide,
                    .level_index = job.level_index,
                    .level = level,
                    .coding = planes.coding,
                    .index = job.index,
                    .demand = demand_for(level, false, job.index, out.format),
                    .from_x = job.from_x,
                    .from_y = job.from_y,
                    .out = out,
                    .limits = job.limits,
                    .has_memory = true};
  switch (level.codec) {
    case Codec::none:
      return decode_uncompressed(one, bytes);
    case Codec::jpeg:
      return jpeg.decode(one, bytes);
    case Codec::jpeg2000:
      return decode_jpeg2000(one, bytes);
    default:
      return decode_by_libtiff(one, tile, bytes, scratch);
  }
}

namespace {

/// What samples are before they are decoded: a value that few tiles end with, and few differences of neighbours are.
constexpr int unwritten = 0xA5;

/// Reads again what may not be whole. libdeflate ends before a part of a stream that doesn't fit, and libtiff takes
/// that for success, as last strips of some files hold rows below the image. zlib fills the samples to their end.
/// \param pitch  bytes of a row of `samples`, each as far from the next of its kind as `step`
template <class Read>
void read_whole_deflate(TiffFile& tiff, std::span<const std::byte> samples, std::size_t pitch, std::size_t step,
                        const Read& read) {
#ifdef TIFFTAG_DEFLATE_SUBCODEC
  int library = DEFLATE_SUBCODEC_ZLIB;
  if (samples.empty() || TIFFGetField(tiff.get(), TIFFTAG_DEFLATE_SUBCODEC, &library) != 1 ||
      library != DEFLATE_SUBCODEC_LIBDEFLATE) {
    return;
  }
  std::uint16_t predictor = PREDICTOR_NONE;
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_PREDICTOR, &predictor);
  auto last = std::to_integer<unsigned>(samples.back());
  // Nothing follows the last byte, so it is the sum of its row.
  if (predictor == PREDICTOR_HORIZONTAL && pitch > step) {
    last -= std::to_integer<unsigned>(samples[samples.size() - 1 - step]);
  }
  if ((last & 0xFFU) != unwritten) return;
  TIFFSetField(tiff.get(), TIFFTAG_DEFLATE_SUBCODEC, DEFLATE_SUBCODEC_ZLIB);
  read();
  TIFFSetField(tiff.get(), TIFFTAG_DEFLATE_SUBCODEC, DEFLATE_SUBCODEC_LIBDEFLATE);
#endif
}

}  // namespace

void TiffContainer::decode_by_libtiff(const TileJob& job, std::uint64_t tile, std::span<const std::byte> bytes,
                                      TileScratch& scratch) const {
  const Level& coded = job.slide.coded_level(job.level_index);
  const std::uint64_t tables = coded.codec == Codec::webp ? webp_table_bytes(bytes) : 0;
  const DecodeMemory::Lease memory = memory_for(job, decoding_bytes(coded, job.coding) + tables);
  const std::size_t size = needed_sample_bytes(job);
  // Up to there libtiff keeps its codec, too.
  const bool is_large = size > most_kept_bytes;
  std::unique_ptr<std::byte[]> own;
  if (is_large) {
    own = std::make_unique_for_overwrite<std::byte[]>(size);
  } else if (size > scratch.capacity) {
    scratch.samples = std::make_unique_for_overwrite<std::byte[]>(size);
    scratch.capacity = size;
  }
  std::byte* const samples = is_large ? own.get() : scratch.samples.get();
  // The codecs hold a tile or two at most, besides tables of their own.
  const std::uint64_t tile_bytes =
      static_cast<std::uint64_t>(job.level.tile_width * job.level.tile_height * job.coding.samples);
  Lease handle(file_, levels_[job.level_index], 4 * tile_bytes + (std::uint64_t{1} << 26));
  TiffFile& tiff = *handle;
  tiff.clear_message();
  if (job.level.codec == Codec::lerc) {
    int packing = LERC_ADD_COMPRESSION_NONE;
    TIFFGetField(tiff.get(), TIFFTAG_LERC_ADD_COMPRESSION, &packing);
    const std::int64_t height = job.level.tiled ? job.level.tile_height : job.demand.inside_height;
    check_lerc_tile(bytes, packing,
                    {.width = static_cast<std::uint64_t>(job.level.tile_width),
                     .height = static_cast<std::uint64_t>(height),
                     .samples = static_cast<std::uint64_t>(job.coding.samples)});
  }
  if (job.level.codec == Codec::lzma) check_lzma_tile(bytes, tile_bytes);
  if (job.level.codec == Codec::webp) {
    const std::uint64_t width = webp_width(bytes);
    if (width != static_cast<std::uint64_t>(job.level.tile_width)) {
      throw TileError("its WebP is " + std::to_string(width) + " pixels wide, expected " +
                      std::to_string(job.level.tile_width));
    }
  }
  // Whatever libtiff left unwritten would be of another tile.
  const bool may_leave_some = job.level.codec == Codec::webp || job.level.codec == Codec::deflate;
  if (may_leave_some) std::memset(samples, unwritten, size);
  const auto read = [&] {
    // libtiff takes the input as writable to reverse bits, which it does for FillOrder 2 only.
    void* input = const_cast<std::byte*>(bytes.data());
    const int done = TIFFReadFromUserBuffer(tiff.get(), static_cast<std::uint32_t>(tile), input,
                                            static_cast<tmsize_t>(bytes.size()), samples, static_cast<tmsize_t>(size));
    if (done != 1) throw TileError("libtiff: " + tiff.message());
  };
  read();
  if (job.level.codec == Codec::deflate) {
    const auto pitch = static_cast<std::size_t>(job.level.tile_width * job.coding.samples);
    read_whole_deflate(tiff, {samples, size}, pitch, static_cast<std::size_t>(job.coding.samples), read);
  }
  if (!is_large) handle.give_back();
  write_interleaved(job, samples);
}

}  // namespace slidestream
