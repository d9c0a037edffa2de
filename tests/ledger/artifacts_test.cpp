// What a slide has besides its row: files that were made of it, and figures.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include "ledger/artifact_files.hpp"
#include "ledger/attachments.hpp"
#include "ledger/fingerprint.hpp"
#include "ledger/map_files.hpp"
#include "ledger/merge.hpp"
#include "ledger/slide_row.hpp"
#include "ledger_runs.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace fs = std::filesystem;

TEST_CASE("attachments come back exactly and in order") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 3);
  Ledger ledger(config);
  ledger.begin(manifest, false);
  std::vector<SlideResult> kept = {attached_result_of(manifest[0].path, 1), result_of(manifest[1].path, 2),
                                   attached_result_of(manifest[2].path, 3)};
  kept[2].artifacts.front().file = "images/\xff\n.ome.tif";
  kept[2].values.front().value = std::numeric_limits<double>::quiet_NaN();
  kept[2].values.back().value = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < kept.size(); ++i) end_with_files(ledger, i, kept[i]);
  const auto slides = slides_in(ledger);
  REQUIRE(slides.size() == kept.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    CHECK(same_result(slides[i], kept[i]));
    REQUIRE(slides[i].artifacts.size() == kept[i].artifacts.size());
    for (std::size_t k = 0; k < kept[i].artifacts.size(); ++k) {
      CHECK(slides[i].artifacts[k].file == kept[i].artifacts[k].file);
    }
  }
  SlideResult other = kept[0];
  other.artifacts[1].digest = 8;
  CHECK_FALSE(same_result(other, kept[0]));
  other = kept[0];
  other.values[0].value = 0.11;
  CHECK_FALSE(same_result(other, kept[0]));

  // Done anew, it has what it has then alone.
  end_with_files(ledger, 0, result_of(manifest[0].path, 1));
  SlideResult failed = attached_result_of(manifest[2].path, 3);
  failed.fail({"write", {}, "gone"});
  end_with_files(ledger, 2, failed);
  for (const SlideResult& slide : slides_in(ledger)) {
    CHECK(slide.artifacts.empty());
    CHECK(slide.values.empty());
  }
}

TEST_CASE("a file that is a link counts as what it leads to, and is told") {
  const TemporaryFolder folder;
  const fs::path out = folder / "out";
  const auto manifest = make_files(folder, 1);
  const SlideResult slide = attached_result_of(manifest[0].path, 1);
  {
    Ledger ledger(ledger_config(out));
    CHECK(ledger.begin(manifest, false).links == 0);
    end_with_files(ledger, 0, slide);
  }
  const fs::path file = out / slide.artifacts.front().file;
  const fs::path moved = folder / "moved";
  fs::rename(file, moved);
  fs::create_symlink(moved, file);
  {
    Ledger ledger(ledger_config(out));
    const LedgerStart start = ledger.begin(manifest, false);
    CHECK(start.done == 1);
    CHECK(start.links == 1);
    CHECK(start.first_link == file.string());
  }
  fs::remove(moved);
  {
    // The disk may not be there at the moment.
    Ledger ledger(ledger_config(out));
    CHECK_THROWS_WITH_AS(ledger.begin(manifest, false), doctest::Contains("where nothing is"), ConfigError);
  }
  fs::remove(file);
  Ledger ledger(ledger_config(out));
  const LedgerStart start = ledger.begin(manifest, false);
  CHECK(start.done == 0);
  CHECK(start.links == 0);
  CHECK(start.unmade.size() == 1);
}

TEST_CASE("a slide of which nothing was counted") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 1);
  Ledger ledger(ledger_config(folder / "out"));
  ledger.begin(manifest, false);
  SlideResult slide = attached_result_of(manifest[0].path, 1);
  slide.sums = {};
  slide.map = {};
  end_with_files(ledger, 0, slide);
  const auto slides = slides_in(ledger);
  REQUIRE(slides.size() == 1);
  CHECK(slides[0].sums.histogram == std::vector<std::uint64_t>(ledger_bins, 0));
  CHECK(slides[0].artifacts.size() == 2);
}

