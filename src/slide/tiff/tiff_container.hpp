#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <slidestream/slide.hpp>
#include <span>
#include <utility>
#include <vector>

#include "slide/container.hpp"
#include "slide/slide_impl.hpp"
#include "slide/tiff/level_planes.hpp"
#include "slide/tiff/raw_directory.hpp"
#include "slide/tiff/tiff_file.hpp"

namespace slidestream {

class JpegDecoder;

/// libtiff handles standing at one directory, for the codecs that libtiff owns. One handle serves one thread at a time,
/// so there come to be as many as threads decode at once. In a child of a fork none is kept, as it may have the lock as
/// a thread of its parent had it.
class TiffPool {
 public:
  /// Hands out a handle at the directory. \throws TileError when libtiff can't read the directory again.
  std::unique_ptr<TiffFile> take(const File& file, std::uint64_t directory_offset, std::uint64_t largest_allocation);
  void give_back(std::unique_ptr<TiffFile> handle);

 private:
  const pid_t process_ = ::getpid();
  std::mutex mutex_;
  std::vector<std::unique_ptr<TiffFile>> free_;  // guarded by mutex_
};

/// A TIFF or BigTIFF: Aperio SVS, OME-TIFF, plain TIFF.
class TiffContainer final : public Container {
 public:
  /// Where a level lies.
  struct LevelPlace {
    std::uint64_t directory = 0;  ///< offset
    RawEntry icc;                 ///< its ICC profile; with a count of 0: it has none
    LevelPlanes planes;           ///< where samples lie apart
    std::unique_ptr<TiffPool> pool = std::make_unique<TiffPool>();
  };

  /// The slide's only file, which outlives it.
  explicit TiffContainer(const File& file) : file_(file) {}

  /// \param at  its number
  void add_level(LevelPlace place, std::size_t at) {
    levels_.insert(levels_.begin() + static_cast<std::ptrdiff_t>(at), std::move(place));
  }
  void add_associated(std::uint64_t directory) { associated_.push_back(directory); }

  IccProfile icc_profile(std::size_t level) const override;
  AssociatedImage read_associated(const Slide::Impl& slide, std::size_t index) const override;
  bool guesses_levels() const noexcept override { return true; }
  void make_associated(std::size_t level) override;
  std::uint64_t kept_bytes() const noexcept override;
  /// By libtiff: LZW, Deflate, Zstd, WebP, LZMA, LERC, PackBits. Planes of red, green and blue by their own codec.
  void decode(const TileJob& job, std::span<const std::byte> bytes, TileScratch& scratch) const override;

 private:
  /// `tile` is its number in the directory.
  void decode_by_libtiff(const TileJob& job, std::uint64_t tile, std::span<const std::byte> bytes,
                         TileScratch& scratch) const;
  void decode_plane(const TileJob& job, std::size_t plane, const HostPixels& out, JpegDecoder& jpeg,
                    TileScratch& scratch) const;

  const File& file_;
  std::vector<LevelPlace> levels_;
  std::vector<std::uint64_t> associated_;  ///< where their directories lie
};

/// The profile of a directory's tag ICCProfile; none where its count is 0.
IccProfile icc_profile_of(const File& file, const RawEntry& entry);

bool is_tiff(std::span<const std::byte> first, const File& file);
void open_tiff(Slide::Impl& slide, std::unique_ptr<File> file, const OpenOptions& options);

}  // namespace slidestream
