#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>

#include "config/input_scene.hpp"
#include "inputs/inputs.hpp"
#include "support/test_data.hpp"

using namespace slidestream;
using namespace slidestream::test;
namespace fs = std::filesystem;

namespace {

/// While it lives, this process can't have more files open.
class OpenFilesLimit {
 public:
  explicit OpenFilesLimit(rlim_t files) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit limit = {files, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~OpenFilesLimit() { setrlimit(RLIMIT_NOFILE, &before_); }
  OpenFilesLimit(const OpenFilesLimit&) = delete;
  OpenFilesLimit& operator=(const OpenFilesLimit&) = delete;

 private:
  rlimit before_ = {};
};

}  // namespace

TEST_CASE("slides are taken as they are named, missing ones too") {
  Scene scene;
  scene.file("a.svs");
  scene.file("odd name");
  CHECK(scene.expand({scene / "missing.svs", scene / "a.svs", scene / "odd name"}) ==
        Paths{"missing.svs", "a.svs", "odd name"});
  CHECK(scene.expand({scene / "a.svs", scene / "slidse"}) == Paths{"a.svs", "slidse"});
  // Where nothing is there, whatever its name, it is the command line that is wrong.
  for (const std::string name : {"missing.svs", "slidse"}) {
    CHECK_THROWS_WITH_AS(scene.expand({scene / name}), doctest::Contains("No such file"), ConfigError);
    CHECK_THROWS_AS(scene.expand({scene / name, scene / "other.svs"}), ConfigError);
  }
  // A link that leads nowhere is there no more than what it leads to.
  fs::create_symlink("nowhere.svs", scene / "link.svs");
  CHECK_THROWS_WITH_AS(scene.expand({scene / "link.svs"}), doctest::Contains("link.svs: No such file"), ConfigError);
  CHECK(scene.expand({scene / "link.svs", scene / "a.svs"}) == Paths{"link.svs", "a.svs"});
  // A list names slides; it is none itself.
  CHECK_THROWS_AS(scene.expand({scene / "a.svs", scene / "missing.list"}), ConfigError);
  CHECK(scene.warnings.empty());
  CHECK_THROWS_AS(expand_inputs({""}), ConfigError);
}

TEST_CASE("results that lie beside inputs are passed over in folders") {
  Scene scene;
  for (const char* name : {"a/b.nii", "a/b.labels.nii", "a/c.labels.nii", "a/in/b.labels.nii"}) scene.file(name);
  const auto is_result = [](const fs::path& file) { return file.filename().string().ends_with(".labels.nii"); };
  const std::string labels = scene / "a/c.labels.nii";
  // Wherever the folder for results is.
  for (const std::string& results : {std::string(), scene / "a", scene / "none"}) {
    ExpandedInputs found = expand_inputs({scene / "a"}, results, InputKind::volume, is_result);
    CHECK(below(scene.path(), found.slides) == Paths{"a/b.nii"});
    const std::string line = (scene / "a/b.labels.nii") +
                             ": a result of slidestream, as others in folders are; 3 files passed over; naming them "
                             "uses them";
    CHECK(found.warnings == Paths{line});
    found = expand_inputs({labels, scene / "a"}, results, InputKind::volume, is_result);
    CHECK(below(scene.path(), found.slides) == Paths{"a/c.labels.nii", "a/b.nii"});
    CHECK(found.warnings == Paths{line});
    found = expand_inputs({scene / "a/in"}, results, InputKind::volume, is_result);
    CHECK(found.slides.empty());
    CHECK(found.warnings ==
          Paths{(scene / "a/in/b.labels.nii") + ": a result of slidestream; 1 file passed over; naming it uses it"});
  }
  CHECK(expand_inputs({scene / "a"}, {}, InputKind::volume).slides.size() == 4);
}

TEST_CASE("a slide is the same one whether its file, its folder or a link's end is there or not") {
  Scene scene;
  scene.file("a/s.svs");
  namespace fs = std::filesystem;
  const fs::path root = fs::path(scene / "a").parent_path();
  fs::create_directory_symlink("a", root / "link");
  fs::create_symlink("../a/s.svs", root / "a/other.svs");
  const fs::path before = fs::current_path();
  fs::current_path(root);
  scene.file("there.svs");
  const std::vector<std::string> names = {"a/s.svs",
                                          "./a/s.svs",
                                          "a/../a//s.svs",
                                          "link/s.svs",
                                          "a/s2.svs",
                                          "link/s2.svs",
                                          (root / "link/s2.svs").string()};
  const auto canonical = [&] {
    std::vector<std::string> found;
    for (const std::string& name : names) found.push_back(expand_inputs({name, "there.svs"}).canonical.at(0));
    return found;
  };
  const std::string real = fs::canonical("a").string();
  std::vector<std::string> expected(4, real + "/s.svs");
  expected.resize(7, real + "/s2.svs");
  CHECK(canonical() == expected);
  CHECK(expand_inputs({"a/other.svs", "link/s.svs"}).slides.size() == 1);
  fs::rename("a", "away");
  CHECK(canonical() == expected);
  // Links in a circle lead nowhere, and end.
  fs::create_symlink("loop.svs", "loop.svs");
  CHECK(expand_inputs({"loop.svs"}).slides.size() == 1);
  fs::current_path(before);
}

TEST_CASE("a folder means its slides, sorted bytewise by path") {
  Scene scene;
  for (const char* name : {"s/b.svs", "s/A.TIF", "s/a.tiff", "s/z.BTF", "s/sub/c.svs", "s/sub-x.svs", "s/sub.svs",
                           "s/.hidden.svs", "s/.git/d.svs", "s/notes.txt", "s/svs", "s/e.svs.bak"}) {
    scene.file(name);
  }
  CHECK(scene.expand({scene / "s"}) ==
        Paths{"s/A.TIF", "s/a.tiff", "s/b.svs", "s/sub-x.svs", "s/sub.svs", "s/sub/c.svs", "s/z.BTF"});
  CHECK(scene.warnings.empty());
  // Named itself, a hidden folder counts.
  CHECK(scene.expand({scene / "s/.git"}) == Paths{"s/.git/d.svs"});
}

TEST_CASE("links: to folders above skipped, to others followed once, dangling ones fail later") {
  Scene scene;
  scene.file("s/a/one.svs");
  scene.file("s/b/two.svs");
  scene.file("elsewhere/three.svs");
  fs::create_directory_symlink(scene / "s", scene / "s/a/up");
  fs::create_directory_symlink(scene / "s/a", scene / "s/a/self");
  fs::create_directory_symlink(scene / "s/b", scene / "s/a/to-b");
  fs::create_directory_symlink(scene / "s/a", scene / "s/b/to-a");
  fs::create_directory_symlink(scene / "elsewhere", scene / "s/far");
  fs::create_directory_symlink(scene / "elsewhere", scene / "s/far2");
  fs::create_symlink(scene / "nowhere", scene / "s/dangling.svs");
  fs::create_symlink(scene / "s/loop.svs", scene / "s/loop.svs");
  const Paths slides = scene.expand({scene / "s"});
  std::size_t ones = 0, twos = 0, threes = 0;
  for (const std::string& slide : slides) {
    ones += slide.ends_with("one.svs");
    twos += slide.ends_with("two.svs");
    threes += slide.ends_with("three.svs");
  }
  CHECK(ones == 1);
  CHECK(twos == 1);
  CHECK(threes == 1);
  CHECK(std::count(slides.begin(), slides.end(), "s/dangling.svs") == 1);
  CHECK(std::count(slides.begin(), slides.end(), "s/loop.svs") == 1);
  CHECK(slides.size() == 5);
}

TEST_CASE("links to folders above the first are skipped too") {
  Scene scene;
  scene.file("top/beside.svs");
  scene.file("top/s/a/one.svs");
  fs::create_directory_symlink(scene / "top", scene / "top/s/a/up");
  fs::create_directory_symlink("/", scene / "top/s/root");
  fs::create_directory_symlink(scene / "top/s", scene / "start");
  CHECK(scene.expand({scene / "top/s"}) == Paths{"top/s/a/one.svs"});
  CHECK(scene.expand({scene / "start"}) == Paths{"start/a/one.svs"});
  CHECK(scene.warnings.empty());
}

TEST_CASE("a folder named like a slide counts as one when it holds none") {
  Scene scene;
  fs::create_directories(scene / "x.svs");
  scene.file("s/y.svs/inner.svs");
  fs::create_directories(scene / "s/z.svs");
  CHECK(scene.expand({scene / "x.svs", scene / "s"}) == Paths{"x.svs", "s/y.svs/inner.svs", "s/z.svs"});
  fs::create_directories(scene / "empty");
  CHECK(scene.expand({scene / "empty"}).empty());
  REQUIRE(scene.warnings.size() == 1);
  CHECK(scene.warnings[0] == scene / "empty" + ": a folder without slides");
  scene.file("others/a.QPTIFF");
  scene.file("others/b.qptiff");
  scene.file("others/below/c");
  CHECK(scene.expand({scene / "others"}).empty());
  CHECK(scene.warnings == Paths{scene / "others" + ": a folder without slides: its files are 2 .qptiff, 1 without a "
                                                   "suffix; slides end in .dcm, .mrxs, .ndpi, .vms, .vmu, .scn, .bif, "
                                                   ".svslide, .czi, .svs, .tif, .tiff or .btf"});
}

TEST_CASE("a folder that can't be read is named, and fails as a slide") {
  if (::geteuid() == 0) {
    test::report_skipped("root reads every folder");
    return;
  }
  Scene scene;
  scene.file("s/locked/a.svs");
  scene.file("s/b.svs");
  fs::permissions(scene / "s/locked", fs::perms::none);
  CHECK(scene.expand({scene / "s"}) == Paths{"s/b.svs", "s/locked"});
  CHECK(scene.warnings.size() == 1);
  fs::permissions(scene / "s/locked", fs::perms::owner_all);
}

TEST_CASE("folders deep in others take no file each") {
  Scene scene;
  constexpr std::size_t depth = 300;
  std::string deepest = "s";
  for (std::size_t i = 0; i < depth; ++i) deepest += "/d";
  scene.file(deepest + "/a.svs");
  Paths slides;
  {
    const OpenFilesLimit few(64);
    slides = scene.expand({scene / "s"});
  }
  CHECK(slides == Paths{deepest + "/a.svs"});
  CHECK(scene.warnings.empty());
}

TEST_CASE("a list names slides and folders, relative to itself") {
  Scene scene;
  scene.file("s/a.svs");
  scene.file("s/b.svs");
  scene.file(
      "m/cohort.LIST",
      "\xef\xbb\xbf# comment\r\n\r\n../s\r\n  \t\nmissing.svs\n with blanks .svs \n/absolute.svs\n#x.svs\nlast.svs");
  CHECK(scene.expand({scene / "m/cohort.LIST"}) ==
        Paths{"m/../s/a.svs", "m/../s/b.svs", "m/missing.svs", "m/ with blanks .svs ", "/absolute.svs", "m/last.svs"});
  scene.file("empty.list", "# nothing\n");
  CHECK(scene.expand({scene / "empty.list"}).empty());
  CHECK(scene.warnings == Paths{scene / "empty.list" + ": names no slide"});
}

TEST_CASE("a slide named twice counts once, with a warning") {
  Scene scene;
  scene.file("a.svs");
  fs::create_symlink(scene / "a.svs", scene / "link.svs");
  scene.file("x.list", "a.svs\n./a.svs\nmissing.svs\nsub/../missing.svs\n");
  CHECK(scene.expand({scene / "x.list", scene / "link.svs", scene / "a.svs"}) == Paths{"a.svs", "missing.svs"});
  CHECK(scene.warnings.size() == 4);
  CHECK(scene.warnings.back() == scene / "a.svs" + ": named before, counted once");
}

TEST_CASE("manifests that can't be read are errors of the configuration") {
  Scene scene;
  CHECK_THROWS_WITH_AS(expand_inputs({scene / "no.list"}), (scene / "no.list" + ": No such file or directory").c_str(),
                       ConfigError);
  REQUIRE(::mkfifo((scene / "pipe.csv").c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(expand_inputs({scene / "pipe.csv"}), (scene / "pipe.csv" + ": not a regular file").c_str(),
                       ConfigError);
  scene.file("nul.list", std::string_view("a.svs\nb\0c.svs\n", 14));
  CHECK_THROWS_WITH_AS(expand_inputs({scene / "nul.list"}),
                       (scene / "nul.list" + ":2: a NUL byte; expected a text file").c_str(), ConfigError);
  // A folder is a folder, whatever its name.
  scene.file("folder.list/a.svs");
  CHECK(scene.expand({scene / "folder.list"}) == Paths{"folder.list/a.svs"});
}

TEST_CASE("standard input is a list, relative to the working directory") {
  std::FILE* const typed = std::tmpfile();
  REQUIRE(typed != nullptr);
  std::fputs("a.svs\n# no\n/b.svs\n", typed);
  std::rewind(typed);
  const int before = ::dup(STDIN_FILENO);
  ::dup2(::fileno(typed), STDIN_FILENO);
  const ExpandedInputs expanded = expand_inputs({"-"});
  ::dup2(before, STDIN_FILENO);
  ::close(before);
  std::fclose(typed);
  CHECK(expanded.slides == Paths{"a.svs", "/b.svs"});
}

TEST_CASE("hard links are one slide") {
  Scene scene;
  scene.file("a.svs");
  fs::create_hard_link(scene / "a.svs", scene / "b.svs");
  CHECK(scene.expand({scene / "a.svs", scene / "b.svs"}) == Paths{"a.svs"});
  REQUIRE(scene.warnings.size() == 1);
  CHECK(scene.warnings[0].find("counted once") != std::string::npos);
}
