#include <doctest/doctest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <slidestream/error.hpp>
#include <string>
#include <vector>

#include "output/atomic_file.hpp"
#include "output/folders.hpp"
#include "sample_run.hpp"
#include "sink/temporary_name.hpp"
#include "support/test_data.hpp"
#include "support/test_slides.hpp"
#include "system/process_state.hpp"

using namespace slidestream;

namespace {

namespace fs = std::filesystem;

Config config_in(const fs::path& folder) {
  Config config;
  config.output.dir = folder.string();
  config.analysis.bins = 4;
  return config;
}

template <class Work>
std::string output_error(Work&& work) {
  try {
    work();
    return "";
  } catch (const OutputError& error) {
    return error.what();
  }
}

/// A file system of 64 KiB.
class SmallDisk {
 public:
  explicit SmallDisk(const fs::path& at) : at_(at) {
    fs::create_directories(at);
    mounted_ = ::mount("tmpfs", at.c_str(), "tmpfs", 0, "size=64k") == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(at_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }

 private:
  fs::path at_;
  bool mounted_ = false;
};

}  // namespace

TEST_CASE("an output folder that can't be is named with the reason") {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "file") << "x";
  const std::string file = (folder / "file").string();
  CHECK(output_error([&] { prepare_output(config_in(file)); }).starts_with(file + ": "));
  CHECK(output_error([&] { prepare_output(config_in(file + "/below")); }) == file + "/below: Not a directory");
  CHECK(output_error([&] { prepare_output(config_in("/proc/slidestream")); }).starts_with("/proc/slidestream: "));
}

TEST_CASE("a link to nowhere on the way to an output folder is named") {
  const test::TemporaryFolder folder;
  const fs::path link = folder / "link";
  fs::create_symlink("elsewhere", link);
  const std::string expected = link.string() + ": is a link to elsewhere, where nothing is";
  for (const char* below : {"", "/below", "/below/it"}) {
    CHECK(output_error([&] { prepare_output(config_in(link.string() + below)); }) == expected);
  }
  CHECK_FALSE(fs::exists(folder / "elsewhere"));
  fs::create_directory(folder / "elsewhere");
  CHECK(output_error([&] { prepare_output(config_in(link.string() + "/below")); }).empty());
  CHECK(fs::is_directory(folder / "elsewhere/below"));
  fs::create_symlink("loop", folder / "loop");
  CHECK(output_error([&] { prepare_output(config_in(folder / "loop")); }) ==
        (folder / "loop").string() + ": is a link to loop, where nothing is");
}

TEST_CASE("what stands in the way of a result is found before a run") {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "out/slides.csv");
  const Config config = config_in(folder / "out");
  const std::string expected = (folder / "out/slides.csv").string() + ": Is a directory";
  CHECK(output_error([&] { prepare_output(config); }) == expected);
  CHECK(output_error([&] { write_results(config, test::sample_run(4)); }).starts_with(config.output.dir));
  CHECK(fs::is_regular_file(folder / "out/histograms.npy"));
  fs::remove_all(folder / "out");
  CHECK(output_error([&] { prepare_output(config); }).empty());
  CHECK(fs::is_empty(folder / "out"));
  for (const char* name : {"corpus.json", "histograms.npy", "failures.csv", "slides.csv"}) {
    const fs::path pipe = folder / "out" / name;
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    CHECK(output_error([&] { prepare_output(config); }) == pipe.string() + ": isn't a regular file");
    CHECK(fs::is_fifo(pipe));
    fs::remove(pipe);
  }
}

TEST_CASE("tables take the place of links, whatever these lead to") {
  const test::TemporaryFolder folder;
  const Config config = config_in(folder / "out");
  const fs::path out = config.output.dir;
  const fs::path pipe = folder / "pipe";
  fs::create_directories(out);
  fs::create_directory(folder / "elsewhere");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const fs::path& target : {fs::path("/dev/zero"), pipe, folder / "elsewhere", folder / "nothing"}) {
    CAPTURE(target.string());
    const auto names = {"corpus.json", "histograms.npy", "failures.csv", "slides.csv"};
    for (const char* name : names) {
      fs::remove(out / name);
      fs::create_symlink(target, out / name);
    }
    CHECK(output_error([&] { prepare_output(config); }).empty());
    CHECK(output_error([&] { write_results(config, test::sample_run(4)); }).empty());
    for (const char* name : names) CHECK_MESSAGE(fs::is_regular_file(fs::symlink_status(out / name)), name);
  }
  CHECK(fs::is_fifo(pipe));
  CHECK(fs::is_empty(folder / "elsewhere"));
  CHECK_FALSE(fs::exists(folder / "nothing"));
  // A name that the user gives may be /dev/stdout, which is such a link.
  fs::create_symlink("/dev/zero", folder / "named");
  CHECK(output_error([&] { const AtomicFile file(folder / "named"); }) ==
        (folder / "named").string() + ": isn't a regular file");
  // A link to a folder is replaced.
  fs::create_directory_symlink("elsewhere", folder / "leads on");
  CHECK(output_error([&] { AtomicFile::check(folder / "leads on"); }).empty());
  CHECK_FALSE(output_error([&] { AtomicFile::check(folder / "elsewhere"); }).empty());
}

