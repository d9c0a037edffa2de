#include "cli/failure_limit.hpp"

#include <charconv>
#include <slidestream/error.hpp>
#include <system_error>

#include "config/suggest.hpp"

namespace slidestream::cli {

FailureLimit FailureLimit::parse(const std::string& text) {
  FailureLimit limit;
  if (text.empty()) return limit;
  limit.any_ = true;
  limit.text_ = text;
  const bool percent = text.ends_with('%');
  const char* const end = text.data() + text.size() - (percent ? 1 : 0);
  if (percent) {
    const auto [at, error] = std::from_chars(text.data(), end, limit.share_);
    limit.share_ /= 100;
    if (error == std::errc() && at == end && limit.share_ > 0 && limit.share_ <= 1) return limit;
  } else {
    const auto [at, error] = std::from_chars(text.data(), end, limit.number_);
    if (error == std::errc() && at == end && limit.number_ > 0) return limit;
  }
  throw ConfigError("--max-failures is '" + one_line(text) + "'; expected a number from 1, or a share such as 5%");
}

bool FailureLimit::reached(std::size_t failed, std::size_t slides) const noexcept {
  if (!any_ || failed == 0) return false;
  if (share_ > 0) return static_cast<double>(failed) >= share_ * static_cast<double>(slides);
  return failed >= number_;
}

}  // namespace slidestream::cli