TEST_CASE("any change of an attachment is found, and its slide done again") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 2);
  Ledger ledger(ledger_config(folder / "out"));
  for (const char* change : {
           "UPDATE artifacts SET bytes = bytes + 1 WHERE slide = 2 AND number = 0",
           "UPDATE artifacts SET digest = digest + 1 WHERE slide = 2 AND number = 1",
           "UPDATE artifacts SET operator = 'gaussian' WHERE slide = 2 AND number = 0",
           "UPDATE artifacts SET product = '' WHERE slide = 2 AND number = 0",
           "UPDATE artifacts SET file = replace(file, 'slide-1', 'slide-0') WHERE slide = 2",
           "UPDATE artifacts SET number = 2 WHERE slide = 2 AND number = 0",
           "UPDATE artifacts SET slide = 1, number = 9 WHERE slide = 2 AND number = 1",
           "DELETE FROM artifacts WHERE slide = 2",
           "INSERT INTO artifacts VALUES(2, 2, 'a', 'b', 'c', 0, 0)",
           "UPDATE figures SET value = 0.25 WHERE slide = 2 AND number = 0",
           "UPDATE figures SET value = NULL WHERE slide = 2 AND number = 0",
           "UPDATE figures SET name = 'tissue.area' WHERE slide = 2 AND number = 0",
           "DELETE FROM figures WHERE slide = 2 AND number = 1",
           "UPDATE slides SET attached = NULL WHERE id = 2",
           "UPDATE slides SET attached = attached + 1 WHERE id = 2",
           "UPDATE slides SET image_name = 'other' WHERE id = 2",
       }) {
    CAPTURE(change);
    for (const std::size_t place : ledger.begin(manifest, true).todo) {
      end_with_files(ledger, place, attached_result_of(manifest[place].path, 3 + place));
    }
    REQUIRE(slides_in(ledger).size() == 2);
    tamper(ledger.file(), change);
    const std::string message = message_of<OutputError>([&] { slides_in(ledger); });
    CHECK_MESSAGE(contains(message, "isn't what was written"), message);
    const LedgerStart start = ledger.begin(manifest, false);
    CHECK(std::ranges::find(start.todo, std::size_t{1}) != start.todo.end());
    CHECK(start.damaged.size() == start.todo.size());
    CHECK(start.unmade.empty());
    CHECK(slides_in(ledger).size() == 2 - start.todo.size());
  }
}

TEST_CASE("a path that leads out of the folder is no artifact's") {
  for (const char* file : {"images/a.ome.tif", "a", "images/..b", "images/\n"}) CHECK_MESSAGE(is_inside(file), file);
  for (const char* file : {"", "/a", "../a", "images/../a", "images/", "./a", "images/..", "."}) {
    CHECK_FALSE_MESSAGE(is_inside(file), file);
  }
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 1);
  Ledger ledger(ledger_config(folder / "out"));
  ledger.begin(manifest, false);
  const auto with = [&](const std::string& file) {
    SlideResult slide = attached_result_of(manifest[0].path, 1);
    slide.artifacts[0].file = file;
    ledger.started(0);
    ledger.ended(0, slide);
    return message_of<OutputError>([&] { slides_in(ledger); });
  };
  CHECK(with("/elsewhere/a.ome.tif").empty());
  CHECK(contains(with("images/../../a"), "what is attached to " + manifest[0].path + " isn't what was written"));
  CHECK(contains(with(std::string("images/a\0b", 10)), "isn't what was written"));
}

