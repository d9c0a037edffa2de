// How often and how many at a time files are looked at, which is what a start with nothing to do takes on storage that
// is far away. This program's own `stat` counts.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>

#include "sink/file_digest.hpp"
#include "support/temporary_folder.hpp"

namespace {

/// A look at a file waits until so many are under way, or a time that is far too long has passed.
struct Looks {
  std::mutex mutex;
  std::condition_variable more;
  std::string folder;  ///< that is watched; empty: none
  int wanted = 1;      ///< at a time
  int now = 0;
  int most = 0;
  int all = 0;
};

Looks& looks() {
  static Looks made;
  return made;
}

void look_at(const char* path) {
  constexpr std::chrono::seconds far_too_long{20};
  Looks& seen = looks();
  std::unique_lock lock(seen.mutex);
  if (seen.folder.empty() || !std::string_view(path).starts_with(seen.folder)) return;
  ++seen.all;
  seen.most = std::max(seen.most, ++seen.now);
  seen.more.notify_all();
  // The folder itself is looked at alone, before its files are known.
  if (path != seen.folder) seen.more.wait_for(lock, far_too_long, [&seen] { return seen.most >= seen.wanted; });
  --seen.now;
}

}  // namespace

extern "C" int stat(const char* path, struct stat* about) noexcept {
  using Stat = int (*)(const char*, struct stat*);
  static const auto real = reinterpret_cast<Stat>(dlsym(RTLD_NEXT, "stat"));
  look_at(path);
  return real(path, about);
}

using namespace slidestream;

TEST_CASE("each file of a folder is looked at once, many at a time") {
  const test::TemporaryFolder folder;
  constexpr int files = 600;
  std::uint64_t bytes = 0;
  for (int i = 0; i < files; ++i) {
    const std::string part = "image/" + std::to_string(i % 20);
    std::filesystem::create_directories(folder / part);
    const std::string text(static_cast<std::size_t>(i), 'x');
    folder.write(part + "/" + std::to_string(i), text);
    bytes += text.size();
  }
  {
    const std::lock_guard lock(looks().mutex);
    looks().folder = (folder / "image").string();
    looks().wanted = 8;
  }
  CHECK(path_bytes(folder / "image").value_or(0) == bytes);
  {
    const std::lock_guard lock(looks().mutex);
    CHECK(looks().most >= 8);
    CHECK(looks().all >= files);
    CHECK(looks().all <= files + 2);  // the folder itself, too
    looks().all = 0;
    looks().wanted = 1;
  }
  const auto one = folder / "image/1/1";
  CHECK(path_bytes(one).value_or(0) == 1);
  CHECK_FALSE(path_bytes(folder / "image/absent"));
  const std::lock_guard lock(looks().mutex);
  CHECK(looks().all == 2);
  looks().folder.clear();
}
