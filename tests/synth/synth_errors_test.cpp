#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <slidestream/error.hpp>
#include <string>

#include "support/file_limit.hpp"
#include "support/test_slides.hpp"
#include "synth/synth.hpp"

namespace slidestream {
namespace {

using test::TemporaryFolder;

std::string refusal(const SynthOptions& options) {
  const TemporaryFolder folder;
  try {
    write_synthetic_slide(folder / "slide.svs", options);
  } catch (const ConfigError& error) {
    CHECK(std::filesystem::is_empty(folder.path()));
    return error.what();
  }
  return "";
}

template <typename Change>
std::string refusal_of(Change change) {
  SynthOptions options;
  change(options);
  return refusal(options);
}

std::ptrdiff_t files_in(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

TEST_CASE("options out of range are refused, by name") {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  const auto names = [](const std::string& message, const std::string& name) {
    CAPTURE(message);
    CAPTURE(name);
    CHECK(message.find(name) != std::string::npos);
    CHECK(message.find('\n') == std::string::npos);
  };
  names(refusal_of([](SynthOptions& options) { options.width = 0; }), "width");
  names(refusal_of([](SynthOptions& options) { options.width = most; }), "width");
  names(refusal_of([](SynthOptions& options) { options.height = -5; }), "height");
  names(refusal_of([](SynthOptions& options) { options.width = options.height = 10'000'000; }), "larger tiles");
  names(refusal_of([](SynthOptions& options) { options.tile = 100; }), "multiple of 16");
  names(refusal_of([](SynthOptions& options) { options.tile = 0; }), "tile");
  names(refusal_of([](SynthOptions& options) { options.tile = 8192; }), "tile");
  names(refusal_of([](SynthOptions& options) { options.quality = 101; }), "quality");
  names(refusal_of([](SynthOptions& options) { options.levels = 0; }), "levels");
  names(refusal_of([](SynthOptions& options) { options.distinct = -1; }), "distinct");
  names(refusal_of([](SynthOptions& options) { options.distinct = 1 << 30; }), "distinct");
  names(refusal_of([](SynthOptions& options) { options.threads = -1; }), "threads");
  names(refusal_of([](SynthOptions& options) { options.mpp = 0.0; }), "mpp");
  names(refusal_of([](SynthOptions& options) { options.mpp = std::numeric_limits<double>::quiet_NaN(); }), "mpp");
  names(refusal_of([](SynthOptions& options) { options.missing_tiles = 768; }), "missing");
  names(refusal_of([](SynthOptions& options) {
          options.missing_tiles = 700;
          options.corrupt_tiles = 69;
        }),
        "corrupt");
  names(refusal_of([](SynthOptions& options) {
          options.codec = SynthCodec::none;
          options.corrupt_tiles = 1;
        }),
        "uncompressed");
}

TEST_CASE("a full disk gives an error with file and reason, and leaves nothing behind (long)") {
  const TemporaryFolder folder;
  SynthOptions options;
  options.width = 700;
  options.height = 500;
  options.tile = 128;
  const std::uint64_t whole = write_synthetic_slide(folder / "whole.svs", options).bytes;
  REQUIRE(files_in(folder.path()) == 1);
  for (std::uint64_t limit = 0; limit < whole; limit += whole / 23) {
    CAPTURE(limit);
    std::string message;
    {
      const test::FileLimit full(limit);
      try {
        write_synthetic_slide(folder / "slide.svs", options);
      } catch (const OutputError& error) {
        message = error.what();
      }
    }
    CHECK(message == (folder / "slide.svs").string() + ": can't be written: File too large");
    CHECK(files_in(folder.path()) == 1);
  }
}

TEST_CASE("a slide that can't be written leaves what was there") {
  const TemporaryFolder folder;
  SynthOptions options;
  options.width = options.height = 256;
  std::ofstream(folder / "slide.svs") << "before";
  {
    const test::FileLimit full(1000);
    CHECK_THROWS_AS(write_synthetic_slide(folder / "slide.svs", options), OutputError);
  }
  std::ifstream stream(folder / "slide.svs");
  CHECK(std::string(std::istreambuf_iterator<char>(stream), {}) == "before");
}

TEST_CASE("places that can't hold a file") {
  const TemporaryFolder folder;
  SynthOptions options;
  options.width = options.height = 256;
  CHECK_THROWS_WITH_AS(
      write_synthetic_slide(folder / "none" / "slide.svs", options),
      ((folder / "none" / "slide.svs").string() + ": can't be written: No such file or directory").c_str(),
      OutputError);
  std::filesystem::create_directory(folder / "folder.svs");
  CHECK_THROWS_WITH_AS(write_synthetic_slide(folder / "folder.svs", options),
                       ((folder / "folder.svs").string() + ": can't be written: it isn't a regular file").c_str(),
                       OutputError);
  REQUIRE(mkfifo((folder / "pipe.svs").c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(write_synthetic_slide(folder / "pipe.svs", options),
                       ((folder / "pipe.svs").string() + ": can't be written: it isn't a regular file").c_str(),
                       OutputError);
  CHECK(std::filesystem::is_fifo(folder / "pipe.svs"));
  CHECK(files_in(folder.path()) == 2);
}

}  // namespace
}  // namespace slidestream
