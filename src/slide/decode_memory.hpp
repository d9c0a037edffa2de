#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <slidestream/slide.hpp>
#include <string>
#include <thread>

#include "slide/level_coding.hpp"

namespace slidestream {

/// Bytes of a tile up to which a thread keeps its buffer for the next tile, and no lease counts it: 1024 x 1024 in RGB.
inline constexpr std::size_t most_kept_bytes = std::size_t{3} << 20;

/// The part of `pipeline.memory_mib` that decoders may take in a run is one by this number.
inline constexpr std::uint64_t decode_memory_divisor = 4;

/// Memory that decoders take for tiles, or what small levels take, bounded over all threads of a run. A thread holds
/// one lease at a time, and works while it holds it, so that those who wait are served in the end. One thread may hold
/// a lease for a tile's compressed bytes besides. Thread-safe. A child that was forked may have its lock as a thread of
/// the parent had it: there a lease is given at once, and nothing is counted.
class DecodeMemory {
 public:
  /// \param setting  that says in MiB how much `divisor` times the memory is, for `advice`
  explicit DecodeMemory(std::uint64_t bytes, std::string setting = "pipeline.memory_mib",
                        std::uint64_t divisor = decode_memory_divisor);
  DecodeMemory(const DecodeMemory&) = delete;
  DecodeMemory& operator=(const DecodeMemory&) = delete;

  /// Memory that belongs to its holder.
  class Lease {
   public:
    Lease() = default;
    ~Lease();
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&& other) noexcept;
    /// Whether it is one.
    explicit operator bool() const noexcept { return memory_ != nullptr; }

   private:
    friend class DecodeMemory;
    Lease(DecodeMemory& memory, std::uint64_t bytes) : memory_(&memory), bytes_(bytes) {}
    DecodeMemory* memory_ = nullptr;
    std::uint64_t bytes_ = 0;
    bool is_input_ = false;
  };

  std::uint64_t size() const noexcept { return size_; }

  /// "raise pipeline.memory_mib to 16": with that, decoders may take so many bytes.
  std::string advice(std::uint64_t bytes) const;

  /// Takes `bytes`, at most `size()`, when those who asked before have theirs. None when `give_up`, which
  /// is asked while it waits and may be empty, says so.
  Lease take(std::uint64_t bytes, const std::function<bool()>& give_up);

  /// The same for compressed bytes of a tile, when no other thread has such a lease. While its thread holds it, that
  /// thread may take one more, before all who wait: both together at most `size()`.
  Lease take_input(std::uint64_t bytes, const std::function<bool()>& give_up);

  /// Bytes of such a lease that this thread holds.
  std::uint64_t input_held_here() const;

 private:
  using Lacks = std::function<bool(bool gave_up)>;
  bool wait_while(std::unique_lock<std::mutex>& lock, const Lacks& lacks, const std::function<bool()>& give_up);
  void give_back(std::uint64_t bytes, bool is_input) noexcept;

  bool is_foreign() const noexcept;

  const std::uint64_t size_;
  const std::string setting_;
  const std::uint64_t divisor_;
  const std::int64_t process_;  ///< that made it
  mutable std::mutex mutex_;    ///< of what follows
  std::condition_variable changed_;
  std::uint64_t taken_ = 0;
  std::uint64_t next_ticket_ = 0;
  std::uint64_t served_ = 0;       ///< tickets before this one have their memory, or gave up
  bool has_input_ = false;         ///< a thread has, or waits for, a lease for compressed bytes
  std::uint64_t input_bytes_ = 0;  ///< of that lease; 0: it waits
  std::thread::id input_thread_;   ///< that holds it
  bool input_waits_ = false;       ///< it waits for another lease, before all others
};

/// The most that decoding one tile of a level takes on the CPU, in bytes, besides its compressed bytes and the pixels
/// that are asked for. Nothing where samples lie in the file as they are: `TileReader` counts what it reads of them.
/// Of JPEG it is that of sequential tiles (`several_scans_bytes` has others), of JPEG 2000 that of usual code-blocks,
/// and of WebP that without tables of codes: decoders look at the tile's own bytes.
std::uint64_t decoding_bytes(const Level& coded, const LevelCoding& coding) noexcept;

/// The most that decoding takes of a level's JPEG tiles that come in several scans, by the headers of 16 tiles at most,
/// spread over the level. 0 where none of these does. \throws SlideError and StorageError where they can't be read
std::uint64_t several_scans_bytes(const Slide& slide, std::size_t level);

/// Memory of an open slide's tables of tiles, of what its container keeps, and of the tables of its conversion to sRGB,
/// which other slides may share, in bytes.
std::uint64_t table_bytes(const Slide& slide) noexcept;

/// Most bytes of pictures, ICC profiles and trees of XML that were held at a time while the slide was opened.
std::uint64_t opening_bytes(const Slide& slide) noexcept;

/// Bytes of the memory for decoding that reading its ICC profile's table took while the slide was opened.
std::uint64_t profile_reading_bytes(const Slide& slide) noexcept;

}  // namespace slidestream
