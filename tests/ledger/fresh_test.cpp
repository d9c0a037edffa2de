// --fresh: an earlier run is moved aside, all of it or nothing, also where its ledger can't be read.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ledger/artifact_files.hpp"
#include "ledger/aside.hpp"
#include "ledger_runs.hpp"
#include "support/nobody.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

namespace fs = std::filesystem;

constexpr const char* staging = ".slidestream-earlier";

/// All files and links below a folder, by their paths in it, without what SQLite has beside a ledger.
std::set<std::string> files_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).string();
    const bool is_file = entry.is_symlink() || !entry.is_directory();
    if (is_file && !name.starts_with("run.sqlite-")) names.insert(name);
  }
  return names;
}

/// A run of two slides with files, tables and maps, and what somebody else put there.
Config earlier_run(const TemporaryFolder& folder, const std::string& name = "out") {
  const Config config = ledger_config(folder / name);
  const fs::path out = config.output.dir;
  const auto manifest = make_files(folder, 2);
  {
    Ledger ledger(config);
    ledger.begin(manifest, false);
    for (std::size_t i = 0; i < manifest.size(); ++i)
      end_with_files(ledger, i, attached_result_of(manifest[i].path, i));
  }
  fs::create_directories(out / "maps");
  folder.write(name + "/maps/slide-0.npy", std::string("map"));
  folder.write(name + "/slides.csv", std::string("path,status,error,size\r\n"));
  folder.write(name + "/corpus.json", std::string("{}"));
  folder.write(name + "/images/mine.txt", std::string("mine"));
  folder.write(name + "/notes.txt", std::string("mine"));
  return config;
}

void overwrite(const fs::path& file, std::uintmax_t begin, std::uintmax_t end) {
  std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(static_cast<std::streamoff>(begin));
  out << std::string(static_cast<std::size_t>(end - begin), 'Z');
  out.close();
  REQUIRE(out);
}

}  // namespace

TEST_CASE("an earlier run moves aside, and what isn't its own stays") {
  const TemporaryFolder folder;
  const Config config = earlier_run(folder);
  const fs::path out = config.output.dir;
  folder.write("out/maps/mine.npy", std::string("mine"));
  std::set<std::string> before = files_in(out);
  CHECK(Ledger::move_aside(config, {}) == (out / "earlier-1").string());
  CHECK(before.erase("notes.txt") + before.erase("images/mine.txt") == 2);
  CHECK(files_in(out / "earlier-1") == before);
  // What lies among maps moves with them.
  CHECK_FALSE(fs::exists(out / "maps"));
  CHECK(fs::exists(out / "notes.txt"));
  CHECK(fs::exists(out / "images/mine.txt"));
  CHECK_FALSE(Ledger::has_results(config));
  { const Ledger ledger(config); }
}

TEST_CASE("what no run makes stays, whatever the ledger lists, and is told in one line") {
  const TemporaryFolder folder;
  for (const std::string name : {"run.sqlite", "notes.txt", "slides.csv", "images", "../out/notes.txt"}) {
    CAPTURE(name);
    const Config config = earlier_run(folder);
    const fs::path out = config.output.dir;
    std::set<std::string> before = files_in(out);
    tamper(out / "run.sqlite", "UPDATE artifacts SET file = '" + name + "' WHERE number = 0");
    std::vector<std::string> told;
    Ledger::Options options;
    options.on_passed_over = [&told](const std::string& line) { told.push_back(line); };
    CHECK(Ledger::move_aside(config, options) == (out / "earlier-1").string());
    CHECK(told == std::vector<std::string>{(out / "run.sqlite").string() + ": lists \"" + name +
                                           "\" among the files of slides, which no run here makes; it is passed over, "
                                           "and others: 1"});
    for (const char* stays :
         {"notes.txt", "images/mine.txt", "images/slide-0.sobel.ome.tif", "images/slide-1.sobel.ome.tif"}) {
      CHECK_MESSAGE(fs::exists(out / stays), stays);
      CHECK(before.erase(stays) == 1);
    }
    CHECK(files_in(out / "earlier-1") == before);
    CHECK_FALSE(Ledger::has_results(config));
    fs::remove_all(out);
  }
}

