// Networks whose batches hold tiles of several slides: as few batches as tiles fill, the same results for a network
// that looks at each tile alone, and one slide's failure is its own.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <slidestream/error.hpp>
#include <slidestream/stitch.hpp>

#include "planning/network_plan.hpp"
#include "stages/forecast.hpp"
#include "stages/network/network_admission.hpp"
#include "stages/network/slide_network.hpp"
#include "support/made_up_network.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;
using namespace slidestream::test;
using test::run;

namespace {

/// Slides of 1 to 6 tiles, which look like no other's.
std::vector<std::string> small_slides(const TemporaryFolder& folder, int count) {
  std::vector<std::string> slides;
  for (int i = 0; i < count; ++i) {
    test::Image image = test::textured_image(90 + 60 * (i % 3), 80 + 70 * (i % 2), static_cast<std::uint64_t>(i + 1));
    slides.push_back(folder / ("small" + std::to_string(10 + i) + ".tif"));
    test::write_test_slide(slides.back(), image);
  }
  return slides;
}

std::int64_t tiles_of(const std::vector<std::string>& slides, const MadeUp& network, const Config& config) {
  std::int64_t tiles = 0;
  for (const std::string& slide : slides) {
    tiles +=
        plan_stitching(read_level(slide).image, network.cut.side, network.cut.overlap, 1, config.stitch.edge).tiles();
  }
  return tiles;
}

/// Has the network know all tiles of slides: those of slide i from 100 i on.
void know_all(MadeUp& network, const std::vector<std::string>& slides, const Config& config) {
  for (std::size_t i = 0; i < slides.size(); ++i) {
    MadeUp other;
    other.cut = network.cut;
    know(other, slides[i], config);
    for (const auto& [look, number] : other.known) {
      network.known.emplace(look, number + 100 * static_cast<std::int64_t>(i));
    }
  }
}

}  // namespace

TEST_CASE("mixed: small slides fill batches together, and what comes of their tiles is the same (long)") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = small_slides(folder, 17);
  for (const NetworkOutput::Kind kind : {NetworkOutput::Kind::image, NetworkOutput::Kind::vector}) {
    const bool vector = kind == NetworkOutput::Kind::vector;
    const std::string name = vector ? "vectors" : "images";
    // What each slide came to, by path.
    std::vector<std::vector<float>> vectors(slides.size());
    std::mutex mutex;
    const auto made_by = [&](const std::shared_ptr<MadeUp>& network, const Config& config) {
      network->given.kind = kind;
      network->place = true;
      FaultInjection faults = with(network, test::dawdling);
      if (vector) {
        faults.operators = {std::make_shared<VectorsOperator>(network, [&](const TileVectors& made) {
          const std::lock_guard lock(mutex);
          const auto slide = std::ranges::find_if(
              slides, [&](const auto& path) { return std::filesystem::path(path).stem() == made.name; });
          vectors[static_cast<std::size_t>(slide - slides.begin())].assign(made.values.begin(), made.values.end());
        })};
      }
      return run(config, slides, faults);
    };
    const auto alone = std::make_shared<MadeUp>();
    alone->cut.batch = 7;
    const Config config = config_of_network(folder, name);
    const RunResult expected = made_by(alone, config);
    test::require_done(expected);
    const auto expected_vectors = vectors;
    const std::int64_t tiles = tiles_of(slides, *alone, config);
    // One a slide: none has as many tiles as a batch.
    CHECK(alone->runs == static_cast<int>(slides.size()));
    int i = 0;
    for (const auto& [batch, sessions, depth] : {std::array{7, 1, 1}, std::array{7, 3, 4}, std::array{64, 2, 3}}) {
      const auto network = std::make_shared<MadeUp>();
      network->cut.batch = batch;
      network->cut.mixed = true;
      network->count = sessions;
      network->slow = true;
      Config other = config_of_network(folder, name + std::to_string(i++));
      other.pipeline.queue_depth = depth;
      const RunResult result = made_by(network, other);
      test::require_done(result);
      // A batch that nothing is added to for ten seconds isn't waited for any longer.
      if (result.seconds < 10) CHECK(network->runs == (tiles + batch - 1) / batch);
      CHECK(network->runs >= (tiles + batch - 1) / batch);
      CHECK(digests(result) == digests(expected));
      CHECK(vectors == expected_vectors);
    }
  }
}

