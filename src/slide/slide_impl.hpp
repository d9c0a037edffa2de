#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <slidestream/slide.hpp>
#include <vector>

#include "slide/file.hpp"
#include "slide/raw_directory.hpp"
#include "slide/tiff_file.hpp"

namespace slidestream {

/// What decoders need of a level beyond `Level`.
struct LevelDetail {
  std::uint64_t directory_offset = 0;  ///< where its directory lies in the file
  int samples = 1;                     ///< per pixel, interleaved; those beyond the colour's are ignored
  std::vector<TileRange> tiles;        ///< row by row
  std::vector<std::byte> jpeg_tables;  ///< tables that every JPEG tile shares; empty: none
  RawEntry icc;                        ///< where its ICC profile lies; with a count of 0: it has none
};

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

struct Slide::Impl {
  Impl(const std::filesystem::path& path, const OpenOptions& options)
      : file(path, options.retry_opening ? options.retries : 0, options.give_up) {}

  File file;
  SlideInfo info;
  std::vector<Level> coded;                      ///< levels as the file has them
  std::vector<LevelDetail> details;              ///< one a level
  std::vector<std::unique_ptr<TiffPool>> pools;  ///< one a level
};

}  // namespace slidestream
