#include "sweep/sweep.hpp"

#include <doctest/doctest.h>

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <slidestream/error.hpp>
#include <slidestream/forecast.hpp>

#include "runtime/machine.hpp"
#include "runtime/page_cache.hpp"
#include "support/file_limit.hpp"
#include "support/test_slides.hpp"
#include "sweep/machine_facts.hpp"
#include "sweep/swept_slides.hpp"
#include "sweep/tuned.hpp"

using namespace slidestream;

namespace {

std::string make_slide(const test::TemporaryFolder& folder) {
  test::Image image{400, 300, std::vector<std::uint8_t>(400 * 300)};
  for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<std::uint8_t>(i * 7919 >> 3);
  const std::string path = (folder / "slide.tif").string();
  test::write_test_slide(path, image);
  return path;
}

SweepOptions options_for(const test::TemporaryFolder& folder) {
  SweepOptions options;
  options.base.pipeline.backend = Backend::cpu;
  options.base.pipeline.threads = 2;
  options.base.pipeline.strip_height = 128;
  options.base.analysis.window = 32;
  options.base.analysis.stride = 16;
  options.axes = {parse_axis("pipeline.strip_height=64,128"), parse_axis("pipeline.queue_depth=1,4")};
  options.slides = {make_slide(folder)};
  options.folder = (folder / "sweep").string();
  options.repeat = 2;
  return options;
}

bool never() { return false; }

}  // namespace

TEST_CASE("every combination is measured, and another start has nothing to do") {
  const test::TemporaryFolder folder;
  const SweepOptions options = options_for(folder);
  std::size_t rows = 0;
  {
    Sweep sweep(options, {});
    sweep.run(never);
    CHECK(sweep.difference().empty());
    CHECK_FALSE(sweep.stopped());
    REQUIRE(sweep.combinations().size() == 4);
    for (const CombinationState& state : sweep.combinations()) {
      CHECK(state.seconds.size() == 2);
      CHECK(state.state == CombinationState::State::done);
      CHECK(state.pixels == 400 * 300);
    }
    const auto verdict = sweep.verdict();
    REQUIRE(verdict.has_value());
    CHECK(parse_config(tuned_toml(sweep, *verdict), "tuned").pipeline.strip_height ==
          sweep.combinations()[verdict->winner].combination.config.pipeline.strip_height);
  }
  {
    const SweepFile file(options.folder);
    rows = file.rows().size();
    CHECK(rows >= 8);
    std::set<std::string> results;
    for (const SweepRow& row : file.rows()) results.insert(row.results);
    CHECK(results.size() == 1);
  }
  Sweep again(options, {});
  CHECK(again.runs_before() == rows);
  again.run(never);
  // Only the winner may be another now, and with it what is measured once more: no run of the grid is.
  for (const CombinationState& state : again.combinations()) CHECK(state.seconds.size() == 2);
}

TEST_CASE("a sweep that is stopped goes on (long)") {
  const test::TemporaryFolder folder;
  const SweepOptions options = options_for(folder);
  std::atomic<int> calls{0};  // asked by several threads
  std::size_t measured = 0;
  {
    Sweep sweep(options, {});
    sweep.run([&calls] { return ++calls > 7; });
    CHECK(sweep.stopped());
    for (const CombinationState& state : sweep.combinations()) measured += state.seconds.size();
    CHECK(measured < 8);
  }
  Sweep sweep(options, {});
  CHECK(sweep.runs_before() == measured);
  sweep.run(never);
  for (const CombinationState& state : sweep.combinations()) CHECK(state.seconds.size() == 2);
}

TEST_CASE("another sweep's rows are refused, with what differs") {
  const test::TemporaryFolder folder;
  const SweepOptions options = options_for(folder);
  {
    Sweep sweep(options, {});
    sweep.run(never);
  }
  const auto refused = [](const SweepOptions& other, const std::string& why) {
    CAPTURE(why);
    try {
      const Sweep sweep(other, {});
      FAIL("not refused");
    } catch (const ConfigError& error) {
      CHECK(std::string(error.what()).find(why) != std::string::npos);
    }
  };
  SweepOptions other = options;
  other.base.pipeline.threads = 1;
  refused(other, "pipeline.threads is 1 here and was 2");
  other = options;
  other.cache = CachePolicy::cold;
  refused(other, "the page cache is cold here and was warm");
  other = options;
  other.axes.pop_back();
  refused(other, "the swept keys");
  other = options;
  other.slides.push_back(other.slides.front() + "x");
  refused(other, "the slides are others here");
  // More values of the same keys are more of the same sweep.
  other = options;
  other.axes[1] = parse_axis("pipeline.queue_depth=1,2,4");
  const Sweep more(other, {});
  CHECK(more.combinations().size() == 6);
  CHECK(more.runs_before() > 0);
}

