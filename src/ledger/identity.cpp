#include "ledger/identity.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <limits>
#include <thread>
#include <vector>

#include "sink/content_hash.hpp"
#include "slide/file.hpp"
#include "slide/formats.hpp"

namespace slidestream {

namespace {

std::optional<SlideIdentity> look_at_file(const std::filesystem::path& path) {
  struct ::stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  SlideIdentity identity;
  identity.size = static_cast<std::uint64_t>(status.st_size);
  // Beyond the years 1678 to 2262 all times are one.
  if (__builtin_mul_overflow(std::int64_t{status.st_mtim.tv_sec}, 1'000'000'000, &identity.modified) ||
      __builtin_add_overflow(identity.modified, std::int64_t{status.st_mtim.tv_nsec}, &identity.modified)) {
    identity.modified =
        status.st_mtim.tv_sec < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
  }
  return identity;
}

/// Waits for descriptors, which other slides that are open may give back.
std::vector<std::filesystem::path> files_in_the_end(const std::string& path) {
  constexpr int retries = 6;
  for (int attempt = 0;; ++attempt) {
    try {
      return files_of_slide(path);
    } catch (const DescriptorError&) {
      if (attempt == retries) throw;
    }
    std::this_thread::sleep_for(pause_before_retry(attempt));
  }
}

}  // namespace

std::optional<SlideIdentity> look_at(const std::string& path) {
  const std::vector<std::filesystem::path> files = files_in_the_end(path);
  if (files.size() == 1) return look_at_file(files.front());
  SlideIdentity identity;
  std::string all;
  for (const std::filesystem::path& file : files) {
    const std::optional<SlideIdentity> one = look_at_file(file);
    if (!one) return std::nullopt;
    identity.size += one->size;
    all += file.filename().string() + '/' + std::to_string(one->size) + '/' + std::to_string(one->modified) + '/';
  }
  identity.modified = static_cast<std::int64_t>(stable_hash(all));
  return identity;
}

std::optional<std::uint64_t> content_of(const std::string& path) {
  const std::vector<std::filesystem::path> files = files_in_the_end(path);
  if (files.size() == 1) return file_hash(files.front());
  std::string all;
  for (const std::filesystem::path& file : files) {
    const std::optional<std::uint64_t> one = file_hash(file);
    if (!one) return std::nullopt;
    all += file.filename().string() + '/' + std::to_string(*one) + '/';
  }
  return stable_hash(all);
}

bool has_changed(const SlideIdentity& before, SlideIdentity& now, ContentHashPolicy policy, const std::string& path) {
  if (before.size != now.size || before.side != now.side) return true;
  const bool same_time = before.modified == now.modified;
  const bool ask =
      before.hash && (policy == ContentHashPolicy::always || (policy == ContentHashPolicy::changed && !same_time));
  if (!ask) return !same_time;
  now.hash = content_of(path);
  return now.hash != before.hash;
}

}  // namespace slidestream