TEST_CASE("mixed: large slides and small ones, with tiles that have no room yet, come to the same images (long)") {
  const test::TemporaryFolder folder;
  std::vector<std::string> slides = test::equal_slides(folder, 3);
  for (const std::string& slide : small_slides(folder, 4)) slides.insert(slides.begin() + 1, slide);
  const Config config = config_of_network(folder, "alone");
  const RunResult expected = run(config, slides, with(std::make_shared<MadeUp>()));
  test::require_done(expected);
  for (const int batch : {4, 50}) {
    const auto network = std::make_shared<MadeUp>();
    network->cut.batch = batch;
    network->cut.mixed = true;
    network->count = 2;
    network->slow = true;
    const RunResult result =
        run(config_of_network(folder, std::to_string(batch)), slides, with(network, test::dawdling));
    test::require_done(result);
    CHECK(digests(result) == digests(expected));
  }
}

TEST_CASE("mixed: a batch that fails fails the slides alone whose tiles it fails with (long)") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = small_slides(folder, 12);
  for (const StitchMode mode : {StitchMode::strict, StitchMode::lenient}) {
    const std::string name = mode == StitchMode::strict ? "strict" : "lenient";
    Config config = config_of_network(folder, "sound-" + name);
    config.stitch.mode = mode;
    const RunResult sound = run(config, slides, with(std::make_shared<MadeUp>()));
    test::require_done(sound);
    const auto network = std::make_shared<MadeUp>();
    network->cut.batch = 16;
    network->cut.mixed = true;
    network->count = 2;
    network->slow = true;
    know_all(*network, slides, config);
    // Of slides of 3, 2 and 4 tiles: two throw, one gives what isn't a number.
    network->failing = {202, 700};
    network->wrong = {501};
    Config other = config_of_network(folder, name);
    other.stitch.mode = mode;
    const RunResult result = run(other, slides, with(network, test::dawdling));
    REQUIRE(result.slides.size() == slides.size());
    for (std::size_t i = 0; i < slides.size(); ++i) {
      const SlideResult& slide = result.slides[i];
      INFO(slide.path << ": " << slide.error);
      const bool fails = i == 2 || i == 5 || i == 7;
      CHECK(slide.done == !fails);
      CHECK(std::filesystem::exists(network_image_of(other, slide)) == !fails);
      if (!fails) CHECK(slide.artifacts.at(0).digest == sound.slides[i].artifacts.at(0).digest);
      if (fails) CHECK(slide.failure.stage == "model");
      if (i == 5) CHECK(slide.failure.tile == 1);
      if (i == 2 || i == 7) CHECK(slide.error.find("planted") != std::string::npos);
    }
  }
}

TEST_CASE("mixed: slides that fail before their tiles are cut keep nobody waiting") {
  const test::TemporaryFolder folder;
  std::vector<std::string> slides = small_slides(folder, 5);
  slides.insert(slides.begin() + 2, folder / "absent.tif");
  slides.push_back(folder / "gone.tif");
  const auto network = std::make_shared<MadeUp>();
  network->cut.batch = 100;
  network->cut.mixed = true;
  FaultInjection faults = with(network, test::dawdling);
  faults.data = &slides;
  faults.fault = [](void* data, const char* stage, const std::string& path, std::size_t) {
    if (std::string(stage) == "decode" && path == static_cast<std::vector<std::string>*>(data)->at(4)) {
      throw Error("planted");
    }
  };
  const RunResult result = run(config_of_network(folder, "some"), slides, faults);
  REQUIRE(result.slides.size() == slides.size());
  CHECK(std::ranges::count(result.slides, true, &SlideResult::done) == 4);
  if (result.seconds < 10) CHECK(network->runs == 1);
}

