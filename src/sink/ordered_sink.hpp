#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <vector>

#include "sink/image_sink.hpp"

/// \file
/// The order of tiles, which all sinks share.

namespace slidestream {

/// Puts tiles in order and hands them to `write`; what a format does with them is a class derived from this one.
class OrderedSink : public ImageSink {
 public:
  /// \param file  the image's final name.
  /// \param writers  calls of `drain` at a time, and so of `write`.
  OrderedSink(std::filesystem::path file, const PyramidLayout& layout, int writers = 1);

  const PyramidLayout& layout() const noexcept final { return layout_; }
  bool put(int level, TileIndex index, EncodedTile tile) final;
  WrittenTiles drain() final;
  std::int64_t written() const noexcept final { return written_.load(std::memory_order_relaxed); }
  std::uint64_t written_bytes() const noexcept final { return written_bytes_.load(std::memory_order_relaxed); }
  std::vector<PublishedFile> publish() final;
  void drop() noexcept final;

 protected:
  struct Tile {
    int level = 0;
    TileIndex index;
    EncodedTile tile;
  };

  /// Writes tiles that follow each other in the order of publishing. With several writers on several threads.
  /// \return bytes of data. \throws OutputError.
  virtual std::uint64_t write(const std::vector<Tile>& tiles) = 0;

  /// All tiles were written: as `publish`.
  virtual std::vector<PublishedFile> finish() = 0;

  const std::filesystem::path& file() const noexcept { return file_; }

 private:
  bool take(std::vector<Tile>& tiles);

  std::filesystem::path file_;
  PyramidLayout layout_;
  std::int64_t tiles_;
  std::atomic<std::int64_t> written_{0};
  std::atomic<std::uint64_t> written_bytes_{0};

  std::mutex mutex_;
  std::map<std::int64_t, Tile> waiting_;  ///< by position; guarded by mutex_
  std::int64_t next_ = 0;                 ///< position of the tile that is to be written next; guarded by mutex_
  int writers_;
  int draining_ = 0;            ///< calls of `drain`, also those asked for; guarded by mutex_
  bool dropped_ = false;        ///< guarded by mutex_
  std::exception_ptr failure_;  ///< guarded by mutex_
};

}  // namespace slidestream
