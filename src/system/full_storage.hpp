#pragma once

#include <cerrno>
#include <slidestream/error.hpp>
#include <string>

/// \file
/// Storage that takes no more.

namespace slidestream {

/// A disk, a quota or the limit of a file's size is full: nothing is wrong with what was asked for.
class FullStorageError : public OutputError {
 public:
  using OutputError::OutputError;
};

/// \param code  of errno
inline bool is_full_storage(int code) noexcept { return code == ENOSPC || code == EDQUOT || code == EFBIG; }

/// \throws FullStorageError where the code says so; OutputError.
[[noreturn]] inline void throw_output_error(int code, const std::string& text) {
  if (is_full_storage(code)) throw FullStorageError(text);
  throw OutputError(text);
}

}  // namespace slidestream
