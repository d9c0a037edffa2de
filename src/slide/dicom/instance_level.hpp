#pragma once

#include <cstdint>
#include <memory>
#include <slidestream/slide.hpp>
#include <string>

#include "slide/dicom/instance.hpp"
#include "slide/file.hpp"

/// \file
/// The level that an instance describes.

namespace slidestream::dicom {

/// One file of a series, opened.
struct OpenFile {
  std::unique_ptr<File> file;
  std::string name;  ///< in errors
  Instance instance;
};

/// Refuses a file in one line that names it. The file outlives this.
class Refusal {
 public:
  explicit Refusal(const OpenFile& file) : file_(file) {}
  [[noreturn]] void operator()(const std::string& cause) const { throw_slide_error(file_.name, cause); }
  void require(std::int64_t value, std::int64_t only, const char* element) const {
    if (value != only) {
      (*this)(std::string(element) + " " + std::to_string(value) +
              " isn't supported; supported: " + std::to_string(only));
    }
  }
  void require_positive(std::int64_t value, const char* element) const {
    if (value <= 0) (*this)(std::string(element) + " is missing, or 0");
  }

 private:
  const OpenFile& file_;
};

/// What an instance says of its image's size and coding. \throws SlideError where that isn't supported.
Level level_of(const OpenFile& file, const OpenOptions& options);

}  // namespace slidestream::dicom
