#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "config/csv.hpp"
#include "config/keys.hpp"
#include "output/text.hpp"
#include "sample_run.hpp"
#include "support/test_data.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;

namespace {

constexpr int bins = 12;

Config config_for(const test::TemporaryFolder& folder) {
  Config config;
  config.output.dir = (folder / "deep/out").string();
  config.analysis.bins = bins;
  return config;
}

/// A Python with NumPy, or "".
std::string numpy_python() {
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    if (std::system((std::string(python) + " -c 'import numpy' 2>/dev/null").c_str()) == 0) return python;
  }
  return "";
}

}  // namespace

TEST_CASE("decimals") {
  CHECK(to_decimal(0.1) == "0.1");
  CHECK(to_decimal(34.59197123092513) == "34.59197123092513");
  CHECK(to_decimal(Int128{0}) == "0");
  CHECK(to_decimal(Int128{-7}) == "-7");
  const Int128 large = Int128{1} << 126;
  CHECK(to_decimal(large) == "85070591730234615865843651857942052864");
  CHECK(to_decimal(-large - large) == "-170141183460469231731687303715884105728");
}

TEST_CASE("slides.csv has a record for every slide, which reads back exactly") {
  const test::TemporaryFolder folder;
  const Config config = config_for(folder);
  const RunResult run = test::sample_run(bins);
  write_results(config, run);
  const auto records = parse_csv(test::file_text(folder / "deep/out/slides.csv"), "slides.csv");
  REQUIRE(records.size() == 4);
  CHECK(records[0].fields == std::vector<std::string>{"path",          "status",    "error",   "width",   "height",
                                                      "codec",         "colour",    "level",   "mpp",     "windows",
                                                      "mean_db",       "std_db",    "p05",     "p50",     "p95",
                                                      "missing_tiles", "bad_tiles", "clipped", "backend", "seconds"});
  const auto& first = records[1].fields;
  REQUIRE(first.size() == 20);
  CHECK(first[0] == run.slides[0].path);
  CHECK(first[1] == "done");
  CHECK(first[3] == "4443");
  CHECK(first[8] == "0.1");
  CHECK(first[9] == "3");
  CHECK(std::stod(first[10]) == run.slides[0].sums.mean());
  CHECK(std::stod(first[11]) == run.slides[0].sums.standard_deviation());
  CHECK(std::stod(first[13]) == run.slides[0].sums.percentile(0.5, 0.0, 150.0));
  CHECK(first[15] == "2");
  CHECK(first[17] == "7");
  CHECK(std::stod(first[19]) == 1.0 / 3.0);
  const auto& failed = records[2].fields;
  REQUIRE(failed.size() == 20);
  CHECK(failed[1] == "failed");
  CHECK(failed[2] == "read: the file ends, early");
  for (std::size_t i = 3; i < failed.size(); ++i) CHECK(failed[i].empty());
}

TEST_CASE("a slide with many figures takes as long as they are many") {
  const test::TemporaryFolder folder;
  const Config config = config_for(folder);
  RunResult run = test::sample_run(bins);
  REQUIRE(run.slides[0].done);
  constexpr std::size_t many = 100'000;
  for (std::size_t i = 0; i < many; ++i) {
    run.slides[0].values.push_back({"made.figure" + std::to_string(i), static_cast<double>(i)});
  }
  // Time of the processor, of which the square of their number takes minutes.
  const std::clock_t start = std::clock();
  write_results(config, run);
  CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 15.0);
  const std::string text = test::file_text(std::filesystem::path(config.output.dir) / "slides.csv");
  CHECK(text.substr(0, text.find('\r')).ends_with(",made.figure99999"));
}

