#include "cli/progress_file.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "support/temporary_folder.hpp"

using namespace slidestream;
using namespace slidestream::cli;

namespace {

Progress writing_images() {
  Progress progress;
  progress.slides_total = 3;
  progress.slides_done = 1;
  progress.tiles_written = 1234;
  progress.bytes_written = 45'000'000;
  progress.files_made = 1;
  progress.seconds = 100;
  progress.images = {{"a/\xff.svs", "images/a.sobel.partial.ome.tif", 34, 1365, 1'000'000}};
  return progress;
}

/// Until it is there, or can't be expected any more.
bool wait_for(const std::filesystem::path& file) {
  for (int i = 0; i < 3000 && !std::filesystem::exists(file); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return std::filesystem::exists(file);
}

}  // namespace

TEST_CASE("what is told of a run is read again, and goes with it") {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = progress_file_of(folder.path());
  CHECK(path == folder / "progress.json");
  std::ofstream(path) << "an earlier process's";
  ProgressFile file(path, [] { return true; });
  CHECK(!std::filesystem::exists(path));
  file.update(writing_images(), {0.25, 0.5});
  REQUIRE(wait_for(path));
  const auto told = read_progress(path);
  REQUIRE(told);
  CHECK(told->process == this_process());
  CHECK(told->share == 0.5);
  CHECK(told->seconds_left == 300);
  CHECK(told->progress.tiles_written == 1234);
  CHECK(told->progress.bytes_written == 45'000'000);
  REQUIRE(told->progress.images.size() == 1);
  CHECK(told->progress.images[0].file == "images/a.sobel.partial.ome.tif");
  CHECK(told->progress.images[0].tiles == 34);
  CHECK(told->progress.images[0].tiles_total == 1365);
  CHECK(told->progress.images[0].bytes == 1'000'000);
  // Nothing else is left in the folder.
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  file.end();
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("another process's folder is left as it is") {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "progress.json") << "another's";
  {
    ProgressFile file(folder / "progress.json", [] { return false; });
    file.update(writing_images(), {});
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  }
  std::string text;
  std::getline(std::ifstream(folder / "progress.json") >> std::ws, text);
  CHECK(text == "another's");
}

TEST_CASE("what is no file has the name and stays") {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "progress.json";
  SUBCASE("an empty folder") { std::filesystem::create_directory(path); }
  SUBCASE("a pipe") { REQUIRE(::mkfifo(path.c_str(), 0600) == 0); }
  const std::filesystem::file_type before = std::filesystem::symlink_status(path).type();
  {
    ProgressFile file(path, [] { return true; });
    CHECK(std::filesystem::symlink_status(path).type() == before);
  }
  CHECK(std::filesystem::symlink_status(path).type() == before);
}

TEST_CASE("what isn't such a file is none") {
  const test::TemporaryFolder folder;
  const auto read = [&folder](const std::string& text) { return read_progress(folder.write("x.json", text)); };
  const std::string whole = progress_json(writing_images(), {}, this_process())
                                .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  CHECK(read(whole));
  CHECK(!read_progress(folder / "none.json"));
  for (const std::string& other : {std::string(), std::string("[]"), std::string("{}"), std::string("{\"version\": 2}"),
                                   whole.substr(0, whole.size() / 2)}) {
    CHECK_MESSAGE(!read(other), other);
  }
  std::string text = whole;
  text.replace(text.find("1365"), 4, "true");
  CHECK(!read(text));
}

TEST_CASE("where it lies") {
  CHECK(progress_file_of("results") == "results/progress.json");
  CHECK(progress_file_of("some/a.ome.tif") == "some/a.partial.progress.json");
  CHECK(progress_file_of("a.dzi") == "a.partial.progress.json");
  // A folder with results may be called as it likes.
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "x.zarr");
  CHECK(progress_file_of(folder / "x.zarr") == folder / "x.partial.progress.json");
  std::ofstream(folder / "x.zarr/run.sqlite") << "";
  CHECK(progress_file_of(folder / "x.zarr") == folder / "x.zarr/progress.json");
}
