#pragma once

#include <cstddef>
#include <span>

namespace slidestream::runtime {

/// A block of anonymous host memory, page-aligned, taken from the system as it is touched. Kept for the whole run, so
/// that the steady state allocates nothing.
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

}  // namespace slidestream::runtime