TEST_CASE("files that were made are in artifacts.csv, figures in columns of slides.csv") {
  const test::TemporaryFolder folder;
  const Config config = config_for(folder);
  const std::filesystem::path out = config.output.dir;
  RunResult run = test::sample_run(bins);
  write_results(config, run);
  const std::string without = test::file_text(out / "corpus.json");
  CHECK_FALSE(std::filesystem::exists(out / "artifacts.csv"));

  REQUIRE(run.slides[0].done);
  const auto failed = std::ranges::find(run.slides, false, &SlideResult::done);
  REQUIRE(failed != run.slides.end());
  run.slides[0].values = {{"tissue.share", 0.1}, {"a,b", 3}};
  failed->values = {{"tissue.threshold", 17}};
  run.slides[0].artifacts = {{"sobel", "edges", "images/a,\"b\".sobel.ome.tif", 1234, 0xfedc},
                             {"tissue", "outlines", "images/a.tissue.geojson", 0, ~std::uint64_t{0}}};
  write_results(config, run);
  const auto records = parse_csv(test::file_text(out / "artifacts.csv"), "artifacts.csv");
  const std::string& path = run.slides[0].path;
  REQUIRE(records.size() == 3);
  CHECK(records[0].fields == std::vector<std::string>{"path", "operator", "product", "file", "bytes", "digest"});
  CHECK(records[1].fields ==
        std::vector<std::string>{path, "sobel", "edges", "images/a,\"b\".sobel.ome.tif", "1234", "000000000000fedc"});
  CHECK(records[2].fields ==
        std::vector<std::string>{path, "tissue", "outlines", "images/a.tissue.geojson", "0", "ffffffffffffffff"});
  const auto slides = parse_csv(test::file_text(out / "slides.csv"), "slides.csv");
  REQUIRE(slides[0].fields.size() == 22);
  CHECK(slides[0].fields[20] == "tissue.share");
  CHECK(slides[0].fields[21] == "a,b");
  CHECK(slides[1].fields[20] == "0.1");
  CHECK(slides[1].fields[21] == "3");
  for (std::size_t i = 2; i < slides.size(); ++i) {
    CHECK(slides[i].fields.size() == 22);
    // A failed slide has no figures, and makes no column.
    for (std::size_t column = 20; column < 22; ++column) CHECK(slides[i].fields[column].empty());
  }
  const auto corpus = nlohmann::json::parse(test::file_text(out / "corpus.json"));
  CHECK(corpus["artifacts"] == nlohmann::json{{"files", 2}, {"bytes", 1234}});

  // Without them the files are as they were, and none of an earlier moment stays.
  write_results(config, test::sample_run(bins));
  CHECK(test::file_text(out / "corpus.json") == without);
  CHECK_FALSE(std::filesystem::exists(out / "artifacts.csv"));
}

TEST_CASE("failures.csv names stage, tile and cause") {
  const test::TemporaryFolder folder;
  const Config config = config_for(folder);
  RunResult run = test::sample_run(bins);
  // No word of a cause is taken for a field.
  const std::vector<std::pair<SlideFailure, std::vector<std::string>>> failures = {
      {{"read", {}, "the file ends, early"}, {"read", "", "the file ends, early"}},
      {{"decode", 17, "tile 17 (column 1, row 4): bad"}, {"decode", "17", "tile 17 (column 1, row 4): bad"}},
      {{"decode", 0, "not the tile 5 that is named"}, {"decode", "0", "not the tile 5 that is named"}},
      {{"read", {}, "tile 5: stays a text"}, {"read", "", "tile 5: stays a text"}},
      {{"", {}, "decode: no stage at all"}, {"", "", "decode: no stage at all"}},
      {{}, {"", "", ""}},
  };
  for (const auto& [why, fields] : failures) {
    run.slides[1].fail(why);
    write_results(config, run);
    const auto records = parse_csv(test::file_text(folder / "deep/out/failures.csv"), "failures.csv");
    REQUIRE(records.size() == 2);
    CHECK(records[0].fields == std::vector<std::string>{"path", "stage", "tile", "cause"});
    CHECK(records[1].fields == std::vector<std::string>{"failed.svs", fields[0], fields[1], fields[2]});
  }
}

