#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace slidestream {

/// Zeroed memory for one thread's scratch, aligned for every vector unit. Large buffers ask for huge pages: their walks
/// in long strides would miss the TLB otherwise.
template <class T>
class AlignedBuffer {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t count) : count_(count) {
    constexpr std::size_t huge_page = std::size_t{2} << 20;
    if (count > (static_cast<std::size_t>(-1) >> 1) / sizeof(T)) throw std::bad_alloc();
    const std::size_t alignment = count * sizeof(T) >= huge_page / 2 ? huge_page : 128;
    const std::size_t bytes = (count * sizeof(T) + alignment - 1) / alignment * alignment;
    data_.reset(static_cast<T*>(std::aligned_alloc(alignment, bytes > 0 ? bytes : alignment)));
    if (data_ == nullptr) throw std::bad_alloc();
#if defined(__linux__)
    if (alignment == huge_page) madvise(data_.get(), bytes, MADV_HUGEPAGE);  // a wish: works without
#endif
    std::memset(static_cast<void*>(data_.get()), 0, bytes);
  }

  T* data() noexcept { return data_.get(); }
  const T* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return count_; }

 private:
  struct Free {
    void operator()(T* p) const noexcept { std::free(p); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t count_ = 0;
};

}  // namespace slidestream
