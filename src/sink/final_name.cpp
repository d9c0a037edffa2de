#include "sink/final_name.hpp"

#include <sys/stat.h>

#include <slidestream/error.hpp>

namespace slidestream {

FinalName::FinalName(std::filesystem::path path) : path_(std::move(path)), first_(identity()) {}

void FinalName::check() const {
  const auto now = identity();
  if (!now || now == first_) return;
  throw OutputError(path_.string() + ": somebody else put it there while it was being made: it stays");
}

std::optional<FinalName::Identity> FinalName::identity() const noexcept {
  struct ::stat status {};
  if (::lstat(path_.c_str(), &status) != 0) return std::nullopt;
  return Identity(status.st_dev, status.st_ino);
}

}  // namespace slidestream