TEST_CASE("corpus.json holds settings, exact sums and the merged histogram") {
  const test::TemporaryFolder folder;
  const Config config = config_for(folder);
  const RunResult run = test::sample_run(bins);
  write_results(config, run);
  const auto corpus = nlohmann::json::parse(test::file_text(folder / "deep/out/corpus.json"));
  for (const ConfigKey& key : config_keys()) {
    CHECK_MESSAGE(corpus["settings"][std::string(key.section)].contains(std::string(key.name)), key.full_name());
  }
  CHECK(corpus["settings"]["analysis"]["bins"] == bins);
  CHECK(corpus["settings"]["output"]["maps"] == "none");
  CHECK(corpus["versions"]["slidestream"] == version());
  const auto& totals = corpus["totals"];
  CHECK(totals["slides_done"] == 2);
  CHECK(totals["slides_failed"] == 1);
  CHECK(totals["windows"] == 6);
  CHECK(totals["clipped"] == 14);
  CHECK(totals["missing_tiles"] == 4);
  CHECK(totals["mean"].get<double>() == run.corpus.mean());
  CHECK(totals["std"].get<double>() == run.corpus.standard_deviation());
  CHECK(totals["sum"] == to_decimal(run.corpus.sum));
  CHECK(corpus["histogram"].get<std::vector<std::uint64_t>>() == run.corpus.histogram);
  CHECK(corpus["stages"][0]["name"] == "read");
  CHECK(corpus["interrupted"] == false);
  CHECK_FALSE(corpus.contains("overlap"));
}

TEST_CASE("What nobody measured is no number") {
  const test::TemporaryFolder folder;
  const Config config = config_for(folder);
  RunResult run = test::sample_run(bins);
  const auto empty = [](SpectrumSums& sums) {
    const std::size_t size = sums.histogram.size();
    sums = {};
    sums.histogram.assign(size, 0);
  };
  for (SlideResult& slide : run.slides) empty(slide.sums);
  empty(run.corpus);
  write_results(config, run);
  const auto records = parse_csv(test::file_text(folder / "deep/out/slides.csv"), "slides.csv");
  for (const std::string name : {"windows", "mean_db", "std_db", "p05", "p50", "p95"}) {
    const auto column = std::ranges::find(records[0].fields, name) - records[0].fields.begin();
    CHECK(records[1].fields.at(static_cast<std::size_t>(column)) == (name == "windows" ? "0" : ""));
  }
  const auto totals = nlohmann::json::parse(test::file_text(folder / "deep/out/corpus.json"))["totals"];
  for (const char* name : {"mean", "std", "p05", "p50", "p95"}) CHECK(totals[name].is_null());
}

TEST_CASE("corpus.json says how busy GPUs were, where that is known") {
  const test::TemporaryFolder folder;
  const Config config = config_for(folder);
  RunResult run = test::sample_run(bins);
  run.overlap.emplace();
  run.overlap->devices.resize(2);
  DeviceOverlap& second = run.overlap->devices[1];
  second.device = 3;
  second.seconds = 4.0;
  second.kernel_seconds = 3.0;
  const auto written = [&] {
    write_results(config, run);
    return nlohmann::json::parse(test::file_text(folder / "deep/out/corpus.json"))["overlap"];
  };
  CHECK(written()["copy_hidden_share"].is_null());
  second.copy_seconds = 2.0;
  second.copy_hidden_seconds = 0.5;
  second.copy_covered_seconds = 1.5;
  second.longest_gap_seconds = 0.125;
  second.waited_for = "decode";
  const auto overlap = written();
  CHECK(overlap["copy_hidden_share"] == 0.25);
  CHECK(overlap["copy_covered_share"] == 0.75);
  CHECK(overlap["gpu_busy_share"] == 0.75);
  CHECK(overlap["longest_gap_seconds"] == 0.125);
  CHECK(overlap["longest_gap_waited_for"] == "decode");
  CHECK(overlap["devices"].size() == 2);
  CHECK(overlap["devices"][1]["device"] == 3);
}

