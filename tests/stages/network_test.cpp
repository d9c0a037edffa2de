// Networks over tiles that overlap, as a stage of the graph: the same image whatever works when, and what goes wrong.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <slidestream/error.hpp>
#include <slidestream/stitch.hpp>

#include "ledger/fingerprint.hpp"
#include "operators/registry.hpp"
#include "planning/network_plan.hpp"
#include "support/made_up_gpus.hpp"
#include "support/made_up_network.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;
using namespace slidestream::test;
using test::run;

TEST_CASE(
    "a network's image is what its tiles put together are, whatever the strips, depth, threads and order (long)") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::varied_slides(folder, test::rounds(3), 2);
  for (const bool place : {true, false}) {
    if (!place && test::rounds(4) < 4) continue;
    const auto network = std::make_shared<MadeUp>();
    network->place = place;
    Config config = config_of_network(folder, place ? "place" : "same");
    const RunResult expected = run(config, slides, with(network));
    test::require_done(expected);
    for (const SlideResult& slide : expected.slides) {
      const test::PixelImage pixels = read_level(slide.path);
      const test::PixelImage made = read_level(network_image_of(config, slide));
      const test::PixelImage wanted = whole_image(*network, pixels, config);
      REQUIRE(made.image == wanted.image);
      CHECK(made.same_pixels(wanted, wanted.rect));
      if (!place) CHECK(made.same_pixels(pixels, pixels.rect));
    }
    int i = 0;
    for (const auto& [height, depth, sessions, batch] :
         {std::array{1, 5, 1, 1}, std::array{4000, 1, 3, 2}, std::array{200, 2, 2, 7}, std::array{64, 3, 1, 100}}) {
      const auto other_network = std::make_shared<MadeUp>();
      other_network->place = place;
      other_network->slow = true;
      other_network->count = sessions;
      other_network->cut.batch = batch;
      Config other = config_of_network(folder, std::to_string(place) + std::to_string(i++));
      other.pipeline.strip_height = height;
      other.pipeline.queue_depth = depth;
      other.pipeline.threads = depth;
      // One GPU, and as many as there are.
      if (other.pipeline.backend == Backend::cuda && i % 2 == 0) other.gpu.devices = {0};
      const RunResult result = run(other, slides, with(other_network, test::dawdling));
      test::require_done(result);
      CHECK(digests(result) == digests(expected));
    }
  }
}

TEST_CASE("a network that fails at a tile fails its slide with the first one's name, and the others go on (long)") {
  const test::TemporaryFolder folder;
  // One looks like no other.
  std::vector<std::string> slides = test::equal_slides(folder, 1);
  for (const int seed : {1, 2}) {
    test::Image image = test::textured_image(150 + 40 * seed, 190, static_cast<std::uint64_t>(seed));
    slides.push_back(folder / ("other" + std::to_string(seed) + ".tif"));
    test::write_test_slide(slides.back(), image);
  }
  std::swap(slides[0], slides[1]);
  const Config config = config_of_network(folder, "sound");
  const RunResult sound = run(config, slides, with(std::make_shared<MadeUp>()));
  test::require_done(sound);
  int i = 0;
  struct Failing {
    std::set<std::int64_t> failing;
    std::set<std::int64_t> wrong;
    int batch;
    int sessions;
    std::int64_t named;
  };
  for (const Failing& turn :
       {Failing{{0}, {}, 1, 1, 0}, Failing{{60}, {}, 1, 2, 60}, Failing{{}, {47}, 1, 3, 47},
        Failing{{42}, {40}, 1, 4, 40}, Failing{{40}, {42}, 1, 4, 40}, Failing{{41, 40, 39, 38}, {43, 44}, 1, 6, 38},
        Failing{{40}, {}, 4, 2, 40}, Failing{{42}, {}, 4, 2, 40}, Failing{{}, {42}, 4, 2, 42}}) {
    const auto network = std::make_shared<MadeUp>();
    network->cut.batch = turn.batch;
    network->count = turn.sessions;
    network->slow = true;
    know(*network, slides[1], config);
    network->failing = turn.failing;
    network->wrong = turn.wrong;
    const Config other = config_of_network(folder, "failing" + std::to_string(i++));
    const RunResult result = run(other, slides, with(network, test::dawdling));
    INFO(turn.named << ", batch " << turn.batch << ", sessions " << turn.sessions);
    REQUIRE(result.slides.size() == slides.size());
    for (const SlideResult& slide : result.slides) {
      if (&slide == &result.slides[1]) continue;
      REQUIRE_MESSAGE(slide.done, slide.error);
      CHECK(slide.artifacts.at(0).digest ==
            sound.slides[static_cast<std::size_t>(&slide - result.slides.data())].artifacts.at(0).digest);
    }
    const SlideResult& slide = result.slides[1];
    CHECK_FALSE(slide.done);
    CHECK(slide.failure.stage == "model");
    CHECK_MESSAGE(slide.failure.tile == turn.named, slide.error);
    CHECK_MESSAGE(slide.error.find("model: tile " + std::to_string(turn.named) + " (column ") == 0, slide.error);
    CHECK(slide.artifacts.empty());
    CHECK(std::filesystem::exists(network_image_of(other, slide, ".model.partial.ome.tif")));
    CHECK_FALSE(std::filesystem::exists(network_image_of(other, slide)));
  }
}

