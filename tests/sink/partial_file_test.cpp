#include "sink/partial_file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <slidestream/error.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "support/temporary_folder.hpp"
#include "support/test_data.hpp"

using namespace slidestream;

namespace {

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("what can't get its name leaves nothing behind") {
  const test::TemporaryFolder folder;
  const std::filesystem::path target = folder / "a.ome.tif";
  const std::byte head{1};
  PartialFile file(target, std::span(&head, 1));
  // A folder that holds something isn't replaced by a file.
  std::filesystem::create_directories(target / "b");
  CHECK_THROWS_AS(file.publish(), OutputError);
  CHECK(!std::filesystem::exists(partial_name(target)));

  const std::filesystem::path whole = folder / "b.csv";
  const auto full = [](const std::filesystem::path& path) {
    std::ofstream(path) << "begun";
    throw OutputError(path.string() + ": No space left on device");
  };
  CHECK_THROWS_WITH_AS(publish_whole(whole, full), (whole.string() + ": No space left on device").c_str(), OutputError);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("what is made whole has no partial name, and no folder of its own in the end") {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder / "a.tissue.ome.tif";
  const std::filesystem::path mine = folder.write("a.tissue.partial.ome.tif", std::string("mine"));
  std::ofstream(file) << "before";
  std::filesystem::path made;
  publish_whole(file, [&](const std::filesystem::path& path) {
    made = path;
    CHECK(!std::filesystem::exists(path));
    CHECK(text_of(file) == "before");
    std::ofstream(path) << "whole";
  });
  CHECK(made.filename() == file.filename());
  CHECK(made.parent_path().filename().string().starts_with(".slidestream-"));
  CHECK(text_of(file) == "whole");
  CHECK(text_of(mine) == "mine");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
}

TEST_CASE("a file that is begun has its partial name only with its first bytes, and leaves no other") {
  const test::TemporaryFolder folder;
  const std::filesystem::path target = folder / "a.ome.tif";
  const std::byte head{1};
  {
    const PartialFile file(target, std::span(&head, 1));
    CHECK(std::filesystem::file_size(partial_name(target)) == 1);
    CHECK_THROWS_WITH_AS(PartialFile(target, std::span(&head, 1)),
                         (partial_name(target).string() + ": somebody is writing it").c_str(), OutputError);
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  }
  std::filesystem::remove(partial_name(target));
  std::filesystem::create_directory(partial_name(target));
  CHECK_THROWS_AS(PartialFile(target, std::span(&head, 1)), Error);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("what gets a file's final name while it is written stays, and what had it before is replaced") {
  const test::TemporaryFolder folder;
  const std::filesystem::path target = folder / "a.ome.tif";
  const auto ours = std::as_bytes(std::span("ours", 4));
  {
    PartialFile file(target, ours);
    std::ofstream(target) << "theirs";
    CHECK_THROWS_WITH_AS(file.publish(),
                         doctest::Contains("a.ome.tif: somebody else put it there while it was being made"),
                         OutputError);
  }
  CHECK(text_of(target) == "theirs");
  PartialFile file(target, ours);
  file.publish();
  CHECK(text_of(target) == "ours");
}

TEST_CASE("a file that is deleted and made again is another one") {
  const test::TemporaryFolder folder;
  const std::filesystem::path target = folder / "a.ome.tif";
  const auto state = [&] {
    struct ::statx about {};
    const int code = ::statx(AT_FDCWD, target.c_str(), AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &about);
    return code == 0 && (about.stx_mask & STATX_BTIME) != 0 ? about.stx_ino : 0;
  };
  std::ofstream(target) << "before";
  if (state() == 0) return test::report_skipped("the file system doesn't keep when a file was made");
  // Its times change with its rights.
  {
    PartialFile file(target, std::as_bytes(std::span("ours", 4)));
    std::filesystem::permissions(target, std::filesystem::perms::owner_all);
    file.publish();
  }
  CHECK(text_of(target) == "ours");
  for (int tries = 0; tries < 20; ++tries) {
    PartialFile file(target, std::as_bytes(std::span("ours", 4)));
    const auto before = state();
    // The clock of a file system has ticks.
    ::usleep(20'000);
    std::filesystem::remove(target);
    std::ofstream(target) << "theirs";
    const bool is_alike = state() == before;
    CHECK_THROWS_AS(file.publish(), OutputError);
    CHECK(text_of(target) == "theirs");
    if (is_alike) return;
  }
  MESSAGE("no file got the number of the one before");
}

TEST_CASE("what takes the place of a file that is written isn't discarded with it") {
  const test::TemporaryFolder folder;
  PartialFile file(folder / "a.ome.tif", std::as_bytes(std::span("ours", 4)));
  std::filesystem::rename(folder.write("b", std::string("theirs")), partial_name(folder / "a.ome.tif"));
  file.discard();
  CHECK(text_of(partial_name(folder / "a.ome.tif")) == "theirs");
}

TEST_CASE("of several that begin one file at once exactly one writes it") {
  constexpr int writers = 3;
  using Clock = std::chrono::steady_clock;
  const test::TemporaryFolder folder;
  const std::byte head{1};
  int judged = 0;
  const auto latest = Clock::now() + std::chrono::minutes(1);
  for (int round = 0; round < 300 && Clock::now() < latest; ++round) {
    const auto start = Clock::now();
    const std::filesystem::path target = folder / ("a" + std::to_string(round) + ".ome.tif");
    std::vector<std::unique_ptr<PartialFile>> files(writers);
    std::barrier begin(writers);
    std::vector<std::thread> threads;
    for (int i = 0; i < writers; ++i) {
      threads.emplace_back([&, i] {
        begin.arrive_and_wait();
        try {
          files[static_cast<std::size_t>(i)] = std::make_unique<PartialFile>(target, std::span(&head, 1));
        } catch (const Error&) {
          // Another one has it.
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    // For a second at least one waits for another that begins.
    if (Clock::now() - start > std::chrono::milliseconds(900)) continue;
    ++judged;
    int published = 0;
    for (const auto& file : files) {
      if (file == nullptr) continue;
      REQUIRE_NOTHROW(file->publish());
      ++published;
    }
    REQUIRE(published == 1);
  }
  CHECK(judged > 0);
}
