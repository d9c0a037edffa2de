#include "sink/partial_folder.hpp"

#include <doctest/doctest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <slidestream/error.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sink/stray_files.hpp"
#include "sink/zarr_metadata.hpp"
#include "support/file_limit.hpp"
#include "support/temporary_folder.hpp"

using namespace slidestream;
namespace fs = std::filesystem;

namespace {

/// Sees a folder that is moved, and what is removed from it.
class Watch {
 public:
  explicit Watch(const fs::path& folder)
      : events_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
        watches_(events_ >= 0 && ::inotify_add_watch(events_, folder.c_str(), IN_MOVE_SELF | IN_DELETE) >= 0) {
    // This user's others may have all instances, or all watches.
    can_be_had_ = watches_ || (errno != EMFILE && errno != ENFILE && errno != ENOSPC && errno != ENOSYS);
    if (!can_be_had_) MESSAGE("SKIPPED: inotify can't be had: ", std::strerror(errno));
  }
  ~Watch() {
    if (events_ >= 0) ::close(events_);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  bool can_be_had() const { return can_be_had_; }

  /// How often the folder was moved before the first removal; nothing where none was.
  std::optional<int> moves_before_removal() const {
    REQUIRE(watches_);
    alignas(inotify_event) std::array<char, 4096> buffer{};
    const ssize_t size = ::read(events_, buffer.data(), buffer.size());
    int moves = 0;
    inotify_event event{};
    for (std::size_t at = 0; size > 0 && at < static_cast<std::size_t>(size); at += sizeof event + event.len) {
      std::memcpy(&event, buffer.data() + at, sizeof event);
      if ((event.mask & IN_DELETE) != 0) return moves;
      if ((event.mask & IN_MOVE_SELF) != 0) ++moves;
    }
    return std::nullopt;
  }

 private:
  int events_;
  bool watches_;
  bool can_be_had_ = true;
};

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("what an earlier writer left loses its name before anything in it is removed") {
  const test::TemporaryFolder directory;
  const fs::path name = directory.path() / "a.partial.ome.zarr";
  const fs::path target = directory.path() / "a.ome.zarr";
  for (const char* file : {"zarr.json", "0/c/0", "0/c/1"}) {
    fs::create_directories((name / file).parent_path());
    std::ofstream(name / file) << "earlier";
  }
  // As a writer leaves it that was killed while it removed one.
  fs::create_directories(name.string() + ".earlier/0");
  const Watch watch(name);
  if (!watch.can_be_had()) return;
  PartialFolder folder(target, name);
  CHECK(watch.moves_before_removal() == 1);
  CHECK(fs::is_empty(name));
  CHECK(std::distance(fs::directory_iterator(directory.path()), {}) == 1);
}

TEST_CASE("a folder that is discarded loses its name before anything in it is removed") {
  const test::TemporaryFolder directory;
  const fs::path name = directory.path() / "a.partial.ome.zarr";
  PartialFolder folder(directory.path() / "a.ome.zarr", name);
  folder.write("zarr.json", std::string_view("ours"));
  const Watch watch(name);
  if (!watch.can_be_had()) return;
  folder.discard();
  CHECK(watch.moves_before_removal() == 1);
  CHECK(fs::is_empty(directory.path()));
}

TEST_CASE("nothing of others is lost under the names that a folder has until it is removed") {
  const test::TemporaryFolder directory;
  const fs::path target = directory / "a.ome.zarr";
  const fs::path name = directory / "a.partial.ome.zarr";
  for (const std::string there : {"a.ome.zarr", "a.partial.ome.zarr", "a.partial.ome.zarr.earlier"}) {
    CAPTURE(there);
    fs::create_directories(directory / there / "0");
    directory.write(there + "/notes.txt", std::string("mine"));
    CHECK_THROWS_WITH_AS(PartialFolder(target, name), doctest::Contains("and holds notes.txt, which is of no image"),
                         Error);
    CHECK(fs::exists(directory / (there + "/notes.txt")));
    fs::remove_all(directory / there);
    directory.write(there, std::string("mine"));
    CHECK_THROWS_WITH_AS(PartialFolder(target, name), ((directory / there).string() + ": it isn't a folder").c_str(),
                         Error);
    CHECK(fs::is_regular_file(directory / there));
    fs::remove(directory / there);
  }
  CHECK_NOTHROW(PartialFolder(target, name));
}

TEST_CASE("nothing of others is lost deeper in such a folder, either") {
  const test::TemporaryFolder directory;
  const fs::path target = directory / "a.ome.zarr";
  const fs::path name = directory / "a.partial.ome.zarr";
  const auto make = [](const fs::path& file) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "content";
  };
  for (const fs::path& there : {target, name}) {
    for (const std::string foreign :
         {"0/notes.txt", "0/mine/notes.txt", "0/c/0/0/1.bak", "9/0_.jpg", "9/0_0.png", "9/level-0.dcm", "9/1_a.jpg"}) {
      CAPTURE(foreign);
      make(there / foreign);
      CHECK_THROWS_WITH_AS(PartialFolder(target, name), doctest::Contains("which is of no image"), Error);
      CHECK(fs::exists(there / foreign));
      fs::remove_all(there);
    }
    make(there / "0/notes.txt");
    CHECK_THROWS_WITH_AS(PartialFolder(target, name), doctest::Contains("and holds 0/notes.txt, which is of no image"),
                         Error);
    fs::remove_all(there);
  }
  // What images have, and where a level is a link what it leads to, is nobody else's.
  for (const char* own : {".zattrs", "0/.zarray", "0/2/10/7", "0/zarr.json", "0/c/2/10/0", "12/10_7.jpg", "level-0.dcm",
                          "zarr.json", ".unfinished-3"}) {
    make(target / own);
  }
  make(directory / "disk/notes.txt");
  fs::create_directory_symlink(directory / "disk", target / "1");
  PartialFolder folder(target, name);
  folder.write("zarr.json", "{}");
  folder.publish();
  CHECK_FALSE(fs::exists(target / "0"));
  CHECK(fs::exists(directory / "disk/notes.txt"));
}

TEST_CASE("what gets a folder's final name while it is filled stays") {
  const test::TemporaryFolder directory;
  const fs::path target = directory / "a.ome.zarr";
  PartialFolder folder(target, directory / "a.partial.ome.zarr");
  folder.write("zarr.json", std::string_view("ours"));
  fs::create_directories(target / "0");
  directory.write("a.ome.zarr/0/notes.txt", std::string("theirs"));
  CHECK_THROWS_WITH_AS(folder.publish(),
                       doctest::Contains("a.ome.zarr: somebody else put it there while it was being made"),
                       OutputError);
  CHECK(fs::exists(target / "0/notes.txt"));
  CHECK(!fs::exists(target / "zarr.json"));
}

TEST_CASE("a folder that somebody else put a file into isn't discarded") {
  const test::TemporaryFolder directory;
  const fs::path name = directory / "a.partial.ome.zarr";
  PartialFolder folder(directory / "a.ome.zarr", name);
  folder.write("0/c/1", std::string_view("ours"));
  directory.write("a.partial.ome.zarr/notes.txt", std::string("theirs"));
  folder.discard();
  CHECK(fs::exists(name / "notes.txt"));
  fs::remove(name / "notes.txt");
  folder.discard();
  CHECK(!fs::exists(name));
}

TEST_CASE("a folder that is moved away while it is filled isn't begun again") {
  const test::TemporaryFolder directory;
  const fs::path name = directory / "a.partial.ome.zarr";
  PartialFolder folder(directory / "a.ome.zarr", name);
  folder.write("0/c/1", std::string_view("ours"));
  fs::rename(name, directory / "elsewhere");
  CHECK_THROWS_WITH_AS(folder.write("1/c/1", std::string_view("ours")), doctest::Contains("a.partial.ome.zarr"),
                       OutputError);
  CHECK(!fs::exists(name));
}

TEST_CASE("no link that takes the place of a folder within one that is filled is followed") {
  const test::TemporaryFolder directory;
  const fs::path target = directory / "a.ome.zarr";
  const fs::path name = directory / "a.partial.ome.zarr";
  const fs::path theirs = directory / "theirs";
  fs::create_directories(theirs / "c");
  for (const char* file : {"0", "1", "c/0", "c/1"}) directory.write("theirs/" + std::string(file), std::string("mine"));
  const auto check_theirs = [&] {
    for (const char* file : {"0", "1", "c/0", "c/1"}) CHECK(content_of(theirs / file) == "mine");
    CHECK(std::distance(fs::recursive_directory_iterator(theirs), {}) == 5);
    CHECK_FALSE(fs::exists(target));
  };
  // The folder that is used, and the one that it lies in; the folder is still open, or isn't any more.
  for (const std::string swapped : {"7", "7/c"}) {
    for (const int others : {0, 20}) {
      CAPTURE(swapped);
      CAPTURE(others);
      PartialFolder folder(target, name);
      folder.write("7/c/0", "ours");
      for (int other = 0; other < others; ++other) folder.write("8/" + std::to_string(other) + "/0", "ours");
      fs::rename(name / swapped, directory / "elsewhere");
      fs::create_directory_symlink(swapped == "7" ? theirs : theirs / "c", name / swapped);
      const std::string line = (name / swapped).string() + ": somebody moved it, or put something else there";
      if (others > 0) {
        CHECK_THROWS_WITH_AS(folder.write("7/c/1", "ours"), line.c_str(), OutputError);
      } else {
        CHECK_NOTHROW(folder.write("7/c/1", "ours"));
        CHECK(content_of(directory / (swapped == "7" ? "elsewhere/c/1" : "elsewhere/1")) == "ours");
      }
      CHECK_THROWS_WITH_AS(folder.publish(), line.c_str(), OutputError);
      check_theirs();
      fs::remove_all(directory / "elsewhere");
    }
  }
  // Before there is such a folder.
  PartialFolder folder(target, name);
  fs::create_directory_symlink(theirs, name / "7");
  CHECK_THROWS_WITH_AS(folder.write("7/1", "ours"), doctest::Contains("/7: somebody moved it, or put"), OutputError);
  check_theirs();
  folder.discard();
  check_theirs();
}

TEST_CASE("nothing of others is lost that they put where a folder within goes") {
  const test::TemporaryFolder directory;
  const fs::path name = directory / "a.partial_files";
  PartialFolder folder(directory / "a_files", name);
  fs::create_directories(name / "0");
  fs::create_directories(name / "1");
  std::ofstream(name / "0/0_0.jpg") << "mine";
  CHECK_THROWS_WITH_AS(folder.write("0/0_0.jpg", "ours"), doctest::Contains("/0: somebody moved it, or put"),
                       OutputError);
  CHECK(content_of(name / "0/0_0.jpg") == "mine");
  // An empty folder is nothing.
  CHECK_NOTHROW(folder.write("1/0_0.jpg", "ours"));
}

TEST_CASE("no link that has the name of an unfinished file is followed") {
  const test::TemporaryFolder directory;
  const fs::path theirs = directory.write("theirs", std::string("mine"));
  const fs::path name = directory / "a.partial.ome.zarr";
  for (const fs::path& target : {theirs, directory / "nothing"}) {
    PartialFolder folder(directory / "a.ome.zarr", name);
    fs::create_symlink(target, name / ".unfinished-0");
    CHECK_THROWS_WITH_AS(folder.append("0/c/0", std::as_bytes(std::span("ours"))),
                         ((name / ".unfinished-0").string() + ": somebody else put it there").c_str(), OutputError);
    CHECK(fs::is_symlink(name / ".unfinished-0"));
  }
  CHECK(content_of(theirs) == "mine");
  CHECK_FALSE(fs::exists(directory / "nothing"));
}

TEST_CASE("a file that somebody put in the place of an unfinished one doesn't get its name") {
  const test::TemporaryFolder directory;
  const fs::path name = directory / "a.partial.dicom";
  PartialFolder folder(directory / "a.dicom", name);
  folder.append("level-0.dcm", std::as_bytes(std::span("ours")));
  fs::rename(name / ".unfinished-0", directory / "elsewhere");
  std::ofstream(name / ".unfinished-0") << "mine";
  CHECK_THROWS_WITH_AS(folder.complete("level-0.dcm"),
                       ((name / ".unfinished-0").string() + ": somebody moved or replaced it").c_str(), OutputError);
  CHECK(content_of(name / ".unfinished-0") == "mine");
  CHECK_FALSE(fs::exists(name / "level-0.dcm"));
}

TEST_CASE("a folder in which somebody changed files isn't published") {
  const test::TemporaryFolder directory;
  const fs::path target = directory / "a_files";
  const fs::path name = directory / "a.partial_files";
  const fs::path file = name / "0/0_0.jpg";
  for (const std::string kind : {"link", "gone", "longer", "link beside"}) {
    CAPTURE(kind);
    PartialFolder folder(target, name);
    folder.write("0/0_0.jpg", "ours");
    if (kind == "longer") {
      std::ofstream(file, std::ios::app) << "more";
    } else if (kind == "link beside") {
      fs::create_symlink(file, name / "0/1_0.jpg");
    } else {
      fs::rename(file, directory / "elsewhere");
      if (kind == "link") fs::create_symlink(directory / "elsewhere", file);
    }
    const std::string line = kind == "gone"     ? "a.partial_files: somebody else moved or removed files in it"
                             : kind == "longer" ? "0/0_0.jpg: somebody else changed or replaced it"
                                                : "_0.jpg: somebody else put a link there";
    CHECK_THROWS_WITH_AS(folder.publish(), doctest::Contains(line.c_str()), OutputError);
    CHECK_FALSE(fs::exists(target));
  }
}

TEST_CASE("a folder that isn't published stays with what is whole in it, and goes without") {
  const test::TemporaryFolder directory;
  const fs::path target = directory / "a.dicom";
  const fs::path name = directory / "a.partial.dicom";
  const std::vector<std::byte> bytes(10);
  for (const bool has_whole : {false, true}) {
    CAPTURE(has_whole);
    {
      PartialFolder folder(target, name);
      folder.append("level-0.dcm", std::span(bytes));
      if (has_whole) folder.write("level-1.dcm", std::span(bytes));
      CHECK(fs::exists(name));
    }
    CHECK(fs::exists(name) == has_whole);
    CHECK(fs::exists(name / "level-1.dcm") == has_whole);
    CHECK_FALSE(fs::exists(target));
  }
  // Somebody else's folder stays.
  {
    PartialFolder folder(target, name);
    fs::rename(name, directory / "elsewhere");
    fs::create_directory(name);
  }
  CHECK(fs::exists(name));
  CHECK(fs::exists(directory / "elsewhere"));
}

TEST_CASE("a folder's digest is that of its files as they are found, whatever was written over or replaced") {
  const test::TemporaryFolder directory;
  const fs::path target = directory.path() / "a.ome.zarr";
  PartialFolder folder(target, directory.path() / "a.partial.ome.zarr");
  std::vector<std::byte> bytes(3 * digest_block + 77);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i >> 7);
  folder.write("zarr.json", "first");
  folder.append("0/large", std::span(bytes).first(digest_block + 5));
  folder.append("0/large", std::span(bytes).subspan(digest_block + 5));
  folder.overwrite("0/large", digest_block - 3, std::span(bytes).first(9));
  folder.complete("0/large");
  folder.write("0/1/small", std::span(bytes).first(100));
  folder.write("empty", "");
  folder.replace("zarr.json", "second");
  folder.write_beside(directory.path() / "beside", "beside");
  folder.publish();
  const auto found = path_content(target);
  REQUIRE(found);
  CHECK(folder.digest() == found->digest);
  CHECK(folder.bytes() == found->bytes);
}