TEST_CASE("slides are the same ones under other names") {
  const test::TemporaryFolder folder;
  const SweepOptions options = options_for(folder);
  {
    Sweep sweep(options, {});
    sweep.run(never);
  }
  const std::size_t rows = SweepFile(options.folder).rows().size();
  CHECK(rows >= 8);
  namespace fs = std::filesystem;
  fs::create_symlink(options.slides.front(), folder / "link.tif");
  SweepOptions other = options;
  for (const fs::path& name : {fs::relative(options.slides.front()), folder / "link.tif"}) {
    other.slides = {name.string()};
    CHECK(Sweep(other, {}).runs_before() == rows);
  }
}

TEST_CASE("what a run doesn't read needn't be in the page cache") {
  CHECK(was_warm(1.0, 1000, 1000));
  // The rest is thumbnails and directories.
  CHECK(was_warm(0.96, 1000, 950));
  CHECK_FALSE(was_warm(0.9, 1000, 950));
  CHECK_FALSE(was_warm(0.4, 1000, 1000));
  // Something was read twice.
  CHECK(was_warm(0.99, 1000, 5000));
  CHECK(was_warm(0.0, 1000, 0));
}

TEST_CASE("combinations that can't be run are listed with the reason") {
  const test::TemporaryFolder folder;
  SweepOptions options = options_for(folder);
  options.base.analysis = {};
  options.base.analysis.smoothing_radius = 3;
  options.axes = {parse_axis("pipeline.memory_mib=1,64"), parse_axis("pipeline.queue_depth=4,1024")};
  options.repeat = 1;
  Sweep sweep(options, {});
  sweep.run(never);
  std::size_t refused = 0;
  for (const CombinationState& state : sweep.combinations()) {
    if (state.state != CombinationState::State::refused) continue;
    ++refused;
    CHECK(state.reason.find("pipeline.memory_mib") != std::string::npos);
    CHECK(state.seconds.empty());
  }
  CHECK(refused > 0);
  CHECK(sweep.best().has_value());
}

TEST_CASE("a combination that doesn't fit the memory that is free isn't tried") {
  const test::TemporaryFolder folder;
  SweepOptions options = options_for(folder);
  options.base.pipeline.memory_mib = 64;
  options.axes = {parse_axis("pipeline.strip_height=64,4096"), parse_axis("output.maps=none,npy")};
  options.memory = 300'000;
  Sweep sweep(options, {});
  sweep.run(never);
  for (const CombinationState& state : sweep.combinations()) {
    CAPTURE(state.combination.name);
    CAPTURE(state.reason);
    // Low strips fill four slots, of which each has carried rows as well; the whole slide fills one.
    if (state.combination.config.pipeline.strip_height == 4096) {
      CHECK(state.seconds.size() == 2);
    } else {
      CHECK(state.state == CombinationState::State::refused);
      CHECK(state.reason.find("of host memory, of which") != std::string::npos);
      CHECK(state.seconds.empty());
    }
  }
}

TEST_CASE("combinations that plan more than a control group may have are left out, or counted in a line") {
  const test::TemporaryFolder folder;
  SweepOptions options = options_for(folder);
  options.base.pipeline.memory_mib = 64;
  options.axes = {parse_axis("pipeline.strip_height=64,4096")};
  options.repeat = 1;
  std::vector<std::string> warnings;
  const auto states_with = [&](std::uint64_t limit, const std::string& out) {
    options.limit = limit;
    options.folder = (folder / out).string();
    std::filesystem::create_directories(options.folder);
    warnings.clear();
    Sweep sweep(options, {.changed = {}, .warn = [&](const std::string& line) { warnings.push_back(line); }});
    sweep.run(never);
    return sweep.combinations();
  };
  const auto told = [&] {
    return std::ranges::count_if(warnings, [](const std::string& line) {
      return line.find(" of memory, and the control group may have ") != std::string::npos;
    });
  };
  for (const CombinationState& state : states_with(std::uint64_t{1} << 50, "ample")) CHECK(state.reason.empty());
  CHECK(told() == 0);
  for (const CombinationState& state : states_with(1000, "none")) {
    CHECK(state.state == CombinationState::State::refused);
    CHECK(state.reason.find("of host memory, of which") != std::string::npos);
  }
  CHECK(told() == 0);
  // Between what the slides touch and what is planned.
  const RunForecast forecast = forecast_run(options.base, options.slides);
  REQUIRE(forecast.touched_bytes() < forecast.host_bytes());
  options.axes = {parse_axis("pipeline.queue_depth=" + std::to_string(options.base.pipeline.queue_depth))};
  for (const CombinationState& state : states_with(forecast.host_bytes() - 1, "tight")) CHECK(state.reason.empty());
  CHECK(told() == 1);
}