TEST_CASE("folders for files of slides that can't be written are found before a run") {
  const test::TemporaryFolder folder;
  Config config = config_in(folder / "out");
  const std::string images = (folder / "out/images").string();
  const std::string maps = (folder / "out/maps").string();
  config.operators.run = {"spectrum", "identity"};
  config.output.maps = MapFormat::npy;
  CHECK(fault_of_folders(config).empty());
  CHECK_FALSE(fs::exists(folder / "out"));
  fs::create_directories(folder / "out");
  folder.write("out/images", std::string("x"));
  CHECK(fault_of_folders(config) == images + ": Not a directory");
  folder.write("out/maps", std::string("x"));
  CHECK(fault_of_folders(config) == maps + ": Not a directory");
  config.output.maps = MapFormat::none;
  CHECK(fault_of_folders(config) == images + ": Not a directory");
  config.operators.run = {"spectrum"};
  CHECK(fault_of_folders(config).empty());
  fs::remove(images);
  fs::create_symlink("nowhere", images);
  for (const char* name : {"identity", "stain", "tissue"}) {
    config.operators.run = {name};
    CHECK(fault_of_folders(config) == images + ": is a link to nowhere, where nothing is");
  }
  CHECK_FALSE(fs::exists(folder / "out/nowhere"));
  config.operators.run = {"model"};
  config.model.output = ModelOutput::vector;
  CHECK(fault_of_folders(config).empty());
  config.model.output = ModelOutput::labels;
  CHECK_FALSE(fault_of_folders(config).empty());
  fs::remove(images);
  fs::create_directories(images);
  CHECK(fault_of_folders(config).empty());
}

TEST_CASE("what dead processes left under temporary names goes, files and folders, and nothing else") {
  const ::pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  REQUIRE(child > 0);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  const std::string dead = ".slidestream-" + std::to_string(child);
  const std::string living = ".slidestream-" + std::to_string(::getppid());
  const test::TemporaryFolder folder;
  for (const std::string& name : {dead + "-0.tmp", dead + "-0.txt", living + "-0.tmp", std::string("mine.tmp")}) {
    folder.write(name, std::string("x"));
  }
  for (const std::string& name : {dead + "-1.tmp", living + "-1.tmp"}) {
    fs::create_directories(folder / name / "below");
    folder.write(name + "/a.h5", std::string("x"));
  }
  remove_leftovers(folder.path());
  for (const std::string& name : {dead + "-0.tmp", dead + "-1.tmp"})
    CHECK_FALSE_MESSAGE(fs::exists(folder / name), name);
  for (const std::string& name :
       {dead + "-0.txt", living + "-0.tmp", living + "-1.tmp/a.h5", std::string("mine.tmp")}) {
    CHECK_MESSAGE(fs::exists(folder / name), name);
  }
}

TEST_CASE("what a dead process left goes when another has its number now, and what a living one has stays") {
  const ::pid_t other = ::getppid();
  const std::int64_t start = state_of(other).start;
  if (start < 2 || own_start() < 2) {
    test::report_skipped("/proc shows no starts of processes");
    return;
  }
  const auto name_of = [](::pid_t pid, std::int64_t began, int count) {
    return ".slidestream-" + std::to_string(pid) + "-" + std::to_string(began) + "-" + std::to_string(count) + ".tmp";
  };
  const test::TemporaryFolder folder;
  const std::vector<std::string> dead = {name_of(other, start - 1, 0), name_of(other, start + 1, 1),
                                         name_of(::getpid(), own_start() - 1, 2)};
  const std::vector<std::string> kept = {
      name_of(other, start, 3), name_of(other, 0, 4), name_of(::getpid(), own_start(), 5),
      ".slidestream-" + std::to_string(other) + "-6.tmp", ".slidestream-" + std::to_string(::getpid()) + "-7.tmp"};
  for (const auto* names : {&dead, &kept}) {
    for (const std::string& name : *names) folder.write(name, std::string("x"));
  }
  const AtomicFile mine(folder / "mine");
  fs::path made;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    const std::string name = entry.path().filename().string();
    if (std::ranges::find(dead, name) == dead.end() && std::ranges::find(kept, name) == kept.end()) made = entry.path();
  }
  remove_leftovers(folder.path());
  for (const std::string& name : dead) CHECK_FALSE_MESSAGE(fs::exists(folder / name), name);
  for (const std::string& name : kept) CHECK_MESSAGE(fs::exists(folder / name), name);
  CHECK(fs::exists(made));
  const auto process = process_in(made.filename().string());
  REQUIRE(process);
  CHECK(process->pid == ::getpid());
  CHECK(process->start == own_start());
}

