#pragma once

#include <cstddef>
#include <string>

namespace slidestream::cli {

/// The longest that a start may go on failing: a number of slides, or a share of them.
class FailureLimit {
 public:
  /// "20" or "5%"; empty: none. \throws ConfigError.
  static FailureLimit parse(const std::string& text);
  bool reached(std::size_t failed, std::size_t slides) const noexcept;
  /// As it was given.
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  bool any_ = false;
  std::size_t number_ = 0;
  double share_ = 0.0;  ///< instead of the number
};

}  // namespace slidestream::cli