TEST_CASE("--fresh takes what the ledger lists and unfinished files of its names, and nothing else") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 2);
  const Config config = ledger_config(folder / "out");
  const fs::path out = config.output.dir;
  const fs::path elsewhere = folder / "elsewhere.tif";
  {
    Ledger ledger(config);
    ledger.begin(manifest, false);
    CHECK(ledger.image_name(1) == "slide-1");
    SlideResult slide = attached_result_of(manifest[0].path, 1);
    slide.artifacts.push_back({"sobel", "edges", elsewhere.string(), 3, 0});
    end_with_files(ledger, 0, slide);
  }
  const std::vector<std::string> others = {"mine.ome.tif", "mine.sobel.partial.ome.tif", "slide-1.sobel.ome.tif",
                                           ".partial.tif", "slide-1.partial.tif"};
  for (const std::string& name : others) folder.write("out/images/" + name, std::string("x"));
  folder.write("out/images/slide-1.sobel.partial.ome.tif", std::string("x"));
  folder.write("out/images/slide-1.tissue.partial.geojson", std::string("x"));
  folder.write("out/images/slide-1.model.partial.partial.csv", std::string("x"));
  CHECK(Ledger::move_aside(config, {}) == (out / "earlier-1").string());
  for (const std::string& name : others) CHECK_MESSAGE(fs::exists(out / "images" / name), name);
  CHECK(std::distance(fs::directory_iterator(out / "images"), {}) == static_cast<std::ptrdiff_t>(others.size()));
  for (const char* name : {"slide-0.sobel.ome.tif", "slide-0.tissue.geojson", "slide-1.sobel.partial.ome.tif",
                           "slide-1.tissue.partial.geojson", "slide-1.model.partial.partial.csv"}) {
    CHECK_MESSAGE(fs::exists(out / "earlier-1/images" / name), name);
  }
  CHECK(fs::exists(elsewhere));
}

TEST_CASE("--fresh moves nothing that a link leads to, whatever the ledger lists") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 2);
  const Config config = ledger_config(folder / "out");
  const fs::path out = config.output.dir;
  fs::create_directories(folder / "others/below");
  folder.write("others/thesis.txt", std::string("x"));
  folder.write("others/slide-1.sobel.partial.ome.tif", std::string("x"));
  folder.write("others/below/book.txt", std::string("x"));
  {
    Ledger ledger(config);
    ledger.begin(manifest, false);
    CHECK(ledger.image_name(1) == "slide-1");
    SlideResult slide = attached_result_of(manifest[0].path, 1);
    for (const char* file : {"link/thesis.txt", "link/below", "images/thesis.txt"}) {
      slide.artifacts.push_back({"sobel", "edges", file, 1, 0});
    }
    end_with_files(ledger, 0, slide);
  }
  for (const char* name : {"link", "images"}) fs::remove_all(out / name);
  fs::create_directory_symlink(folder / "others", out / "link");
  fs::create_directory_symlink(folder / "others", out / "images");
  Ledger::move_aside(config, {});
  for (const char* name : {"thesis.txt", "slide-1.sobel.partial.ome.tif", "below/book.txt"}) {
    CHECK_MESSAGE(fs::exists(folder / "others" / name), name);
  }
  CHECK(fs::exists(out / "earlier-1/run.sqlite"));
}

TEST_CASE("earlier files of slides that failed move aside with their run") {
  const TemporaryFolder folder;
  const Config config = earlier_run(folder);
  const fs::path out = config.output.dir;
  const fs::path failed = out / earlier_of_failed;
  const fs::path moved = out / "earlier-1" / earlier_of_failed;
  fs::create_directories(failed / "images");
  folder.write("out/earlier-failed/images/slide-0.sobel.ome.tif", std::string("before"));
  bool moves = true;
  SUBCASE("of a run with its ledger") {}
  SUBCASE("of a run whose ledger is gone") { fs::remove(out / "run.sqlite"); }
  SUBCASE("of a run whose move was interrupted") { fs::create_directory(out / staging); }
  SUBCASE("behind a link") {
    fs::rename(failed, folder / "large disk");
    fs::create_directory_symlink("../large disk", failed);
  }
  SUBCASE("beside tables of others") {
    fs::remove(out / "run.sqlite");
    folder.write("out/slides.csv", std::string("slide,label\r\n"));
    moves = false;
  }
  CHECK(Ledger::move_aside(config, {}) == (out / "earlier-1").string());
  CHECK(text_of((moves ? moved : failed) / "images/slide-0.sobel.ome.tif") == "before");
  CHECK_FALSE(fs::exists(fs::symlink_status(moves ? failed : moved)));
}

