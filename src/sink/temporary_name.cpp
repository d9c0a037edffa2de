#include "sink/temporary_name.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstddef>
#include <limits>
#include <string>
#include <system_error>

#include "system/process_state.hpp"

namespace slidestream {

namespace {

/// The start of this process. It is looked up once, and again in a process that this one forked.
std::int64_t remembered_start() {
  static const ::pid_t asked_by = ::getpid();
  static const std::int64_t start = own_start();
  return ::getpid() == asked_by ? start : own_start();
}

}  // namespace

std::optional<NamedProcess> process_in(std::string_view name) {
  if (!name.starts_with(temporary_prefix) || !name.ends_with(temporary_suffix)) return std::nullopt;
  name.remove_prefix(temporary_prefix.size());
  name.remove_suffix(temporary_suffix.size());
  std::array<std::int64_t, 3> numbers{};
  std::size_t count = 0;
  for (const char* at = name.data(); count < numbers.size();) {
    const char* const end = name.data() + name.size();
    const auto [after, code] = std::from_chars(at, end, numbers[count]);
    if (code != std::errc() || numbers[count] < 0) return std::nullopt;
    ++count;
    if (after == end) break;
    if (*after != '-' || count == numbers.size()) return std::nullopt;
    at = after + 1;
  }
  if (count < 2 || numbers[0] > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return NamedProcess{numbers[0], count == 3 ? numbers[1] : 0};
}

std::filesystem::path temporary_name(const std::filesystem::path& file) {
  static std::atomic<std::uint64_t> count{0};
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  const std::int64_t start = remembered_start();
  return folder / (std::string(temporary_prefix) + std::to_string(::getpid()) + "-" +
                   (start > 0 ? std::to_string(start) + "-" : std::string()) + std::to_string(count++) +
                   std::string(temporary_suffix));
}

}  // namespace slidestream