TEST_CASE(
    "lenient: what a network fails at is a hole in a whole image, and the slide fails with what is absent (long)") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 1);
  for (const int batch : {2, 4}) {
    const auto network = std::make_shared<MadeUp>();
    network->cut.batch = batch;
    network->count = 3;
    network->place = true;
    network->slow = true;
    Config config = config_of_network(folder, "holes" + std::to_string(batch));
    config.stitch.mode = StitchMode::lenient;
    know(*network, slides[0], config);
    network->failing = {20};
    network->wrong = {0, 33};
    const RunResult result = run(config, slides, with(network, test::dawdling));
    const SlideResult& slide = result.slides.at(0);
    CHECK_FALSE(slide.done);
    CHECK(slide.failure.stage == "model");
    CHECK(slide.failure.tile == 0);
    const std::set<std::int64_t> absent =
        batch == 2 ? std::set<std::int64_t>{0, 20, 21, 33} : std::set<std::int64_t>{0, 20, 21, 22, 23, 33};
    CHECK(slide.error == "model: " + std::to_string(absent.size()) + " of 66 tiles absent: 0, 20 to " +
                             std::to_string(batch == 2 ? 21 : 23) +
                             ", 33; tile 0 (column 0, row 0): the network gave a value that isn't a finite number");
    CHECK(slide.artifacts.empty());
    CHECK_FALSE(std::filesystem::exists(network_image_of(config, slide)));
    const test::PixelImage made = read_level(network_image_of(config, slide, ".model.partial.ome.tif"));
    const test::PixelImage wanted = whole_image(*network, read_level(slides[0]), config, absent);
    CHECK(made.same_pixels(wanted, wanted.rect));
    CHECK(made.at(10, 10) == 255);
  }
}

TEST_CASE("lenient: a slide of vectors that tiles are absent of has no file but the table of them") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 1);
  const auto network = std::make_shared<MadeUp>();
  network->given.kind = NetworkOutput::Kind::vector;
  Config config = config_of_network(folder, "no-vectors");
  config.stitch.mode = StitchMode::lenient;
  know(*network, slides[0], config);
  network->wrong = {3, 64};
  FaultInjection faults = with(network);
  bool written = false;
  faults.operators = {std::make_shared<VectorsOperator>(network, [&](const TileVectors&) { written = true; })};
  const RunResult result = run(config, slides, faults);
  const SlideResult& slide = result.slides.at(0);
  CHECK_FALSE(slide.done);
  CHECK_FALSE(written);
  CHECK_MESSAGE(slide.error.find("model: 2 of 66 tiles absent: 3, 64; tile 3 ") == 0, slide.error);
  std::ifstream table(std::filesystem::path(config.output.dir) / "features" /
                      (std::filesystem::path(slides[0]).stem().string() + ".model.partial.csv"));
  std::string header, first, second, more;
  std::getline(table, header);
  std::getline(table, first);
  std::getline(table, second);
  CHECK(header == "tile,column,row,x,y,width,height,cause\r");
  CHECK_MESSAGE(first.find("3,") == 0, first);
  CHECK_MESSAGE(second.find("64,") == 0, second);
  CHECK_FALSE(std::getline(table, more));
}