TEST_CASE("a file of others that is called as the folder for files of failed slides stays") {
  const TemporaryFolder folder;
  const Config config = earlier_run(folder);
  const fs::path out = config.output.dir;
  folder.write("out/earlier-failed", std::string("mine"));
  CHECK(Ledger::move_aside(config, {}) == (out / "earlier-1").string());
  CHECK(text_of(out / earlier_of_failed) == "mine");
}

TEST_CASE("an earlier run whose ledger can't be read moves aside with the folders of its slides") {
  const TemporaryFolder folder;
  const Config whole = earlier_run(folder);
  const std::uintmax_t size = fs::file_size(fs::path(whole.output.dir) / "run.sqlite");
  REQUIRE(size > 16384);
  using Damage = std::function<void(const fs::path&)>;
  const auto cut = [](std::uintmax_t to) -> Damage {
    return [to](const fs::path& file) { fs::resize_file(file, to); };
  };
  const auto scratch = [](std::uintmax_t begin, std::uintmax_t end) -> Damage {
    return [=](const fs::path& file) { overwrite(file, begin, end); };
  };
  const std::vector<std::pair<std::string, Damage>> cases = {
      {"gone", [](const fs::path& file) { fs::remove(file); }},
      {"cut to 100", cut(100)},
      {"cut to 4096", cut(4096)},
      {"cut to a half", cut(size / 2)},
      {"another head", scratch(0, 100)},
      {"the second page", scratch(4096, 8192)},
      {"all but the first page", scratch(4096, size)},
      {"something else", [](const fs::path& file) { std::ofstream(file) << "no ledger"; }},
  };
  for (const auto& each : cases) {
    const std::string& name = each.first;
    CAPTURE(name);
    const Config config = earlier_run(folder, name);
    const fs::path out = config.output.dir;
    std::set<std::string> before = files_in(out);
    each.second(out / "run.sqlite");
    before.erase("notes.txt");
    if (name == "gone") before.erase("run.sqlite");
    // Nothing is begun beside it.
    CHECK_THROWS_AS(Ledger{config}, Error);
    CHECK(Ledger::move_aside(config, {}) == (out / "earlier-1").string());
    // Of some damage nobody sees that it isn't in what is read.
    if (name == "the second page" && fs::exists(out / "images/mine.txt")) before.erase("images/mine.txt");
    CHECK(files_in(out / "earlier-1") == before);
    CHECK(text_of(out / "notes.txt") == "mine");
    CHECK_FALSE(Ledger::has_results(config));
    { const Ledger ledger(config); }
    CHECK_FALSE(fs::exists(out / "earlier-2"));
  }
}

TEST_CASE("tables of others are moved aside without the folders beside them") {
  const TemporaryFolder folder;
  const Config config = earlier_run(folder);
  const fs::path out = config.output.dir;
  fs::remove(out / "run.sqlite");
  folder.write("out/slides.csv", std::string("slide,label\r\n"));
  CHECK(Ledger::move_aside(config, {}) == (out / "earlier-1").string());
  CHECK(files_in(out / "earlier-1") == std::set<std::string>{"corpus.json", "maps/slide-0.npy", "slides.csv"});
  CHECK(fs::exists(out / "images/mine.txt"));
  CHECK(fs::exists(out / "images/slide-0.sobel.ome.tif"));
}

TEST_CASE("of a run that left nothing but files of slides these stay, and a line says so") {
  const TemporaryFolder folder;
  const Config config = earlier_run(folder);
  const fs::path out = config.output.dir;
  for (const char* name : {"run.sqlite", "slides.csv", "corpus.json"}) fs::remove(out / name);
  std::string line = out.string() + ": no run.sqlite and no table of a run is there, so what is in images stays";
  std::string aside;
  SUBCASE("without any file of a run") {}
  SUBCASE("beside a table that doesn't say whose it is") {
    folder.write("out/corpus.json", std::string("{}"));
    aside = (out / "earlier-1").string();
  }
  SUBCASE("with a file of the ledger that is gone they move") {
    folder.write("out/run.sqlite-started", std::string("1-2-3\n"));
    aside = (out / "earlier-1").string();
    line.clear();
  }
  std::string told;
  Ledger::Options options;
  options.on_passed_over = [&told](const std::string& text) { told += text; };
  CHECK(Ledger::move_aside(config, options) == aside);
  CHECK(told == line);
  const fs::path place = line.empty() ? fs::path(aside) : out;
  CHECK(fs::exists(place / "images/slide-0.sobel.ome.tif"));
  CHECK(fs::exists(place / "images/mine.txt"));
}

