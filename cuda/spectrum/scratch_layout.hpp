#pragma once

#include <cstddef>
#include <cstdint>

namespace slidestream::cuda {

/// Hands out the parts of a scratch buffer one after another, each aligned to 256 bytes. Over a null base it measures.
class ScratchLayout {
 public:
  explicit ScratchLayout(std::byte* base = nullptr) : base_(base) {}

  template <class T>
  T* take(std::size_t count) {
    std::byte* part = base_ == nullptr ? nullptr : base_ + bytes_;
    bytes_ += (count * sizeof(T) + 255) / 256 * 256;
    return reinterpret_cast<T*>(part);
  }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::byte* base_;
  std::size_t bytes_ = 0;
};

}  // namespace slidestream::cuda
