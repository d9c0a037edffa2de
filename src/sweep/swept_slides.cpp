#include "sweep/swept_slides.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "ledger/identity.hpp"
#include "output/text.hpp"
#include "sink/content_hash.hpp"

namespace slidestream {

namespace {

namespace fs = std::filesystem;

/// Where less is cached of what every run reads, it doesn't stay in the cache.
constexpr double still_warm = 0.98;

}  // namespace

std::string inputs_hash(const std::vector<std::string>& slides) {
  std::string text;
  for (const std::string& path : slides) {
    const auto found = look_at(path);
    std::error_code code;
    const fs::path canonical = fs::canonical(path, code);
    text += (code ? path : canonical.string()) + '\0' +
            (found ? std::to_string(found->size) + ' ' + std::to_string(found->modified) : "") + '\0';
  }
  return to_hexadecimal(stable_hash(text));
}

bool was_warm(double share, std::uint64_t file_bytes, std::uint64_t bytes_read) noexcept {
  // Less may be read than there is, and more, where something is read twice.
  const auto needed = static_cast<double>(std::min(file_bytes, bytes_read));
  return share * static_cast<double>(file_bytes) >= still_warm * needed;
}

}  // namespace slidestream
