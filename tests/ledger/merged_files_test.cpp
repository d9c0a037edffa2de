// What a merge says of the files of slides, which stay in the folders of its parts.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ledger/merge.hpp"
#include "ledger_runs.hpp"
#include "support/nobody.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

namespace fs = std::filesystem;

/// The part `a`, whose two slides have files in `images`, and the second one also in `features`.
Config part_with_files(const TemporaryFolder& folder) {
  const auto manifest = make_files(folder, 2);
  Config config = ledger_config(folder / "a");
  Ledger ledger(config);
  ledger.begin(manifest, false);
  for (const std::size_t i : {0, 1}) {
    SlideResult slide = attached_result_of(manifest[i].path, i);
    if (i == 1) slide.artifacts[1].file = "features/slide-1.h5";
    end_with_files(ledger, i, slide);
  }
  return config;
}

}  // namespace

TEST_CASE("a merge leaves no log beside its ledger, also where more files are written from it") {
  const TemporaryFolder folder;
  const Config config = part_with_files(folder);
  const fs::path out = folder / "out";
  std::size_t seen = 0;
  MergeOptions options;
  options.write = [&](const Config& merged) {
    LedgerView view(fs::path(merged.output.dir) / "run.sqlite", ledger_bins);
    view.for_each([&](const SlideResult& slide) { seen += slide.done ? 1 : 0; });
  };
  const auto check_no_log = [&out] {
    CHECK(fs::exists(out / "run.sqlite"));
    for (const char* name : {"run.sqlite-wal", "run.sqlite-shm", "run.sqlite-journal"})
      CHECK_FALSE(fs::exists(out / name));
  };
  for (const std::size_t expected : {2, 4}) {
    CHECK(merge_ledgers({config.output.dir}, out.string(), options).not_written.empty());
    CHECK(seen == expected);
    check_no_log();
  }
  options.write = [](const Config&) { throw OutputError("no room"); };
  const MergeResult merged = merge_ledgers({config.output.dir}, out.string(), options);
  CHECK(merged.not_written == "no room");
  CHECK(merged.corpus.done == 2);
  check_no_log();
}

TEST_CASE("files of a part that are gone are told") {
  const TemporaryFolder folder;
  const Config config = part_with_files(folder);
  const auto warnings = [&] { return merge_ledgers({config.output.dir}, (folder / "out").string()).warnings; };
  CHECK(warnings().empty());
  fs::remove(folder / "a/images/slide-1.sobel.ome.tif");
  const auto told = warnings();
  REQUIRE(told.size() == 1);
  CHECK(contains(told[0], "1 file of slides isn't there: "));
  CHECK(contains(told[0], "a/images/slide-1.sobel.ome.tif; "));
  CHECK(merge_ledgers({config.output.dir}, (folder / "out").string()).absent == 1);
  CHECK(merge_ledgers({config.output.dir}, (folder / "out").string()).absent_bytes == 1001);

  // There in name only.
  const fs::path file = folder / "a/images/slide-1.sobel.ome.tif";
  const fs::path elsewhere = folder / "elsewhere";
  fs::create_directory(elsewhere);
  std::ofstream(elsewhere / "file") << std::string(1001, 'i');
  const auto write = [&file](std::size_t bytes) { std::ofstream(file, std::ios::binary) << std::string(bytes, 'i'); };
  const std::vector<std::pair<std::function<void()>, std::string>> cases = {
      {[&] { write(0); }, " has 0 bytes and had 1001"},
      {[&] { write(1000); }, " has 1000 bytes and had 1001"},
      {[&] { fs::create_directory(file); }, " isn't a file"},
      {[&] { fs::create_directory_symlink(elsewhere, file); }, " isn't a file"}};
  for (const auto& one : cases) {
    CAPTURE(one.second);
    one.first();
    const MergeResult merged = merge_ledgers({config.output.dir}, (folder / "out").string());
    CHECK(merged.absent == 1);
    REQUIRE(merged.warnings.size() == 1);
    CHECK(contains(merged.warnings[0], "1 file of slides isn't as it was made: " + file.string() + one.second + "; "));
    fs::remove(file);
  }
  write(1001);
  CHECK(warnings().empty());
  // A larger disk.
  fs::rename(file, elsewhere / "moved");
  fs::create_symlink(elsewhere / "moved", file);
  const auto link = warnings();
  REQUIRE(link.size() == 1);
  CHECK(contains(link[0],
                 "a/images/slide-1.sobel.ome.tif: 1 file of slides that are done is a link; what it leads to "
                 "has not been read, and verify counts it as differing"));
  CHECK(merge_ledgers({config.output.dir}, (folder / "out").string()).absent == 0);
}

TEST_CASE("files of a part that can't be looked at count as not found, also beside one that is gone") {
  const TemporaryFolder folder;
  const Config config = part_with_files(folder);
  const fs::path out = folder / "out";
  fs::create_directory(out);
  // Whoever merges may do everything but enter the folder: the superuser's right to is given up.
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  for (const fs::path& each : {out, folder / "a"}) REQUIRE(::chmod(each.c_str(), 0777) == 0);
  REQUIRE(::chmod((folder / "a/run.sqlite").c_str(), 0666) == 0);
  {
    const Nobody nobody;
    if (::faccessat(AT_FDCWD, out.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
      MESSAGE("SKIPPED: nobody may reach the folder for temporary files");
      return;
    }
  }
  std::size_t gone = 0;
  SUBCASE("all are there") {}
  SUBCASE("one is gone") { gone = fs::remove(folder / "a/features/slide-1.h5") ? 1 : 0; }
  REQUIRE(::chmod((folder / "a/images").c_str(), 0) == 0);
  MergeResult merged;
  {
    const Nobody nobody;
    merged = merge_ledgers({config.output.dir}, out.string());
  }
  REQUIRE(::chmod((folder / "a/images").c_str(), 0700) == 0);
  CHECK(merged.absent == 3 + gone);
  CHECK(merged.absent_bytes == 1000 + 1001);
  REQUIRE(merged.warnings.size() == 1 + gone);
  CHECK(contains(merged.warnings.back(), "3 files of slides can't be looked at, the first: "));
  CHECK(contains(merged.warnings.front(), gone > 0 ? "1 file of slides isn't there: " : ": Permission denied"));
}