TEST_CASE("a slide whose files aren't there in their sizes is done again") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 4);
  const fs::path out = folder / "out";
  Ledger ledger(ledger_config(out));
  ledger.begin(manifest, false);
  for (std::size_t i = 0; i < 3; ++i) end_with_files(ledger, i, attached_result_of(manifest[i].path, i));
  end_with_files(ledger, 3, result_of(manifest[3].path, 3));
  CHECK(ledger.begin(manifest, false).todo.empty());

  fs::remove(out / "images/slide-0.tissue.geojson");
  fs::resize_file(out / "images/slide-2.sobel.ome.tif", 5);
  const LedgerStart start = ledger.begin(manifest, false);
  CHECK(start.todo == std::vector<std::size_t>{0, 2});
  CHECK(start.done == 2);
  REQUIRE(start.unmade.size() == 2);
  CHECK(start.unmade[0] == manifest[0].path + ": " + (out / "images/slide-0.tissue.geojson").string() + " is missing");
  CHECK(start.unmade[1] ==
        manifest[2].path + ": " + (out / "images/slide-2.sobel.ome.tif").string() + " has 5 bytes and had 1002");
  for (const std::size_t place : start.todo)
    end_with_files(ledger, place, attached_result_of(manifest[place].path, place));
  CHECK(ledger.begin(manifest, false).todo.empty());

  // A result whose slide is gone can't be made again: it is kept, and told apart from one that is whole.
  const std::string image = out / "images/slide-1.sobel.ome.tif";
  fs::remove(image);
  for (const std::size_t gone : {1, 2}) fs::remove(manifest[gone].path);
  const LedgerStart without = ledger.begin(manifest, false);
  CHECK(without.todo.empty());
  CHECK(without.done == 4);
  CHECK(without.vanished == std::vector<std::string>{manifest[2].path});
  CHECK(without.lacking == std::vector<std::string>{manifest[1].path + ": " + image + " is missing"});
}

TEST_CASE("files of a slide that changed while it was read are removed") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 1);
  const fs::path out = folder / "out";
  Ledger ledger(ledger_config(out));
  ledger.begin(manifest, false);
  SlideResult slide = attached_result_of(manifest[0].path, 1);
  ledger.started(0);
  make_artifacts(out, slide);
  folder.write("slide-0", std::string("other"));
  ledger.ended(0, slide);
  CHECK_FALSE(slide.done);
  CHECK(slide.artifacts.empty());
  CHECK(fs::is_empty(out / "images"));
}

TEST_CASE("joined results name files where they lie") {
  const TemporaryFolder folder;
  auto manifest = make_files(folder, 2);
  const fs::path out = folder / "out";
  const std::vector<std::string> parts = {(folder / "part").string(), (out / "part").string()};
  for (std::size_t part = 0; part < parts.size(); ++part) {
    manifest[0].mine = part == 0;
    manifest[1].mine = part == 1;
    Ledger ledger(ledger_config(parts[part]));
    ledger.begin(manifest, false);
    CHECK(ledger.image_name(part) == "slide-" + std::to_string(part));
    end_with_files(ledger, part, attached_result_of(manifest[part].path, part));
  }
  for (int again = 0; again < 2; ++again) CHECK(merge_ledgers(parts, out.string()).not_written.empty());
  Ledger ledger(ledger_config(out));
  const auto slides = slides_in(ledger);
  REQUIRE(slides.size() == 2);
  CHECK(slides[0].artifacts[0].file == fs::canonical(folder / "part/images/slide-0.sobel.ome.tif").string());
  CHECK(slides[1].artifacts[1].file == "part/images/slide-1.tissue.geojson");
  CHECK(
      contains(text_of(out / "artifacts.csv"), ",sobel,edges,part/images/slide-1.sobel.ome.tif,1001,fffffffffffffffe"));
  manifest[0].mine = manifest[1].mine = true;
  CHECK(ledger.begin(manifest, false).todo.empty());
  fs::remove(folder / "part/images/slide-0.sobel.ome.tif");
  CHECK(ledger.begin(manifest, false).unmade.size() == 1);
  CHECK(read_status(out).artifacts == 2);
  CHECK(read_status(parts[1]).artifact_bytes == 1001);
}

