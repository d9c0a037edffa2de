// What ends a slide's network before its time: a stop, and the slide's time limit.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/made_up_network.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;
using namespace slidestream::test;
using test::run;

TEST_CASE("a stop leaves slides unfinished whose networks were under way, and made again they are the same (long)") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 30, test::Coding::none, 120);
  const auto network = std::make_shared<MadeUp>();
  network->count = 2;
  const RunResult expected = run(config_of_network(folder, "whole"), slides, with(network));
  const Config config = config_of_network(folder, "stopped");
  RunControl control;
  control.on_slide = [&](SlideResult&) { control.request_stop(); };
  test::NotBeforeStop last{control, slides.back()};
  const RunResult result = run_pipeline_with_faults(config, slides, control, with(network, last.injection()));
  CHECK(result.interrupted);
  REQUIRE_FALSE(result.slides.empty());
  for (const SlideResult& slide : result.slides) {
    REQUIRE_MESSAGE(slide.done, slide.error);
    const auto same = std::ranges::find(expected.slides, slide.path, &SlideResult::path);
    CHECK(slide.artifacts.at(0).digest == same->artifacts.at(0).digest);
  }
  CHECK(digests(run(config, slides, with(network))) == digests(expected));
}

TEST_CASE("a stop leaves slides alone that were opened and never begun, also where it waits for one to be opened") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 6, test::Coding::none, 120);
  const auto network = std::make_shared<MadeUp>();
  network->count = 2;
  Config config = config_of_network(folder, "stopped");
  // Nobody but the thread that waits for the graph does what the graph is given after its end.
  config.pipeline.threads = 1;
  RunControl control;
  // One opens some time after the stop. Others go first, and one of those is open when the stop comes.
  control.on_start = [&](const std::string& path) {
    if (path != slides[0]) return;
    const auto latest = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!control.stop_requested() && std::chrono::steady_clock::now() < latest) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  };
  control.on_slide = [&](SlideResult&) { control.request_stop(); };
  const RunResult result = run_pipeline_with_faults(config, slides, control, with(network));
  CHECK(result.interrupted);
  CHECK(result.slides.size() < slides.size());
  for (const SlideResult& slide : result.slides) CHECK_MESSAGE(slide.done, slide.error);
}

TEST_CASE(
    "a slide whose network takes too long fails with one line, and how long one waits isn't its own time (long)") {
  const test::TemporaryFolder folder;
  std::vector<std::string> slides;
  for (int i = 0; i < 5; ++i) {
    // Two don't come to their end, and are all that there is room for. Nobody waits for memory that another slide has,
    // which would count: the two have two rows of tiles, and keep no batches for which there is no room, and the others
    // are a strip each.
    test::Image image = test::textured_image(i < 2 ? 300 : 130, i < 2 ? 150 : 110, static_cast<std::uint64_t>(i));
    slides.push_back(folder / ((i < 2 ? "stuck" : "sound") + std::to_string(i) + ".tif"));
    test::write_test_slide(slides.back(), image);
  }
  for (const StitchMode mode : {StitchMode::strict, StitchMode::lenient}) {
    const auto network = std::make_shared<MadeUp>();
    network->count = 4;
    network->cut.batch = 1;
    Config config = config_of_network(folder, mode == StitchMode::strict ? "strict" : "lenient");
    config.stitch.mode = mode;
    for (int i = 0; i < 2; ++i) {
      const std::size_t before = network->known.size();
      MadeUp other;
      know(other, slides[static_cast<std::size_t>(i)], config);
      for (const auto& [look, number] : other.known) network->known.emplace(look, number + 100 * i);
      REQUIRE(network->known.size() == before + other.known.size());
    }
    network->stuck = {1, 101};
    const auto is_sound = [](const SlideResult& slide) { return slide.path.find("sound") != std::string::npos; };
    const std::string out = config.output.dir;
    std::string late;
    const auto run_with = [&](int limit) {
      config.output.dir = out + std::to_string(limit);
      config.input.max_seconds = limit;
      late = ": took longer than input.max_seconds = " + std::to_string(limit);
      return run(config, slides, with(network));
    };
    const RunResult result = test::run_with_limits(run_with, [&](const RunResult& some) {
      return std::ranges::all_of(some.slides, [&](const SlideResult& slide) { return slide.done == is_sound(slide); });
    });
    REQUIRE(result.slides.size() == slides.size());
    for (const SlideResult& slide : result.slides) {
      CHECK_MESSAGE(slide.done == is_sound(slide), slide.error);
      if (is_sound(slide)) continue;
      // Where the machine is slow, the time may be over in a stage in front of it.
      CHECK((slide.error == "model" + late || slide.error == "compute" + late));
      CHECK(std::filesystem::exists(network_image_of(config, slide, ".model.partial.ome.tif")));
    }
  }
}

