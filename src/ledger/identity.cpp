#include "ledger/identity.hpp"

#include <sys/stat.h>

#include <limits>

#include "sink/content_hash.hpp"

namespace slidestream {

std::optional<SlideIdentity> look_at(const std::string& path) {
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

bool has_changed(const SlideIdentity& before, SlideIdentity& now, ContentHashPolicy policy, const std::string& path) {
  if (before.size != now.size) return true;
  const bool same_time = before.modified == now.modified;
  const bool ask =
      before.hash && (policy == ContentHashPolicy::always || (policy == ContentHashPolicy::changed && !same_time));
  if (!ask) return !same_time;
  now.hash = file_hash(path);
  return now.hash != before.hash;
}

}  // namespace slidestream
