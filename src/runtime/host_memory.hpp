#pragma once

#include <cstddef>
#include <span>

namespace slidestream::runtime {

/// A block of anonymous host memory, taken from the system as it is touched or populated. It begins at a page, and at a
/// huge page where it is as long as one. It is zeros at first, and goes back to the system with this.
class HostMemory {
 public:
  HostMemory() = default;
  /// \throws std::bad_alloc when the address space can't be had.
  explicit HostMemory(std::size_t bytes);
  ~HostMemory();
  HostMemory(HostMemory&& other) noexcept;
  HostMemory& operator=(HostMemory&& other) noexcept;

  std::span<std::byte> bytes() const noexcept { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Takes the pages of `memory`, which begins at one, from the system now; what is in it stays. Several threads that
/// share a block have it sooner. Thread-safe.
void populate(std::span<std::byte> memory) noexcept;
/// The same by so many threads at most, and by fewer where they can't be started. A driver that pins memory takes its
/// pages one after the other, and everybody else waits for it meanwhile: they are there before.
void populate(std::span<std::byte> memory, std::size_t threads) noexcept;

}  // namespace slidestream::runtime