TEST_CASE("results are compared among combinations that compute the same") {
  const test::TemporaryFolder folder;
  SweepOptions options = options_for(folder);
  options.axes = {parse_axis("analysis.stride=16,32")};
  Sweep sweep(options, {});
  sweep.run(never);
  CHECK(sweep.difference().empty());
  // The one with fewer windows is faster and no answer.
  REQUIRE(sweep.best().has_value());
  CHECK(sweep.combinations()[*sweep.best()].combination.is_base);
}

TEST_CASE("a torn last row goes, other files stay") {
  const test::TemporaryFolder folder;
  {
    SweepFile file(folder.path());
    SweepRow row;
    row.date = "now";
    row.status = "failed";
    row.reason = "a \"quoted\", reason";
    row.settings.assign(sweep_keys().size(), "x,y");
    file.add(row);
  }
  const std::string path = (folder / "sweep.csv").string();
  std::ofstream(path, std::ios::app) << "2026-11-21,half a ro";
  {
    const SweepFile file(folder.path());
    REQUIRE(file.rows().size() == 1);
    CHECK(file.rows()[0].reason == "a \"quoted\", reason");
    CHECK(file.rows()[0].settings[0] == "x,y");
    CHECK_THROWS_AS(SweepFile(folder.path()), ConfigError);  // one at a time
  }
  std::ifstream in(path);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  CHECK(text.ends_with("\r\n"));
  CHECK(text.find("half a ro") == std::string::npos);
  // What isn't a time.
  const std::size_t status = text.find("failed");
  REQUIRE(status != std::string::npos);
  std::ofstream(path) << std::string(text).replace(status, 6, "done");
  CHECK_THROWS_AS(SweepFile(folder.path()), OutputError);
  std::ofstream(path) << "something else\r\n";
  CHECK_THROWS_AS(SweepFile(folder.path()), OutputError);
  std::ofstream(path) << "no line at all";
  CHECK_THROWS_AS(SweepFile(folder.path()), OutputError);
  CHECK(std::filesystem::file_size(path) == 14);
  std::filesystem::remove(folder / "sweep.csv");
  std::filesystem::create_symlink("/dev/zero", folder / "sweep.csv");
  CHECK_THROWS_WITH_AS(SweepFile(folder.path()), doctest::Contains("not a regular file"), OutputError);
}

TEST_CASE("a row that finds no room leaves none of itself") {
  const test::TemporaryFolder folder;
  SweepFile file(folder.path());
  SweepRow row;
  row.status = "failed";
  row.settings.assign(sweep_keys().size(), "x");
  file.add(row);
  const auto bytes = std::filesystem::file_size(file.path());
  {
    const test::FileLimit full(bytes + 9);
    CHECK_THROWS_AS(file.add(row), OutputError);
  }
  CHECK(std::filesystem::file_size(file.path()) == bytes);
  file.add(row);
  CHECK(file.rows().size() == 2);
}

TEST_CASE("what the page cache holds") {
  const test::TemporaryFolder folder;
  const std::string path = (folder / "file").string();
  std::ofstream(path) << std::string(1 << 20, 'x');
  const auto written = runtime::cached_share({path});
  if (!written) {
    MESSAGE("SKIPPED: the system doesn't tell what is in the page cache");
    return;
  }
  struct ::statfs where {};
  REQUIRE(::statfs(path.c_str(), &where) == 0);
  if (*written == 0 && where.f_type == OVERLAYFS_SUPER_MAGIC) {
    MESSAGE("SKIPPED: layers of file systems don't tell what is in the page cache");
    return;
  }
  CHECK(*written > 0.9);
  runtime::drop_from_cache(path);
  const auto dropped = runtime::cached_share({path});
  REQUIRE(dropped.has_value());
  CHECK(*dropped <= *written);
  CHECK_FALSE(runtime::cached_share({path, path + ".none"}).has_value());
  runtime::drop_from_cache(path + ".none");
}

TEST_CASE("what the machine says of itself") {
  CHECK(runtime::available_memory().value_or(1) > 0);
  CHECK(runtime::peak_memory().value_or(1) > 0);
  CHECK(time_text().size() == 20);
  if (runtime::reset_peak_memory()) {
    const std::uint64_t before = runtime::peak_memory().value_or(0);
    std::vector<char> much(64 << 20, 'x');
    CHECK(much[much.size() / 2] == 'x');
    CHECK(runtime::peak_memory().value_or(0) > before + (32 << 20));
  }
}