TEST_CASE("lenient: after its deadline a slide's tiles are absent, and the run ends (long)") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 1);
  const auto network = std::make_shared<MadeUp>();
  network->cut.batch = 1;
  network->pause = std::chrono::milliseconds(500);
  Config config = config_of_network(folder, "late");
  config.stitch.mode = StitchMode::lenient;
  config.stitch.deadline_seconds = 1;
  const RunResult result = run(config, slides, with(network));
  const SlideResult& slide = result.slides.at(0);
  CHECK_FALSE(slide.done);
  CHECK_MESSAGE(slide.error.find(" of 66 tiles absent: ") != std::string::npos, slide.error);
  CHECK_MESSAGE(slide.error.find("stitch.deadline_seconds had passed") != std::string::npos, slide.error);
  CHECK(read_level(network_image_of(config, slide, ".model.partial.ome.tif")).at(399, 699) == 255);
}

TEST_CASE("images of a network have their own size, channels and labels (long)") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 2);
  struct Kind {
    NetworkOutput::Kind kind;
    int channels;
    int scale;
    SampleType sample;
  };
  int i = 0;
  for (const Kind& kind : {Kind{NetworkOutput::Kind::image, 3, 4, SampleType::uint8},
                           Kind{NetworkOutput::Kind::image, 5, 2, SampleType::uint16},
                           Kind{NetworkOutput::Kind::image, 16, 1, SampleType::uint8},
                           Kind{NetworkOutput::Kind::classes, 4, 1, SampleType::uint8}}) {
    std::optional<std::uint64_t> digest;
    for (const int height : {64, 4000}) {
      const auto network = std::make_shared<MadeUp>();
      network->place = true;
      network->slow = true;
      network->given.kind = kind.kind;
      network->given.channels = kind.channels;
      network->given.scale = kind.scale;
      network->given.sample = kind.sample;
      Config config = config_of_network(folder, "kind" + std::to_string(i++));
      config.image.compression = ImageCompression::automatic;
      config.pipeline.strip_height = height;
      config.stitch.edge = StitchEdge::mirror;
      config.stitch.weights = StitchWeights::cosine;
      const RunResult result = run(config, slides, with(network));
      test::require_done(result);
      if (kind.channels == 3) {
        // JPEG: the pixels are compared elsewhere.
        CHECK(read_level(network_image_of(config, result.slides[0])).image == Size{100, 175});
      }
      CHECK(digests(result)[0] != 0);
      if (!digest) digest = digests(result)[0];
      CHECK(digests(result)[0] == *digest);
    }
  }
}