TEST_CASE("a stop ends what networks compute, and their slides are made again (long)") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 2);
  for (const NetworkOutput::Kind kind : {NetworkOutput::Kind::image, NetworkOutput::Kind::vector}) {
    const auto network = std::make_shared<MadeUp>();
    network->count = 2;
    network->given.kind = kind;
    Config config = config_of_network(folder, "stopped" + std::to_string(static_cast<int>(kind)));
    // All strips are read before the network is at its last tiles.
    config.pipeline.strip_height = 4000;
    know(*network, slides[0], config);
    network->stuck = {60};
    RunControl control;
    network->when_stuck = [&] { control.request_stop(); };
    const RunResult result = run_pipeline_with_faults(config, slides, control, with(network));
    CHECK(result.interrupted);
    CHECK(std::ranges::none_of(result.slides, [&](const auto& slide) { return slide.path == slides[0]; }));
    for (const SlideResult& slide : result.slides) CHECK_MESSAGE(slide.done, slide.error);
    network->stuck.clear();
    if (kind == NetworkOutput::Kind::vector) continue;
    const auto fresh = std::make_shared<MadeUp>();
    const RunResult expected = run(config_of_network(folder, "whole"), slides, with(fresh));
    CHECK(digests(run(config, slides, with(network))) == digests(expected));
  }
}

TEST_CASE("slides that wait to be let in hold nothing that those need whose later rows come after theirs") {
  const test::TemporaryFolder folder;
  std::vector<std::string> slides;
  for (int i = 0; i < 6; ++i) {
    test::Image image = test::textured_image(90, i < 2 ? 240 : 90, static_cast<std::uint64_t>(i + 1));
    slides.push_back(folder / ("slide" + std::to_string(i) + ".tif"));
    test::write_test_slide(slides.back(), image);
  }
  // Of the first two, which are let in, the second strip is decoded after the slides behind them, for whose bands there
  // are slots.
  FaultInjection faults = with(std::make_shared<MadeUp>());
  faults.data = &slides;
  faults.fault = [](void* data, const char* stage, const std::string& path, std::size_t strip) {
    const auto& all = *static_cast<const std::vector<std::string>*>(data);
    if (std::string(stage) != "decode") return;
    const bool behind = path != all[0] && path != all[1];
    if (strip > 0 || behind) std::this_thread::sleep_for(std::chrono::milliseconds(behind ? 40 : 150));
  };
  for (const bool mixed : {false, true}) {
    const auto network = std::make_shared<MadeUp>();
    network->cut.mixed = mixed;
    faults.operators = with(network).operators;
    Config config = config_of_network(folder, mixed ? "mixed" : "alone");
    config.pipeline.threads = 4;
    const std::string out = config.output.dir;
    const auto run_with = [&](int limit) {
      config.output.dir = out + std::to_string(limit);
      config.input.max_seconds = limit;
      return run(config, slides, faults);
    };
    test::require_done(test::run_with_limits(
        run_with, [](const RunResult& result) { return std::ranges::all_of(result.slides, &SlideResult::done); }));
  }
}
