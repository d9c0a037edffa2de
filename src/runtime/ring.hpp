#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

struct io_uring;

namespace slidestream::runtime {

/// One positional read, and what came of it.
struct FileRead {
  int descriptor = -1;
  std::uint64_t offset = 0;  ///< bytes
  std::span<std::byte> to;
  std::int64_t result = 0;  ///< bytes that were read, or minus the system's error
};

/// Many reads under way at a time by one thread: the kernel's io_uring. One thread at a time.
class Ring {
 public:
  /// Reads that are under way at a time.
  static constexpr unsigned most_reads = 64;

  /// \throws std::system_error with the kernel's reason where it gives none; containers often forbid it.
  Ring();
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// Starts the reads, waits for all, and sets their results. Each is one read of the system's: it may be short. None
  /// is under way any more when this returns.
  void read(std::span<FileRead> reads) noexcept;

 private:
  void read_some(std::span<FileRead> reads) noexcept;

  std::unique_ptr<io_uring> ring_;
  bool works_ = true;
};

}  // namespace slidestream::runtime