TEST_CASE("a network of vectors gets its tiles in order and its file is one of the slide's") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 2);
  std::vector<TileVectors> written;
  std::vector<std::vector<float>> values;
  for (const int sessions : {1, 4}) {
    const auto network = std::make_shared<MadeUp>();
    network->given.kind = NetworkOutput::Kind::vector;
    network->given.channels = 6;
    network->count = sessions;
    network->slow = true;
    network->cut.overlap = 0;
    network->cut.batch = 7;
    Config config = config_of_network(folder, "vectors" + std::to_string(sessions));
    know(*network, slides[1], config);
    network->knows_all = true;
    config.image.format = ImageFormat::none;
    FaultInjection faults = test::dawdling;
    std::mutex mutex;
    faults.operators = {std::make_shared<VectorsOperator>(network, [&](const TileVectors& vectors) {
      const std::lock_guard lock(mutex);
      if (vectors.name != std::filesystem::path(slides[1]).stem().string()) return;
      written.push_back(vectors);
      values.emplace_back(vectors.values.begin(), vectors.values.end());
    })};
    const RunResult result = run(config, slides, faults);
    test::require_done(result);
    CHECK(network->known_ones == 2 * 40);
    REQUIRE(result.slides[0].artifacts.size() == 1);
    CHECK(result.slides[0].artifacts[0].file ==
          "features/" + std::filesystem::path(slides[0]).stem().string() + ".vectors");
    CHECK(result.slides[0].artifacts[0].product == "features");
    CHECK(std::filesystem::exists(std::filesystem::path(config.output.dir) / result.slides[0].artifacts[0].file));
  }
  REQUIRE(written.size() == 2);
  const test::PixelImage pixels = read_level(slides[1]);
  // Vectors lie on a regular grid.
  const StitchPlan plan = plan_stitching(pixels.image, 96, 0, 1, StitchEdge::mirror);
  REQUIRE(written[0].corners.size() == static_cast<std::size_t>(plan.tiles()));
  for (std::int64_t tile = 0; tile < plan.tiles(); ++tile) {
    const Rect rect = plan.input_of(plan.tile(tile));
    CHECK(written[0].corners[static_cast<std::size_t>(tile)] == std::array<std::int64_t, 2>{rect.x, rect.y});
    CHECK(values[0][static_cast<std::size_t>(tile * 6)] == static_cast<float>(pixels.at(rect.x, rect.y, 0)));
  }
  CHECK(values[0] == values[1]);
}

TEST_CASE("what can't be stitched is refused in one line before anything is made") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 1);
  const auto refused = [&](auto change, const char* why) {
    const auto network = std::make_shared<MadeUp>();
    Config config = config_of_network(folder, "refused");
    change(*network, config);
    CHECK_THROWS_WITH_AS(run(config, slides, with(network)), doctest::Contains(why), ConfigError);
  };
  refused([](MadeUp& network, Config&) { network.cut.overlap = 49; }, "can't share 49 with their neighbours");
  refused([](MadeUp& network, Config&) { network.given.scale = 5; }, "aren't whole at a scale of 1/5");
  refused([](MadeUp& network, Config&) { network.given.channels = 17; }, "1 to 16 channels");
  refused(
      [](MadeUp& network, Config&) {
        network.given.kind = NetworkOutput::Kind::classes;
        network.given.channels = 1;
      },
      "it gives one channel, so class 0 would be everywhere; set model.output to \"image\"");
  refused([](MadeUp& network, Config&) { network.given.low = 255.0F; }, "its range, 255 to 255, is empty in float32");
  refused([](MadeUp&, Config& config) { config.image.format = ImageFormat::none; }, "image.format is \"none\"");
  const auto fails = [&](auto change, const char* why) {
    const auto network = std::make_shared<MadeUp>();
    Config config = config_of_network(folder, "fails");
    change(*network, config);
    const RunResult result = run(config, slides, with(network));
    CHECK_FALSE(result.slides.at(0).done);
    CHECK_MESSAGE(result.slides[0].error.find(why) != std::string::npos, result.slides[0].error);
    CHECK_FALSE(std::filesystem::exists(network_image_of(config, result.slides[0])));
  };
  fails([](MadeUp& network, Config&) { network.cut.mpp = 0.5; }, "set input.mpp");
  fails(
      [](MadeUp& network, Config& config) {
        network.cut.mpp = 0.25;
        config.input.mpp = 0.5;
      },
      "the slide's pixels have 0.5 micrometres, and the 0.25 of the network is 50 % less; a network for such pixels is "
      "needed");
  fails(
      [](MadeUp&, Config& config) {
        config.stitch.memory_mib = 1;
        config.image.tile = 256;
      },
      "stitching it takes 2 MiB, and stitch.memory_mib is 1; raise it");
}