TEST_CASE("mixed: a stop leaves what waits in batches unfinished, and made again it is the same (long)") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = small_slides(folder, 20);
  const auto network = std::make_shared<MadeUp>();
  network->cut.batch = 8;
  network->cut.mixed = true;
  network->count = 2;
  const RunResult expected = run(config_of_network(folder, "whole"), slides, with(network));
  test::require_done(expected);
  know_all(*network, slides, config_of_network(folder, "whole"));
  for (const bool stuck : {false, true}) {
    network->pause = std::chrono::milliseconds(5);
    const Config config = config_of_network(folder, stuck ? "stuck" : "stopped");
    RunControl control;
    if (stuck) {
      network->stuck = {900};
      network->when_stuck = [&] { control.request_stop(); };
    } else {
      control.on_slide = [&](SlideResult&) { control.request_stop(); };
    }
    test::NotBeforeStop last{control, slides.back()};
    const FaultInjection faults = stuck ? test::dawdling : last.injection();
    const RunResult result = run_pipeline_with_faults(config, slides, control, with(network, faults));
    CHECK(result.interrupted);
    CHECK(result.slides.size() < slides.size());
    for (const SlideResult& slide : result.slides) {
      REQUIRE_MESSAGE(slide.done, slide.error);
      const auto same = std::ranges::find(expected.slides, slide.path, &SlideResult::path);
      CHECK(slide.artifacts.at(0).digest == same->artifacts.at(0).digest);
    }
    network->stuck.clear();
    network->pause = {};
    CHECK(digests(run(config, slides, with(network))) == digests(expected));
  }
}

TEST_CASE("mixed: a slide whose tiles take too long fails alone, and the time it cost the others isn't theirs (long)") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = small_slides(folder, 3);
  const auto network = std::make_shared<MadeUp>();
  network->cut.batch = 30;
  network->cut.mixed = true;
  know_all(*network, slides, config_of_network(folder, "late"));
  network->stuck = {200};
  std::string late;
  const auto run_with = [&](int limit) {
    Config config = config_of_network(folder, "late" + std::to_string(limit));
    config.input.max_seconds = limit;
    late = "model: took longer than input.max_seconds = " + std::to_string(limit);
    return run(config, slides, with(network));
  };
  const RunResult result = test::run_with_limits(run_with, [&](const RunResult& some) {
    return some.slides.size() == 3 && some.slides[0].done && some.slides[1].done && some.slides[2].error == late;
  });
  REQUIRE(result.slides.size() == slides.size());
  for (std::size_t i = 0; i < slides.size(); ++i) {
    const SlideResult& slide = result.slides[i];
    CHECK_MESSAGE(slide.done == (i != 2), slide.error);
    if (i == 2) CHECK(slide.error == late);
  }
}

TEST_CASE("mixed: a forecast counts slides that wait for others, and settings decide results") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = small_slides(folder, 12);
  const auto network = std::make_shared<MadeUp>();
  network->cut.batch = 16;
  Config config = config_of_network(folder, "forecast");
  config.pipeline.backend = Backend::cpu;
  const RunForecast alone = forecast_operators(config, with(network).operators, slides, {});
  network->cut.mixed = true;
  const RunForecast mixed = forecast_operators(config, with(network).operators, slides, {});
  CHECK_FALSE(alone.network.mixed);
  CHECK(mixed.network.mixed);
  // All twelve instead of two.
  CHECK(mixed.network.bands_bytes > 3 * alone.network.bands_bytes);
  // Three, and one that a session takes to divide a batch that fails.
  CHECK(mixed.network.batches_bytes == alone.network.batches_bytes / 3 * 4);
}