TEST_CASE("files of a ledger that isn't there are refused, and moved aside") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const fs::path out = config.output.dir;
  int number = 0;
  for (const std::string name : {"run.sqlite-wal", "run.sqlite-shm", "run.sqlite-journal", "run.sqlite-started"}) {
    CAPTURE(name);
    folder.write("out/" + name, std::string("mine"));
    CHECK(contains(message_of<ConfigError>([&] { const Ledger ledger(config); }),
                   out.string() + ": has " + name + ", but no run.sqlite; name another folder, or use --fresh"));
    CHECK(text_of(out / name) == "mine");
    const fs::path aside = out / ("earlier-" + std::to_string(++number));
    CHECK(Ledger::move_aside(config, {}) == aside.string());
    CHECK(text_of(aside / name) == "mine");
    // An empty file has nothing to lose.
    folder.write("out/" + name, std::string());
    { const Ledger ledger(config); }
    fs::remove(out / "run.sqlite");
    fs::remove(out / name);
  }
  // What a kill leaves that came when the ledger was still empty.
  folder.write("out/run.sqlite", std::string());
  folder.write("out/run.sqlite-started", std::string("1-2-3\n"));
  { const Ledger ledger(config); }
}

TEST_CASE("a table of labels is a run's over volumes alone") {
  const TemporaryFolder folder;
  Config config = ledger_config(folder / "out");
  const fs::path labels = folder / "out/labels.csv";
  std::ofstream(labels) << "slide,label\r\n";
  CHECK_FALSE(Ledger::has_results(config));
  { const Ledger ledger(config); }
  CHECK(Ledger::move_aside(config, {}) == (folder / "out/earlier-1").string());
  CHECK(fs::exists(labels));
  config.operators.run = {"volume"};
  CHECK(Ledger::has_results(config));
  CHECK(contains(message_of<ConfigError>([&] { Ledger::check_folder(config); }),
                 "has labels.csv, but no run.sqlite; name another folder, or use --fresh"));
  config.volume.fusion = VolumeFusion::blend;
  CHECK_FALSE(Ledger::has_results(config));
  config.volume.fusion = VolumeFusion::vote;
  CHECK(Ledger::move_aside(config, {}) == (folder / "out/earlier-2").string());
  CHECK(text_of(folder / "out/earlier-2/labels.csv") == "slide,label\r\n");
  // That of an earlier run moves with it, whatever comes next.
  config = ledger_config(folder / "out");
  { const Ledger ledger(config); }
  std::ofstream(labels) << "path,label,voxels,mm3\r\n";
  CHECK(Ledger::move_aside(config, {}) == (folder / "out/earlier-3").string());
  CHECK_FALSE(fs::exists(labels));
}

TEST_CASE("a move that was interrupted is told, and the next one goes on with it") {
  const TemporaryFolder folder;
  const Config config = earlier_run(folder);
  const fs::path out = config.output.dir;
  std::set<std::string> before = files_in(out);
  before.erase("notes.txt");
  fs::create_directories(out / staging / "images");
  const auto move = [&](const char* name) { fs::rename(out / name, out / staging / name); };
  bool has_ledger = true;
  SUBCASE("at its begin") {}
  SUBCASE("among the files of slides") { move("images/slide-0.sobel.ome.tif"); }
  SUBCASE("among the tables") {
    for (const char* name : {"images/slide-0.sobel.ome.tif", "images/slide-0.tissue.geojson", "maps", "slides.csv"}) {
      move(name);
    }
    // As a start makes it.
    fs::create_directory(out / "maps");
  }
  SUBCASE("before its end") {
    for (const std::string& name : before) {
      if (name != "images/mine.txt" && !name.starts_with("maps/")) move(name.c_str());
    }
    move("maps");
  }
  SUBCASE("of a run without its ledger") {
    has_ledger = false;
    fs::remove(out / "run.sqlite");
    before.erase("run.sqlite");
    move("images/slide-0.sobel.ome.tif");
    move("slides.csv");
  }
  CHECK(contains(message_of<ConfigError>([&] { const Ledger ledger(config); }), "add --fresh, which does the rest"));
  CHECK(Ledger::has_results(config));
  CHECK(Ledger::move_aside(config, {}) == (out / "earlier-1").string());
  CHECK(fs::exists(out / "images/mine.txt") == has_ledger);
  if (has_ledger) before.erase("images/mine.txt");
  CHECK(files_in(out / "earlier-1") == before);
  CHECK_FALSE(Ledger::has_results(config));
  { const Ledger ledger(config); }
}