TEST_CASE("the same results are the same bytes, and nothing temporary stays") {
  const test::TemporaryFolder one;
  const test::TemporaryFolder two;
  const RunResult run = test::sample_run(bins);
  Config config = config_for(one);
  write_results(config, run);
  write_results(config, run);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(config.output.dir)) {
    ++files;
    CHECK_FALSE(entry.path().filename().string().starts_with('.'));
  }
  CHECK(files == 4);
  config.output.dir = (two / "out").string();
  write_results(config, run);
  for (const char* name : {"slides.csv", "histograms.npy"}) {
    CHECK(test::file_text(one / "deep/out" / name) == test::file_text(two / "out" / name));
  }
}

TEST_CASE("a run without slides still writes readable files") {
  const test::TemporaryFolder folder;
  const Config config = config_for(folder);
  write_results(config, RunResult{});
  CHECK(nlohmann::json::parse(test::file_text(folder / "deep/out/corpus.json"))["histogram"].size() == bins);
  CHECK(parse_csv(test::file_text(folder / "deep/out/slides.csv"), "").size() == 1);
}

TEST_CASE("texts for JSON: bytes that aren't UTF-8 are written as their numbers") {
  CHECK(json_text("").empty());
  CHECK(json_text("M\xc3\xbcller \xf0\x9f\x94\xac.svs") == "M\xc3\xbcller \xf0\x9f\x94\xac.svs");
  CHECK(json_text("M\xfcller") == "M\\xfcller");
  CHECK(json_text("\xff\xc3") == "\\xff\\xc3");
  CHECK(json_text("a\\xff") == "a\\xff");
}

TEST_CASE("names that aren't UTF-8 stay bytes in slides.csv and don't break corpus.json") {
  const test::TemporaryFolder folder;
  Config config = config_for(folder);
  config.input.slides = {"\xff.svs"};
  RunResult run = test::sample_run(bins);
  run.slides[0].path = "\xff.svs";
  write_results(config, run);
  CHECK(test::file_text(folder / "deep/out/slides.csv").find("\xff.svs,done") != std::string::npos);
  CHECK(nlohmann::json::accept(test::file_text(folder / "deep/out/corpus.json")));
}

TEST_CASE("NumPy and Python's csv read what was written") {
  const std::string python = numpy_python();
  if (python.empty()) {
    test::report_skipped("no Python with NumPy");
    return;
  }
  const test::TemporaryFolder folder;
  Config config = config_for(folder);
  config.output.maps = MapFormat::npy;
  RunResult run = test::sample_run(bins);
  run.slides[0].map = {3, 2, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}};
  write_results(config, run);
  const std::string map = write_map(config, run.slides[0], "a");
  const std::string script = (folder / "check.py").string();
  std::ofstream(script) << R"(
import csv, numpy, sys
folder, map_file = sys.argv[1:]
counts = numpy.load(folder + "/histograms.npy")
assert counts.shape == (3, 12) and counts.dtype == numpy.int64 and counts.flags["C_CONTIGUOUS"], counts
assert (counts[0] == numpy.arange(12, dtype=numpy.int64) << numpy.int64(33)).all(), counts
assert not counts[1].any() and (counts[2] == counts[0]).all()
values = numpy.load(map_file)
assert values.shape == (2, 3, 2) and values.dtype == numpy.float32
assert (values.ravel() == numpy.arange(12)).all()
rows = list(csv.DictReader(open(folder + "/slides.csv", newline="")))
assert [row["path"] for row in rows] == ['a, "b"\n.svs', "failed.svs", "c.svs"], rows
assert [row["status"] for row in rows] == ["done", "failed", "done"]
assert rows[1]["mean_db"] == "" and float(rows[0]["mean_db"]) != 0
)";
  CHECK(std::system((python + " '" + script + "' '" + config.output.dir + "' '" + map + "'").c_str()) == 0);
}