TEST_CASE("files of a run that was joined stay with its ledger, whatever becomes of the joined one") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 1);
  const fs::path out = folder / "out";
  const fs::path part = out / "part";
  {
    Ledger ledger(ledger_config(part));
    ledger.begin(manifest, false);
    CHECK(ledger.image_name(0) == "slide-0");
    end_with_files(ledger, 0, attached_result_of(manifest[0].path, 0));
  }
  CHECK(merge_ledgers({part.string()}, out.string()).not_written.empty());
  const fs::path image = part / "images/slide-0.sobel.ome.tif";
  SUBCASE("it is moved aside") { CHECK(Ledger::move_aside(ledger_config(out), {}) == (out / "earlier-1").string()); }
  SUBCASE("the slide fails in it") {
    std::ofstream(manifest[0].path, std::ios::app) << "more";
    Ledger ledger(ledger_config(out));
    CHECK(ledger.begin(manifest, false).todo.size() == 1);
    SlideResult failed = failure_of(manifest[0].path, {"source", {}, "gone"});
    ledger.started(0);
    const Ledger::Ended one = {0, &failed};
    ledger.keep({&one, 1});
  }
  CHECK(fs::exists(image));
}

TEST_CASE("operators that run and their settings decide, and those of images where there are any") {
  const auto differ = [](const Config& config, const std::string& setting) {
    Config other = config;
    apply_setting(other, setting);
    return deciding_settings(config) != deciding_settings(other);
  };
  Config config;
  for (const char* setting : {"operators.run=[\"spectrum\",\"sobel\"]", "analysis.stride=64", "input.mpp=0.5"}) {
    CHECK_MESSAGE(differ(config, setting), setting);
  }
  for (const char* setting : {"sobel.output=\"float32\"", "image.quality=50", "tissue.share=0.25",
                              "stain.output=\"eosin\"", "pipeline.threads=3"}) {
    CHECK_FALSE_MESSAGE(differ(config, setting), setting);
  }
  config.operators.run = {"sobel", "stain"};
  config.image.format = ImageFormat::ome_tiff;
  for (const char* setting : {"sobel.output=\"float32\"", "image.quality=50", "stain.output=\"eosin\"",
                              "tissue.source=\"geojson\"", "image.format=\"none\""}) {
    CHECK_MESSAGE(differ(config, setting), setting);
  }
  for (const char* setting : {"analysis.stride=64", "gaussian.radius=3"})
    CHECK_FALSE_MESSAGE(differ(config, setting), setting);
}

TEST_CASE("a map that isn't this run's to move is said to be with another run or behind a link") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const fs::path maps = folder / "out/maps";
  SUBCASE("another run") {
    fs::create_directories(maps);
    folder.write("out/maps/run.sqlite", std::string("another's"));
  }
  SUBCASE("a link") {
    fs::create_directories(folder / "elsewhere");
    fs::create_directory_symlink(folder / "elsewhere", maps);
  }
  folder.write("out/maps/a.npy", std::string("theirs"));
  CHECK(message_of<OutputError>([&] { spare_maps(config, {"a.npy"}); }) ==
        (maps / "a.npy").string() +
            ": isn't the one that the ledger lists, and lies behind a link or with another run; move it away");
  CHECK(text_of(maps / "a.npy") == "theirs");
}

TEST_CASE("a map's name is in the ledger before its file is there") {
  const TemporaryFolder folder;
  Config config = ledger_config(folder / "out");
  config.output.maps = MapFormat::npy;
  const auto manifest = make_files(folder, 1);
  Ledger ledger(config);
  ledger.begin(manifest, false);
  ledger.started(0);
  SlideResult slide = result_of(manifest[0].path, 0);
  ledger.ended(0, slide);
  folder.write("out/maps", std::string("no folder"));
  CHECK_THROWS_AS(static_cast<void>(write_missing_maps(config, ledger, {"other.npy"})), OutputError);
  CHECK(ledger.listed_maps().files.contains("other.npy"));
  fs::remove(folder / "out/maps");
  CHECK(write_missing_maps(config, ledger, {"other.npy"}).empty());
  CHECK(fs::file_size(folder / "out/maps/other.npy") > 0);
}
