// What a slide has besides its row: files that were made of it, figures, further sums.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ledger/attachments.hpp"
#include "ledger/slide_row.hpp"
#include "ledger_runs.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

namespace fs = std::filesystem;

void keep(Ledger& ledger, std::size_t place, SlideResult slide) {
  ledger.started(place);
  ledger.ended(place, slide);
}

}  // namespace

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
  for (std::size_t i = 0; i < kept.size(); ++i) keep(ledger, i, kept[i]);
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
  other = kept[0];
  other.further_sums.pop_back();
  CHECK_FALSE(same_result(other, kept[0]));

  // Done anew, it has what it has then alone.
  keep(ledger, 0, result_of(manifest[0].path, 1));
  SlideResult failed = attached_result_of(manifest[2].path, 3);
  failed.fail({"write", {}, "gone"});
  keep(ledger, 2, failed);
  for (const SlideResult& slide : slides_in(ledger)) {
    CHECK(slide.artifacts.empty());
    CHECK(slide.values.empty());
    CHECK(slide.further_sums.empty());
  }
}

TEST_CASE("a slide of which nothing was counted") {
  const TemporaryFolder folder;
  const auto manifest = make_files(folder, 1);
  Ledger ledger(ledger_config(folder / "out"));
  ledger.begin(manifest, false);
  SlideResult slide = attached_result_of(manifest[0].path, 1);
  slide.sums = {};
  slide.map = {};
  keep(ledger, 0, slide);
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
           "UPDATE sums SET data = x'00ff02' WHERE slide = 2 AND number = 0",
           "UPDATE sums SET data = '' WHERE slide = 2 AND number = 1",
           "UPDATE sums SET name = 'split' WHERE slide = 2 AND number = 0",
           "DELETE FROM sums WHERE slide = 2",
           "UPDATE slides SET attached = NULL WHERE id = 2",
           "UPDATE slides SET attached = attached + 1 WHERE id = 2",
           "UPDATE slides SET image_name = 'other' WHERE id = 2",
       }) {
    CAPTURE(change);
    for (const std::size_t place : ledger.begin(manifest, true).todo) {
      keep(ledger, place, attached_result_of(manifest[place].path, 3 + place));
    }
    REQUIRE(slides_in(ledger).size() == 2);
    tamper(ledger.file(), change);
    const std::string message = message_of<OutputError>([&] { slides_in(ledger); });
    CHECK_MESSAGE(contains(message, "isn't what was written"), message);
    const LedgerStart start = ledger.begin(manifest, false);
    CHECK(std::ranges::find(start.todo, std::size_t{1}) != start.todo.end());
    CHECK(start.damaged.size() == start.todo.size());
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
    keep(ledger, 0, slide);
    return message_of<OutputError>([&] { slides_in(ledger); });
  };
  CHECK(with("/elsewhere/a.ome.tif").empty());
  CHECK(contains(with("images/../../a"), "what is attached to " + manifest[0].path + " isn't what was written"));
  CHECK(contains(with(std::string("images/a\0b", 10)), "isn't what was written"));
}