TEST_CASE("tiles are made at a resolution from the level's pixels (long)") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 1);
  // The last are beyond what GPUs make.
  for (const double target : {0.25, 0.3, 0.7, 2.0, 4.0, 4.1}) {
    const std::size_t before = test::fake_areas();
    const auto network = std::make_shared<MadeUp>();
    network->place = true;
    network->cut.mpp = target;
    network->cut.overlap = 10;
    Config config = config_of_network(folder, "mpp" + std::to_string(target));
    config.input.mpp = 0.25;
    config.image.levels = 1;
    const RunResult result = run(config, slides, with(network));
    test::require_done(result);
    const test::PixelImage pixels = read_level(slides[0]);
    const std::int64_t factor = area_factor(target, 0.25);
    test::PixelImage small(AreaResampler::size_of(pixels.image, factor), rgb_format);
    if (factor == 65536) {
      small = pixels;
    } else {
      resample_area(small.view(), pixels.view(), factor);
    }
    const test::PixelImage wanted = whole_image(*network, small, config);
    const std::filesystem::path file = network_image_of(config, result.slides[0]);
    const test::PixelImage made = read_level(file);
    REQUIRE(made.image == wanted.image);
    CHECK(made.same_pixels(wanted, wanted.rect));
    CHECK(*Slide::open(file)->info().mpp == doctest::Approx(0.25 * static_cast<double>(factor) / 65536.0));
    const bool on_device = test::made_up_gpus() && factor > 65536 && factor <= 16 * 65536;
    CHECK(test::fake_areas() - before ==
          static_cast<std::size_t>(on_device ? small.image.width * small.image.height : 0));
    // Others read the same pixels, strips are of other heights, and there are two GPUs.
    for (const int height : {1, 300}) {
      Config other = config_of_network(folder, "mpp" + std::to_string(target) + "at" + std::to_string(height));
      other.input.mpp = 0.25;
      other.image.levels = 1;
      other.pipeline.strip_height = height;
      other.pipeline.queue_depth = height == 1 ? 1 : 3;
      FaultInjection faults = with(network);
      other.operators.run = {"gaussian", "spectrum"};
      if (height != 1) std::ranges::copy(operators::make_operators(other), std::back_inserter(faults.operators));
      const RunResult more = run(other, slides, faults);
      test::require_done(more);
      CHECK(read_level(network_image_of(other, more.slides[0])).same_pixels(wanted, wanted.rect));
    }
  }
}

TEST_CASE("a network that wants tissue gets no other tiles, which are white in the image, and nothing fails (long)") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 1);
  // A rectangle that is tissue.
  const Rect tissue = {100, 150, 230, 300};
  std::ofstream(std::filesystem::path(slides[0]).replace_extension(".geojson"))
      << R"({"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}, "geometry": {"type":)"
      << R"( "Polygon", "coordinates": [[[100, 150], [330, 150], [330, 450], [100, 450], [100, 150]]]}}]})";
  for (const bool everything : {true, false}) {
    const auto network = std::make_shared<MadeUp>();
    network->place = true;
    network->cut.tissue_only = true;
    network->cut.tissue_share = 0.5;
    network->cut.batch = 4;
    Config config = config_of_network(folder, everything ? "rectangle" : "nothing");
    // Pixels of the mask are the slide's.
    config.input.mpp = 8.0;
    // Grey slides have none that could be found.
    if (everything) config.tissue.source = TissueSource::geojson;
    const RunResult result = run(config, slides, with(network, test::dawdling));
    test::require_done(result);
    const test::PixelImage pixels = read_level(slides[0]);
    const StitchPlan plan = plan_stitching(pixels.image, 96, 32, 1, StitchEdge::shift);
    std::set<std::int64_t> absent;
    for (std::int64_t tile = 0; tile < plan.tiles(); ++tile) {
      const Rect rect = plan.input_of(plan.tile(tile));
      const std::int64_t width = std::min(rect.right(), tissue.right()) - std::max(rect.x, tissue.x);
      const std::int64_t height = std::min(rect.bottom(), tissue.bottom()) - std::max(rect.y, tissue.y);
      if (!everything || width <= 0 || height <= 0 || 2 * width * height < rect.width * rect.height)
        absent.insert(tile);
    }
    CHECK((absent.size() == static_cast<std::size_t>(plan.tiles())) == !everything);
    const test::PixelImage wanted = whole_image(*network, pixels, config, absent);
    CHECK(read_level(network_image_of(config, result.slides[0])).same_pixels(wanted, wanted.rect));
    CHECK((network->runs == 0) == !everything);
  }
}

