#pragma once

#include <lcms2.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace slidestream {

/// A context of Little CMS, and the memory that it takes: behind its bound the library finds no more, and fails. For
/// one thread. What was opened in the context is closed before it.
class ProfileMemory {
 public:
  /// \throws std::bad_alloc
  explicit ProfileMemory(std::uint64_t most_bytes);
  ProfileMemory(const ProfileMemory&) = delete;
  ProfileMemory& operator=(const ProfileMemory&) = delete;

  cmsContext context() const noexcept { return context_.get(); }

  /// Whether so many bytes more may be taken; they are then.
  bool take(std::uint64_t bytes) noexcept;
  void give_back(std::uint64_t bytes) noexcept { taken_ -= bytes; }

 private:
  struct DeleteContext {
    void operator()(cmsContext context) const noexcept { cmsDeleteContext(context); }
  };

  std::uint64_t most_bytes_;
  std::uint64_t taken_ = 0;
  std::unique_ptr<std::remove_pointer_t<cmsContext>, DeleteContext> context_;
};

}  // namespace slidestream