TEST_CASE("a forked process has its own start in its temporary names") {
  if (own_start() == 0) {
    test::report_skipped("/proc shows no starts of processes");
    return;
  }
  const std::string before = temporary_name("a").filename().string();
  const ::pid_t child = ::fork();
  if (child == 0) {
    const auto process = process_in(temporary_name("a").filename().string());
    ::_exit(process && process->pid == ::getpid() && process->start == own_start() ? 0 : 1);
  }
  REQUIRE(child > 0);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(process_in(before)->pid == ::getpid());
}

TEST_CASE("temporary names that no version made are of no process") {
  for (const char* name : {".slidestream-.tmp", ".slidestream-12.tmp", ".slidestream-12-.tmp", ".slidestream--12-1.tmp",
                           ".slidestream-12-3-4-5.tmp", ".slidestream-12-x.tmp", ".slidestream-12-3-4",
                           ".slidestream-earlier", ".slidestream-99999999999-1.tmp", ".slidestream-1e3-1.tmp"}) {
    CHECK_MESSAGE(!process_in(name), name);
  }
  const auto earlier = process_in(".slidestream-12-3.tmp");
  REQUIRE(earlier);
  CHECK(earlier->pid == 12);
  CHECK(earlier->start == 0);
  const auto now = process_in(".slidestream-12-3-4.tmp");
  REQUIRE(now);
  CHECK(now->pid == 12);
  CHECK(now->start == 3);
}

TEST_CASE("a process that ended and wasn't asked how is dead: what it left under temporary names goes") {
  const ::pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  REQUIRE(child > 0);
  ::siginfo_t ended{};
  REQUIRE(::waitid(P_PID, static_cast<::id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
  const test::TemporaryFolder folder;
  const std::string name = ".slidestream-" + std::to_string(child) + "-0.tmp";
  folder.write(name, std::string("x"));
  remove_leftovers(folder.path());
  CHECK_FALSE(fs::exists(folder / name));
  REQUIRE(::waitpid(child, nullptr, 0) == child);
}

TEST_CASE("a folder without permission is named") {
  if (::geteuid() == 0) {
    test::report_skipped("root may write everywhere");
    return;
  }
  const test::TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  CHECK(output_error([&] { prepare_output(config_in(folder.path())); })
            .starts_with((folder / "slides.csv").string() + ": Permission denied: " + folder.path().string() +
                         " has the permissions 0500 and is of user "));
  fs::permissions(folder.path(), fs::perms::owner_all);
}

TEST_CASE("a full disk leaves whole files of this run, none of an earlier one, and nothing temporary") {
  const test::TemporaryFolder folder;
  const SmallDisk disk(folder / "disk");
  if (!disk.mounted()) {
    test::report_skipped("no right to mount a small file system");
    return;
  }
  Config config = config_in(folder / "disk");
  write_results(config, test::sample_run(4));
  config.analysis.bins = 16384;
  const std::string message = output_error([&] { write_results(config, test::sample_run(16384)); });
  CHECK(message == (folder / "disk/corpus.json").string() + ": No space left on device");
  CHECK_FALSE(fs::exists(folder / "disk/histograms.npy"));
  CHECK(test::file_text(folder / "disk/slides.csv").find("done") != std::string::npos);
  for (const auto& entry : fs::directory_iterator(folder / "disk")) {
    CHECK_FALSE(entry.path().filename().string().starts_with('.'));
  }
  SlideResult slide = test::sample_slide("x.svs", 4, 1.0);
  slide.map = {100, 200, std::vector<float>(100 * 200 * 2)};
  for (const MapFormat format : {MapFormat::npy, MapFormat::tiff}) {
    config.output.maps = format;
    CHECK(output_error([&] { write_map(config, slide, "x"); }).ends_with("No space left on device"));
  }
  CHECK(fs::is_empty(folder / "disk/maps"));
}
