// Files that a slide had when it was done again: they are its own until it ends, and then move if it has them no more.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "ledger/artifact_files.hpp"
#include "ledger/map_files.hpp"
#include "ledger/schema.hpp"
#include "ledger_runs.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace fs = std::filesystem;

TEST_CASE("files that a slide had, and has no more, are moved, but none outside of the folder") {
  const TemporaryFolder folder;
  const fs::path out = folder / "out";
  const auto manifest = make_files(folder, 1);
  // Each start does the slide again, as its file is another one.
  const auto done_again = [&](SlideResult result) {
    std::ofstream(manifest[0].path, std::ios::app) << "more";
    Ledger ledger(ledger_config(out));
    ledger.begin(manifest, false);
    ledger.started(0);
    if (result.done) make_artifacts(out, result);
    ledger.check_unchanged(0, result);
    const Ledger::Ended one = {0, &result};
    return ledger.keep({&one, 1}).size();
  };
  SlideResult slide = attached_result_of(manifest[0].path, 1);
  fs::create_directories(out / "maps");
  folder.write("out/maps/map.npy", std::string("map"));
  SlideResult other = slide;
  other.artifacts.pop_back();
  const fs::path kept = out / slide.artifacts.front().file;
  const fs::path gone = out / slide.artifacts.back().file;
  const fs::path aside = out / earlier_of_failed;
  CHECK(done_again(slide) == 0);
  REQUIRE(fs::exists(gone));
  CHECK(done_again(other) == 1);
  CHECK(fs::exists(kept));
  CHECK_FALSE(fs::exists(gone));
  CHECK(fs::exists(aside / slide.artifacts.back().file));
  CHECK(fs::exists(out / "maps/map.npy"));

  // One that fails has none, and what it had replaces nothing that is there.
  fs::create_directories(aside / slide.artifacts.front().file / "below");
  SlideResult fails = other;
  fails.fail({"write", {}, "gone"});
  fails.artifacts.clear();
  fails.map_file.clear();
  CHECK(done_again(fails) == 1);
  CHECK_FALSE(fs::exists(kept));
  CHECK(fs::is_directory(aside / slide.artifacts.front().file / "below"));
  CHECK(fs::is_regular_file(aside / "2" / slide.artifacts.front().file));
  CHECK(text_of(aside / "2/maps/map.npy") == "map");
  CHECK(done_again(fails) == 0);
  CHECK(done_again(other) == 0);

  // A link that leads out of the folder is none of the run's.
  const fs::path elsewhere = folder / "elsewhere";
  fs::rename(kept.parent_path(), elsewhere);
  fs::create_directory_symlink(elsewhere, kept.parent_path());
  CHECK(done_again(fails) == 0);
  CHECK(fs::exists(elsewhere / kept.filename()));
}

TEST_CASE("a slide that is to be done again has its files until it ends, however often it was started") {
  const TemporaryFolder folder;
  const fs::path out = folder / "out";
  const Config config = ledger_config(out);
  const auto manifest = make_files(folder, 2);
  std::vector<SlideResult> slides;
  fs::create_directories(out / "maps");
  for (const ManifestEntry& entry : manifest) {
    SlideResult& slide = slides.emplace_back(attached_result_of(entry.path, slides.size()));
    slide.map_file = fs::path(entry.path).stem().string() + ".npy";
    folder.write("out/" + map_path(slide.map_file), std::string("map"));
  }
  {
    Ledger ledger(config);
    ledger.begin(manifest, false);
    for (std::size_t i = 0; i < slides.size(); ++i) end_with_files(ledger, i, slides[i]);
  }
  const auto start = [&](const std::vector<ManifestEntry>& entries, bool works = false) {
    Ledger ledger(config);
    ledger.begin(entries, false);
    ledger.image_names();
    if (!works) return;
    ledger.started(0);
    ledger.files_begun(0);
  };
  bool moves = true;
  SUBCASE("a map can't be read, as is found behind the start") {}
  SUBCASE("their files changed") {
    for (const ManifestEntry& entry : manifest) std::ofstream(entry.path, std::ios::app) << "more";
    start(manifest, true);
    SUBCASE("and a start was stopped") {}
    SUBCASE("and starts had other lists or shards") {
      start({manifest[1]});
      start({{manifest[0].path, manifest[0].canonical, false}, manifest[1]});
    }
    SUBCASE("and the list of files isn't what was written") {
      tamper(out / ledger_name, "UPDATE artifacts SET bytes = bytes + 1; UPDATE slides SET map_name = ''");
      moves = false;
    }
  }
  SUBCASE("their rows can't be read") {
    tamper(out / ledger_name, "UPDATE slides SET width = width + 1");
    start(manifest);
  }
  Ledger ledger(config);
  ledger.begin(manifest, false);
  for (std::size_t i = 0; i < slides.size(); ++i) ledger.redo(i);
  SlideResult fails = failure_of(manifest[0].path, {"read", {}, "why"});
  ledger.started(0);
  CHECK(ledger.ended(0, fails).size() == (moves ? 1 : 0));
  ledger.started(1);
  make_artifacts(out, slides[1]);
  CHECK(ledger.ended(1, slides[1]).empty());
  for (std::size_t i = 0; i < slides.size(); ++i) {
    const bool stays = i == 1 || !moves;
    const auto check = [&](const fs::path& file) {
      CHECK_MESSAGE(fs::exists(out / file) == stays, file);
      CHECK_MESSAGE(fs::exists(out / earlier_of_failed / file) == !stays, file);
    };
    check(map_path(slides[i].map_file));
    for (const Artifact& artifact : slides[i].artifacts) check(artifact.file);
  }
  // It fails again, and has none.
  ledger.started(0);
  CHECK(ledger.ended(0, fails).empty());
}

