#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "runtime/host_memory.hpp"

namespace slidestream::runtime {

/// Numbers in memory of their own from the system, zeros at first. The memory is free as soon as they end. A heap that
/// each thread has a part of keeps what one thread takes and another frees.
template <class T>
class HostArray {
  static_assert(std::is_trivial_v<T>);

 public:
  HostArray() = default;
  /// \throws std::bad_alloc
  explicit HostArray(std::size_t count) : memory_(count * sizeof(T)), size_(count) {}
  HostArray(HostArray&& other) noexcept { swap(other); }
  HostArray& operator=(HostArray&& other) noexcept {
    HostArray(std::move(other)).swap(*this);
    return *this;
  }
  ~HostArray() = default;

  void swap(HostArray& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
  }

  T* data() const noexcept { return reinterpret_cast<T*>(memory_.bytes().data()); }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* begin() const noexcept { return data(); }
  T* end() const noexcept { return data() + size_; }
  T& operator[](std::size_t i) const noexcept { return data()[i]; }

 private:
  HostMemory memory_;
  std::size_t size_ = 0;
};

/// Such bytes, for who shares them.
inline std::shared_ptr<std::byte[]> shared_host_bytes(std::size_t bytes) {
  const auto memory = std::make_shared<HostMemory>(bytes);
  return {memory, memory->bytes().data()};
}

}  // namespace slidestream::runtime
