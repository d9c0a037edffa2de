#include "slide/openslide/handles.hpp"

#include <sys/stat.h>

#include <slidestream/error.hpp>
#include <utility>

namespace slidestream::openslide {

Handles::Handles(std::shared_ptr<const Library> library, std::filesystem::path path, int descriptor)
    : library_(std::move(library)), path_(std::move(path)), descriptor_(descriptor) {}

Handles::~Handles() {
  if (process_ != ::getpid()) {
    for (std::unique_ptr<Handle>& handle : free_) static_cast<void>(handle.release());
    return;
  }
  free_.clear();
  if (cache_ != nullptr) library_->functions().cache_release(cache_);
}

void Handles::set_cache(std::size_t bytes, const Handle& first) {
  cache_bytes_ = bytes;
  if (!library_->has_caches()) return;
  cache_ = library_->functions().cache_create(bytes);
  library_->functions().set_cache(first.get(), cache_);
}

std::unique_ptr<Handle> Handles::take_first(const std::function<bool()>& give_up) const {
  check_file();
  return open_handle(library_, path_, give_up);
}

std::unique_ptr<Handle> Handles::take() {
  if (process_ == ::getpid()) {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      std::unique_ptr<Handle> handle = std::move(free_.back());
      free_.pop_back();
      return handle;
    }
  }
  check_file();
  auto handle = std::make_unique<Handle>(library_, path_);
  if (cache_ != nullptr && process_ == ::getpid()) library_->functions().set_cache(handle->get(), cache_);
  return handle;
}

void Handles::give_back(std::unique_ptr<Handle> handle) {
  if (process_ != ::getpid()) return;
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(handle));
}

void Handles::check_file() const {
  struct ::stat opened {};
  struct ::stat named {};
  if (::fstat(descriptor_, &opened) != 0 || ::stat(path_.c_str(), &named) != 0 || opened.st_dev != named.st_dev ||
      opened.st_ino != named.st_ino) {
    throw Error("the file was replaced");
  }
}

}  // namespace slidestream::openslide