TEST_CASE("the first file of a folder of chunks says whose it is, and is replaced by the image's attributes") {
  const PyramidLayout layout({300, 200}, 64, 2);
  ImageOptions options;
  for (const int version : {2, 3}) {
    CAPTURE(version);
    options.zarr_version = version;
    const auto [name, mark] = zarr_mark(options);
    const auto [attributes, text] = zarr_attributes(layout, {}, options, {});
    CHECK(name == attributes);
    for (const std::string& each : {mark, text}) CHECK(each.find("\"slidestream\":") != std::string::npos);
    CHECK(mark.find("multiscales") == std::string::npos);
    CHECK(text.find("multiscales") != std::string::npos);
  }
}

TEST_CASE("files of file browsers are no part of a folder, and keep nobody from replacing it") {
  const test::TemporaryFolder directory;
  const fs::path target = directory.path() / "a.dicom";
  const fs::path name = directory.path() / "a.partial.dicom";
  const std::array names = {"Thumbs.db", "desktop.ini", ".DS_Store", "._level-0.dcm", ".nfs00000000000000a100000002"};
  const auto put_into = [&](const fs::path& folder) {
    for (const char* each : names) std::ofstream(folder / each) << "somebody's";
  };
  for (int round = 0; round < 2; ++round) {
    CAPTURE(round);
    PartialFolder folder(target, name);
    folder.write("level-0.dcm", "first");
    put_into(name);
    folder.publish();
    const auto found = path_content(target);
    REQUIRE(found);
    CHECK(folder.digest() == found->digest);
    CHECK(folder.bytes() == found->bytes);
  }
  CHECK_NOTHROW(check_folder_names(target, name));
  for (const char* foreign : {"Thumbs.db.txt", "notes.txt"}) {
    std::ofstream(target / foreign) << "somebody's";
    CHECK_THROWS_AS(check_folder_names(target, name), Error);
    fs::remove(target / foreign);
  }
  fs::remove(target / "desktop.ini");
  fs::create_directory(target / "desktop.ini");
  CHECK_THROWS_AS(check_folder_names(target, name), Error);
}

TEST_CASE("names of files that file browsers and NFS make") {
  for (const char* name : {"Thumbs.db", "Desktop.ini", "._a", ".nfs0a"}) CHECK(is_stray_name(name));
  for (const char* name : {"", ".", ".nfs", ".nfs-list", ".zarray", "zarr.json", "level-0.dcm", "0_0.jpg", "_a"}) {
    CAPTURE(name);
    CHECK_FALSE(is_stray_name(name));
  }
}

TEST_CASE("a file beside the folder that finds no room has its own name in the line") {
  const test::TemporaryFolder directory;
  PartialFolder folder(directory / "a_files", directory / "a.partial_files");
  const test::FileLimit full(0);
  CHECK_THROWS_WITH_AS(folder.write_beside(directory / "a.partial.view.html", "page"),
                       doctest::Contains(((directory / "a.partial.view.html").string() + ": ").c_str()), OutputError);
}