TEST_CASE("a slide's own time stands still while other slides have all batches, and goes on with one of its own") {
  /// Has no batch at first.
  class By final : public SlideNetwork::Surroundings {
   public:
    bool admit() override {
      time.begin_anew();
      return true;
    }
    bool stopping() const override { return false; }
    std::optional<std::string> late() const override { return std::nullopt; }
    double seconds() const override { return late_at_once ? 1e9 : time.seconds(); }
    void waits(bool for_others) override {
      waiting.push_back(for_others);
      for_others ? time.pause() : time.go_on();
    }
    void parks(bool) override {}
    BatchFiller::Places take_places(std::span<const std::int64_t> tiles, const std::shared_ptr<BatchPart>&) override {
      if (batch == nullptr) return {};
      part = std::make_shared<BatchPart>();
      part->batch = batch;
      part->tiles.assign(tiles.begin(), tiles.end());
      part->taken.assign(tiles.size(), 0);
      return {nullptr, part, batch->pixels.get(), tiles.size()};
    }
    void written(const BatchFiller::Places&) override { part->state = state; }
    void no_more_tiles() override {}
    void give_back(const std::shared_ptr<BatchPart>&) override {}
    void made(const ConstHostView&, std::shared_ptr<runtime::Slot>) override {}
    void drop() override {}
    void drop_own() override {}
    bool dropped() const override { return false; }
    void for_all(std::size_t count, const std::function<void(std::size_t)>& work) override {
      for (std::size_t i = 0; i < count; ++i) work(i);
    }

    WorkTime time;
    std::shared_ptr<NetworkBatch> batch;
    std::shared_ptr<BatchPart> part;
    BatchPart::State state = BatchPart::State::alone;
    bool late_at_once = false;
    std::vector<bool> waiting;
  };
  MadeUp made;
  made.given.kind = NetworkOutput::Kind::vector;
  StitchConfig config;
  config.mode = StitchMode::lenient;
  config.deadline_seconds = 3600;
  const test::PixelImage pixels({224, 90}, rgb_format);
  for (const auto state : {BatchPart::State::alone, BatchPart::State::shared, BatchPart::State::filling}) {
    By by;
    by.state = state;
    SlideNetwork network(made, plan_network(made, {224, 90}, {}, config, 64), config, nullptr);
    network.put(pixels.view(), nullptr, nullptr);
    network.advance(by);
    CHECK(by.waiting == std::vector{true});
    const double before = by.time.seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    CHECK(by.time.seconds() == before);
    by.batch = std::make_shared<NetworkBatch>();
    by.batch->pixels.reset(new std::uint8_t[3 * 4 * 96 * 96]);
    by.batch->values.reset(new float[3 * 4]());
    network.advance(by);
    const bool alone = state == BatchPart::State::alone;
    CHECK(by.waiting == (alone ? std::vector{true, false} : std::vector{true}));
    if (alone) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      CHECK(by.time.seconds() > before);
    }
    network.put(by.part);
    network.advance(by);
    CHECK(network.ended());
    CHECK(by.waiting == std::vector{true, false});
    CHECK_FALSE(network.failure());
  }
  // The deadline is one of this time.
  By by;
  by.late_at_once = true;
  SlideNetwork network(made, plan_network(made, {224, 90}, {}, config, 64), config, nullptr);
  network.put(pixels.view(), nullptr, nullptr);
  network.advance(by);
  REQUIRE(network.failure());
  CHECK(network.failure()->cause.find("stitch.deadline_seconds had passed") != std::string::npos);
}

TEST_CASE("slides are let in as others leave or step aside, and none with a place waits for a batch to be filled") {
  int told = 0;
  int woken = 0;
  const auto wake = [&] { ++woken; };
  NetworkAdmission admission(2, 10, [&] { ++told; });
  std::array<NetworkAdmission::Place, 7> places;
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i].tiles = 6;
    places[i].small = i < 4;
  }
  CHECK(admission.take(places[0], wake));
  CHECK(admission.take(places[1], wake));
  CHECK_FALSE(admission.take(places[2], wake));
  // Who has one needs no other.
  CHECK(admission.take(places[0], wake));
  admission.all_given(places[0]);
  CHECK(admission.take(places[0], wake));
  CHECK(woken == 1);
  CHECK(admission.take(places[2], wake));
  // There is room for ten tiles alone, and the first slide will come to its end.
  admission.all_given(places[1]);
  admission.park(places[1], true);
  CHECK_FALSE(admission.take(places[3], wake));
  CHECK(told == 0);
  // Now it won't, unless its batch goes.
  admission.park(places[0], true);
  CHECK(told == 1);
  admission.park(places[0], false);
  admission.leave(places[0]);
  CHECK(woken == 2);
  CHECK(admission.take(places[3], wake));
  // One that isn't small steps aside while it waits, and the next one can't.
  admission.leave(places[2]);
  admission.leave(places[3]);
  CHECK(admission.take(places[4], wake));
  CHECK(admission.take(places[5], wake));
  admission.all_given(places[4]);
  CHECK_FALSE(admission.take(places[6], wake));
  admission.park(places[4], true);
  CHECK(woken == 3);
  CHECK(admission.take(places[6], wake));
  admission.park(places[6], true);
  CHECK(told == 1);
  CHECK_FALSE(admission.take(places[0], wake));
  CHECK(told == 2);
  admission.park(places[6], false);
  CHECK_FALSE(admission.take(places[2], wake));
  CHECK(told == 2);
}