TEST_CASE("a warning says that no tile has the share of tissue that a network asks for, and the largest that one has") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 1);
  // A quarter of the tile at 64, 128, and less of others.
  std::ofstream(std::filesystem::path(slides[0]).replace_extension(".geojson"))
      << R"({"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}, "geometry": {"type":)"
      << R"( "Polygon", "coordinates": [[[100, 150], [148, 150], [148, 198], [100, 198], [100, 150]]]}}]})";
  for (const double share : {0.5, 0.25}) {
    const auto network = std::make_shared<MadeUp>();
    network->cut.tissue_only = true;
    network->cut.tissue_share = share;
    Config config = config_of_network(folder, share == 0.5 ? "none" : "some");
    config.input.mpp = 8.0;
    config.tissue.source = TissueSource::geojson;
    RunControl control;
    std::mutex mutex;
    std::vector<std::string> said;
    control.on_warning = [&](const std::string& line) {
      const std::lock_guard lock(mutex);
      if (line.find("share of tissue") != std::string::npos) said.push_back(line);
    };
    test::require_done(run_pipeline_with_faults(config, slides, control, with(network)));
    std::vector<std::string> wanted;
    if (share == 0.5) {
      wanted.push_back(slides[0] +
                       ": no tile has the share of tissue that model.tissue_share asks for (0.5), and none is "
                       "computed; the largest is 0.25");
    }
    CHECK(said == wanted);
    CHECK((network->runs == 0) == (share == 0.5));
  }
}

TEST_CASE("many slides smaller than a tile go through a network with one thread and one session") {
  const test::TemporaryFolder folder;
  std::vector<std::string> slides;
  std::vector<test::Image> images;
  for (int i = 0; i < 12; ++i) {
    images.push_back(test::textured_image(1 + 9 * i, 70 - 4 * i, static_cast<std::uint64_t>(i)));
    slides.push_back(folder / ("small" + std::to_string(i) + ".tif"));
    test::write_test_slide(slides.back(), images.back());
  }
  const auto network = std::make_shared<MadeUp>();
  network->cut.batch = 5;
  network->slow = true;
  Config config = config_of_network(folder, "small");
  config.pipeline.threads = 1;
  config.pipeline.queue_depth = 1;
  config.image.tile = 16;
  const RunResult result = run(config, slides, with(network));
  test::require_done(result);
  for (std::size_t i = 0; i < slides.size(); ++i) {
    const test::PixelImage pixels = read_level(slides[i]);
    CHECK(read_level(network_image_of(config, result.slides[i])).same_pixels(pixels, pixels.rect));
  }
}

TEST_CASE(
    "how tiles are put together decides results where a network runs, and neither memory nor what is done with "
    "failures does") {
  Config config;
  const auto differs = [&](const char* setting) {
    Config other = config;
    apply_setting(other, setting);
    return deciding_settings(config) != deciding_settings(other);
  };
  for (const bool runs : {false, true}) {
    config.operators.run = {runs ? "model" : "identity"};
    for (const char* setting : {"stitch.weights=\"cosine\"", "stitch.edge=\"mirror\""}) {
      CHECK(differs(setting) == runs);
    }
    for (const char* setting : {"stitch.memory_mib=100", "stitch.mode=\"lenient\"", "stitch.deadline_seconds=5"}) {
      CHECK_FALSE(differs(setting));
    }
  }
}