TEST_CASE("files whose name has passed to another slide stay when the first fails") {
  const TemporaryFolder folder;
  const fs::path out = folder / "out";
  for (const char* name : {"a", "b"}) fs::create_directories(folder / name);
  const std::string a = folder.write("a/x.svs", std::string("one"));
  const std::string b = folder.write("b/y.svs", std::string("another"));
  const SlideResult slide = attached_result_of(a, 1);
  Ledger ledger(ledger_config(out));
  ledger.begin({{a, "first"}}, false);
  REQUIRE(ledger.image_names() == std::vector<std::string>{"x"});
  end_with_files(ledger, 0, slide);
  for (int starts = 0; starts < 2; ++starts) {
    REQUIRE(ledger.begin({{b, "first"}, {a, "second"}}, false).todo.size() == 2);
    REQUIRE(ledger.image_names() == std::vector<std::string>{"y", "x"});
  }
  SlideResult fails = failure_of(b, {"read", {}, "why"});
  ledger.started(0);
  CHECK(ledger.ended(0, fails).empty());
  for (const Artifact& artifact : slide.artifacts) CHECK(fs::exists(out / artifact.file));
}

TEST_CASE("files that are moved replace nothing, go through no link, and what stays is named") {
  const TemporaryFolder folder;
  const fs::path out = folder / "out";
  const fs::path aside = out / earlier_of_failed;
  const fs::path elsewhere = folder / "elsewhere";
  const fs::path image = out / "images/a.tif";
  for (const fs::path& each : {out / "images", out / "maps", elsewhere}) fs::create_directories(each);
  folder.write("out/images/a.tif", std::string("image"));
  folder.write("out/maps/a.npy", std::string("map"));
  const std::vector<std::string> files = {"images/a.tif", "maps/a.npy"};
  SUBCASE("names are free") {
    const SetAside result = set_aside(out, files);
    CHECK(result.folder == aside);
    CHECK(result.refusal.empty());
    CHECK(text_of(aside / "images/a.tif") == "image");
    CHECK(text_of(aside / "maps/a.npy") == "map");
    CHECK_FALSE(fs::exists(image));
  }
  SUBCASE("names are taken") {
    fs::create_directories(aside / "images/a.tif");
    folder.write("out/earlier-failed/images/a.tif/notes", std::string("mine"));
    fs::create_directories(aside / "2/maps");
    folder.write("out/earlier-failed/2/maps/a.npy", std::string("mine"));
    const SetAside result = set_aside(out, files);
    CHECK(result.folder == aside / "3");
    CHECK(result.refusal.empty());
    CHECK(text_of(aside / "3/images/a.tif") == "image");
    CHECK(text_of(aside / "3/maps/a.npy") == "map");
    CHECK(text_of(aside / "images/a.tif/notes") == "mine");
    CHECK(text_of(aside / "2/maps/a.npy") == "mine");
  }
  SUBCASE("a file has the folder's name") {
    folder.write("out/earlier-failed", std::string("mine"));
    const SetAside result = set_aside(out, files);
    CHECK(result.folder.empty());
    CHECK(result.refusal ==
          image.string() + " stays, as " + aside.string() + " isn't a folder; so do others of its files: 1");
    CHECK(text_of(image) == "image");
    CHECK(text_of(aside) == "mine");
  }
  SUBCASE("the folder is a link") {
    fs::create_directory_symlink(elsewhere, aside);
    const SetAside result = set_aside(out, files);
    CHECK(result.folder.empty());
    CHECK(result.refusal ==
          image.string() + " stays, as " + aside.string() + " is a link; so do others of its files: 1");
    CHECK(text_of(image) == "image");
    CHECK(fs::is_empty(elsewhere));
  }
  SUBCASE("a folder in it is a link") {
    fs::create_directory(aside);
    fs::create_directory_symlink(elsewhere, aside / "images");
    // Its names aren't looked at, either.
    folder.write("elsewhere/a.tif", std::string("mine"));
    const SetAside result = set_aside(out, files);
    CHECK(result.folder == aside);
    CHECK(result.refusal == image.string() + " stays, as " + (aside / "images").string() + " is a link");
    CHECK(text_of(image) == "image");
    CHECK(text_of(aside / "maps/a.npy") == "map");
    CHECK(text_of(elsewhere / "a.tif") == "mine");
  }
}

TEST_CASE("names that no run gives files don't move") {
  const TemporaryFolder folder;
  const fs::path out = folder / "out";
  fs::create_directories(out / "images");
  for (const char* name : {"out/notes.txt", "out/images/a.tif"}) folder.write(name, std::string("mine"));
  const SetAside result = set_aside(out, {"notes.txt", "images", std::string("images/\0", 8)});
  CHECK(result.folder.empty());
  CHECK(result.refusal.empty());
  for (const char* name : {"notes.txt", "images/a.tif"}) CHECK_MESSAGE(text_of(out / name) == "mine", name);
}
