#include "sink/partial_file.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <fstream>
#include <memory>
#include <slidestream/error.hpp>
#include <thread>
#include <vector>

#include "support/temporary_folder.hpp"

using namespace slidestream;

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
  CHECK_THROWS_AS(publish_whole(whole, full), OutputError);
  CHECK(!std::filesystem::exists(partial_name(whole)));
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