TEST_CASE("where one file can't be moved all stay where they are") {
  const TemporaryFolder folder;
  const Config config = earlier_run(folder);
  const fs::path out = config.output.dir;
  fs::create_directory(out / staging);
  folder.write(std::string("out/") + staging + "/corpus.json", std::string("of an earlier one"));
  const std::set<std::string> before = files_in(out);
  CHECK(message_of<OutputError>([&] { Ledger::move_aside(config, {}); }) ==
        (out / staging / "corpus.json").string() + ": is there already");
  CHECK(files_in(out) == before);
  CHECK(text_of(out / "corpus.json") == "{}");
  // Nobody has it.
  fs::remove_all(out / staging);
  { const Ledger ledger(config); }
}

TEST_CASE("where something can't be looked at nothing moves") {
  const TemporaryFolder folder;
  const Config config = earlier_run(folder);
  const fs::path out = config.output.dir;
  const std::set<std::string> before = files_in(out);
  // Whoever moves it may do everything but enter the folder: the superuser's right to is given up.
  const auto open_to_all = [&] {
    REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
    REQUIRE(::chmod(out.c_str(), 0777) == 0);
    for (const auto& entry : fs::directory_iterator(out)) {
      if (entry.is_regular_file()) REQUIRE(::chmod(entry.path().c_str(), 0666) == 0);
    }
  };
  open_to_all();
  {
    const Nobody nobody;
    if (::faccessat(AT_FDCWD, out.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
      MESSAGE("SKIPPED: nobody may reach the folder for temporary files");
      return;
    }
  }
  for (const ::mode_t mode : {0, 0311}) {
    CAPTURE(mode);
    REQUIRE(::chmod((out / "images").c_str(), mode) == 0);
    std::string message;
    {
      const Nobody nobody;
      message = message_of<OutputError>([&] { Ledger::move_aside(config, {}); });
    }
    REQUIRE(::chmod((out / "images").c_str(), 0700) == 0);
    CHECK_MESSAGE(message.starts_with((out / "images").string()), message);
    CHECK_MESSAGE(contains(message, ": can't be looked at: Permission denied"), message);
    CHECK(files_in(out) == before);
    CHECK_FALSE(fs::exists(out / staging));
  }
  { const Ledger ledger(config); }
  CHECK(Ledger::move_aside(config, {}) == (out / "earlier-1").string());
}

TEST_CASE("a folder of slides that is a link moves as one, and what it leads to stays") {
  const TemporaryFolder folder;
  const Config config = earlier_run(folder);
  const fs::path out = config.output.dir;
  fs::rename(out / "images", folder / "large disk");
  fs::create_directory_symlink("../large disk", out / "images");
  CHECK(Ledger::move_aside(config, {}) == (out / "earlier-1").string());
  CHECK_FALSE(fs::exists(fs::symlink_status(out / "images")));
  CHECK(fs::is_symlink(out / "earlier-1/images"));
  CHECK(fs::exists(out / "earlier-1/images/slide-0.sobel.ome.tif"));
}

TEST_CASE("who moves aside or starts waits until others have") {
  const TemporaryFolder folder;
  const Config config = earlier_run(folder);
  std::function<void()> work;
  SUBCASE("a move") {
    work = [&] { Ledger::move_aside(config, {}); };
  }
  SUBCASE("a start") {
    work = [&] { const Ledger ledger(config); };
  }
  SUBCASE("a look at the folder") {
    work = [&] { Ledger::check_folder(config); };
  }
  auto held = std::make_unique<FolderLock>(config.output.dir);
  std::future<void> other = std::async(std::launch::async, work);
  CHECK(other.wait_for(std::chrono::milliseconds(300)) == std::future_status::timeout);
  held.reset();
  other.get();
}

TEST_CASE("a move that moved nothing leaves nothing") {
  const TemporaryFolder folder;
  {
    MoveAside move(folder.path());
    CHECK(is_moving_aside(folder.path()));
    CHECK(move.end({"nothing"}).empty());
  }
  CHECK_FALSE(is_moving_aside(folder.path()));
}
