// Networks in ONNX files, run by ONNX Runtime: what they get and give, and what is said of those that don't fit.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <random>
#include <slidestream/config.hpp>
#include <slidestream/error.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "networks/network_shapes.hpp"
#include "networks/normalisation.hpp"
#include "networks/onnx_files.hpp"
#include "networks/onnx_network.hpp"
#include "networks/onnx_runtime.hpp"
#include "networks/running.hpp"
#include "support/temporary_folder.hpp"

using namespace slidestream;
using namespace slidestream::networks;
using namespace slidestream::test;

namespace {

namespace fs = std::filesystem;

std::vector<std::uint8_t> random_pixels(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> pixels(count);
  for (std::uint8_t& sample : pixels) sample = static_cast<std::uint8_t>(random() >> 24);
  return pixels;
}

std::size_t samples_of(const Network& network) {
  const NetworkTiles tiles = network.tiles();
  return static_cast<std::size_t>(tiles.batch) * 3 * tiles.side * tiles.side;
}

std::size_t values_of(const Network& network) {
  const NetworkTiles tiles = network.tiles();
  const NetworkOutput output = network.output();
  const std::size_t side = output.kind == NetworkOutput::Kind::vector ? 1 : tiles.side / output.scale;
  return static_cast<std::size_t>(tiles.batch) * output.channels * side * side;
}

std::vector<float> run(const Network& network, const std::vector<std::uint8_t>& pixels) {
  std::vector<float> values(values_of(network), -1.0F);
  network.session(-1)->run(pixels, values);
  return values;
}

/// A sample of a batch as it was given: red, green and blue side by side.
std::uint8_t sample_at(const std::vector<std::uint8_t>& pixels, int side, int tile, int channel, int y, int x) {
  return pixels[((static_cast<std::size_t>(tile) * side + y) * side + x) * 3 + channel];
}

}  // namespace

TEST_CASE("what is taken and what is left read differently where it is too little") {
  constexpr std::size_t mib = std::size_t{1} << 20;
  CHECK(mib_text(10 * mib - 1) == "10 MiB");
  CHECK(mib_left_text(10 * mib - 2) == "9 MiB");
  CHECK(mib_text(10 * mib) == "10 MiB");
  CHECK(mib_left_text(10 * mib) == "10 MiB");
  CHECK(mib_left_text(0) == "0 MiB");
}

TEST_CASE("What a network computes can be interrupted, and it computes again when that is over") {
  if (models().empty()) return;
  const auto endless = open_network(running(models() + "/endless.onnx"));
  const std::vector<std::uint8_t> pixels = random_pixels(samples_of(*endless), 3);
  const auto session = endless->session(-1);
  std::string said;
  std::vector<float> values(values_of(*endless));
  std::thread thread([&] {
    try {
      session->run(pixels, values);
    } catch (const SlideError& error) {
      said = error.what();
    }
  });
  session->interrupt(true);
  thread.join();
  CHECK_MESSAGE(said.find("endless.onnx: it fails on a batch: ") != std::string::npos, said);
  CHECK(said.find('\n') == std::string::npos);
  const auto slow = open_network(running(models() + "/slow.onnx"));
  const auto again = slow->session(-1);
  again->interrupt(true);
  CHECK_THROWS_AS(again->run(pixels, values), SlideError);
  again->interrupt(false);
  again->run(pixels, values);
  CHECK(values[0] == doctest::Approx(static_cast<float>(sample_at(pixels, 64, 0, 0, 0, 0)) / 255.0F));
}

TEST_CASE("Half floats: every one comes back, and numbers go to the nearest") {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = from_half(half);
    if (std::isnan(value)) {
      CHECK(std::isnan(from_half(to_half(value))));
    } else if (to_half(value) != half) {
      FAIL(bits);
    }
  }
  CHECK(from_half(0x3C00) == 1.0F);
  CHECK(from_half(0x0001) == 0x1p-24F);
  CHECK(from_half(0x7BFF) == 65504.0F);
  CHECK(to_half(65519.9F) == 0x7BFF);
  CHECK(to_half(65520.0F) == 0x7C00);
  CHECK(to_half(-std::numeric_limits<float>::infinity()) == 0xFC00);
  std::mt19937 random(5);
  for (int i = 0; i < 100000; ++i) {
    // Between two neighbours, each of them and the middle, and a little beside.
    const auto low = static_cast<std::uint16_t>(random() % 0x7BFF);
    const double a = from_half(low);
    const double b = from_half(static_cast<std::uint16_t>(low + 1));
    const std::uint16_t even = low % 2 == 0 ? low : low + 1;
    REQUIRE(to_half(static_cast<float>((a + b) / 2)) == even);
    REQUIRE(to_half(static_cast<float>(a + (b - a) * 0.498)) == low);
    REQUIRE(to_half(static_cast<float>(a + (b - a) * 0.502)) == low + 1);
    REQUIRE(to_half(static_cast<float>(-b)) == (0x8000 | (low + 1)));
  }
}

TEST_CASE("Pixels become planes of numbers by scale, mean and deviation") {
  ModelConfig model;
  model.scale = 1.0;
  model.mean = {0.485, 0.456, 0.406};
  model.deviation = {0.229, 0.224, 0.225};
  const auto pixels = random_pixels(2 * 5 * 3, 1);
  std::vector<float> planes(pixels.size());
  std::vector<std::uint16_t> halves(pixels.size());
  Normalisation(model).run(pixels, 5, planes);
  Normalisation(model).run(pixels, 5, halves);
  for (std::size_t tile = 0; tile < 2; ++tile) {
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t i = 0; i < 5; ++i) {
        const double v = pixels[(tile * 5 + i) * 3 + c] / 255.0;
        const float expected = static_cast<float>((v - model.mean[c]) / model.deviation[c]);
        CHECK(planes[(tile * 3 + c) * 5 + i] == doctest::Approx(expected).epsilon(1e-7));
        CHECK(halves[(tile * 3 + c) * 5 + i] == to_half(planes[(tile * 3 + c) * 5 + i]));
      }
    }
  }
  model = {};
  model.scale = 255.0;
  Normalisation(model).run(pixels, 5, planes);
  CHECK(planes[0] == pixels[0]);
}

TEST_CASE("A network gets its pixels as it wants them, and what it gives comes back") {
  const std::string folder = models();
  if (folder.empty()) return;
  for (const std::string name : {"identity", "half", "two"}) {
    INFO(name);
    const auto network = open_network(running(folder + "/" + name + ".onnx"));
    CHECK(network->tiles().side == 64);
    CHECK(network->tiles().batch == (name == "two" ? 2 : 16));
    CHECK(network->tiles().overlap == 0);
    CHECK_FALSE(network->tiles().mpp);
    CHECK_FALSE(network->tiles().tissue_only);
    CHECK(network->output().kind == NetworkOutput::Kind::image);
    CHECK(network->output().channels == 3);
    CHECK(network->output().scale == 1);
    CHECK(network->output().low == 0.0F);
    CHECK(network->output().high == 1.0F);
    CHECK(network->sessions() >= 1);
    CHECK(network->description().starts_with("ONNX Runtime 1."));
    CHECK(network->description().ends_with(", CPU"));
    const auto pixels = random_pixels(samples_of(*network), 2);
    const auto values = run(*network, pixels);
    std::size_t i = 0;
    for (int tile = 0; tile < network->tiles().batch; ++tile) {
      for (int c = 0; c < 3; ++c) {
        for (int y = 0; y < 64; ++y) {
          for (int x = 0; x < 64; ++x, ++i) {
            const auto sample = static_cast<float>(sample_at(pixels, 64, tile, c, y, x) / 255.0);
            if (values[i] != (name == "half" ? from_half(to_half(sample)) : sample)) FAIL(i);
          }
        }
      }
    }
  }
}

TEST_CASE("A blur of tiles whose size the settings say") {
  const std::string folder = models();
  if (folder.empty()) return;
  Config config = running(folder + "/blur.onnx");
  CHECK(config.model.tile == 64);  // blur.toml
  config.model.tile = 40;
  config.model.batch = 3;
  const auto network = open_network(config);
  CHECK(network->tiles().side == 40);
  CHECK(network->tiles().overlap == 8);
  const auto pixels = random_pixels(samples_of(*network), 3);
  const auto values = run(*network, pixels);
  std::size_t i = 0;
  for (int tile = 0; tile < 3; ++tile) {
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < 40; ++y) {
        for (int x = 0; x < 40; ++x, ++i) {
          int sum = 0;
          for (int v = std::max(y - 1, 0); v <= std::min(y + 1, 39); ++v) {
            for (int u = std::max(x - 1, 0); u <= std::min(x + 1, 39); ++u) {
              sum += sample_at(pixels, 40, tile, c, v, u);
            }
          }
          REQUIRE(std::fabs(values[i] - sum / 9.0 / 255.0) < 1e-6);
        }
      }
    }
  }
}

TEST_CASE("Shapes say what a network gives") {
  const std::string folder = models();
  if (folder.empty()) return;
  const auto smaller = open_network(running(folder + "/smaller.onnx"));
  CHECK(smaller->output().scale == 2);
  // Without a word of its dimensions a batch tells.
  const auto unranked = open_network(running(folder + "/unranked.onnx"));
  CHECK(unranked->output().kind == NetworkOutput::Kind::vector);
  CHECK(unranked->output().channels == 3);
  Config config = running(folder + "/classes.onnx");
  CHECK(config.model.output == ModelOutput::classes);
  const auto classes = open_network(config);
  CHECK(classes->output().kind == NetworkOutput::Kind::classes);
  CHECK(classes->output().channels == 4);
  CHECK(classes->output().low == -3.0F);
  CHECK(classes->output().high == 3.0F);
  config.model.output = ModelOutput::image;
  config.model.sample = ModelSample::uint16;
  config.model.overlap = 32;
  config.model.mpp = 0.5;
  const auto image = open_network(config);
  CHECK(image->output().kind == NetworkOutput::Kind::image);
  CHECK(image->output().sample == SampleType::uint16);
  CHECK(image->tiles().overlap == 32);
  CHECK(image->tiles().mpp == 0.5);
  const auto unet = open_network(running(folder + "/unet.onnx"));
  CHECK(unet->tiles().side == 128);
  CHECK(unet->tiles().batch == 4);
  const auto features = open_network(running(folder + "/features.onnx"));
  CHECK(features->output().kind == NetworkOutput::Kind::vector);
  CHECK(features->output().channels == 32);
  CHECK(features->tiles().tissue_only);
  // Asked again it is the same.
  CHECK(open_network(running(folder + "/features.onnx")) == features);
}

TEST_CASE("A network is loaded again where its file was written since, also if the time was put back") {
  if (models().empty()) return;
  const TemporaryFolder folder;
  const fs::path file = folder / "identity.onnx";
  fs::copy_file(models() + "/identity.onnx", file);
  const auto time_of_change = [&file] {
    struct ::stat about {};
    REQUIRE(::stat(file.c_str(), &about) == 0);
    return std::pair{about.st_ctim.tv_sec, about.st_ctim.tv_nsec};
  };
  const auto network = open_network(running(file.string()));
  CHECK(open_network(running(file.string())) == network);
  const auto written = fs::last_write_time(file);
  const auto changed = time_of_change();
  const int first = std::ifstream(file, std::ios::binary).get();
  // The system's clock of files has steps of some milliseconds.
  do {
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).put(static_cast<char>(first));
    fs::last_write_time(file, written);
  } while (time_of_change() == changed);
  const auto again = open_network(running(file.string()));
  CHECK(again != network);
  CHECK(open_network(running(file.string())) == again);
}

TEST_CASE("A batch gives the same bits whenever it is run, by whatever session and thread") {
  const std::string folder = models();
  if (folder.empty()) return;
  for (const std::string name : {"features", "unet"}) {
    const auto network = open_network(running(folder + "/" + name + ".onnx"));
    const auto pixels = random_pixels(samples_of(*network), 4);
    const auto expected = run(*network, pixels);
    std::vector<std::vector<float>> found(3, std::vector<float>(expected.size()));
    std::vector<std::thread> threads;
    for (auto& values : found) {
      threads.emplace_back([&] {
        const auto session = network->session(-1);
        for (int i = 0; i < 2; ++i) session->run(pixels, values);
      });
    }
    for (auto& thread : threads) thread.join();
    for (const auto& values : found) CHECK(values == expected);
    // It looks at its pixels.
    CHECK(run(*network, random_pixels(pixels.size(), 5)) != expected);
  }
}

TEST_CASE("What doesn't fit is told in one line that names the file") {
  const std::string folder = models();
  if (folder.empty()) return;
  const auto of = [&](const std::string& name) { return running(folder + "/" + name + ".onnx"); };
  CHECK(complaint(of("grey")) ==
        "grey.onnx: it takes ? x 1 x 64 x 64 of float32; expected tiles x 3 x height x width of float32 or float16");
  CHECK(complaint(of("bytes_in")).starts_with("bytes_in.onnx: it takes ? x 3 x 64 x 64 of uint8; expected"));
  CHECK(complaint(of("oblong")) ==
        "oblong.onnx: it gives 16 x 3 x 32 x 64 of float32; expected squares whose side divides the tiles' 64");
  CHECK(complaint(of("itself")) == "itself.onnx: what it gives, 'tiles', is what it takes: it computes nothing");
  CHECK(complaint(of("inputs")) == "inputs.onnx: it has 2 inputs; expected one, the tiles");
  Config config = of("identity");
  config.model.tile = 96;
  CHECK(complaint(config) == "identity.onnx: model.tile is 96, and it takes ? x 3 x 64 x 64 of float32");
  config = of("two");
  config.model.batch = 3;
  CHECK(complaint(config) == "two.onnx: model.batch is 3, and it takes 2 x 3 x 64 x 64 of float32");
  config = of("identity");
  config.model.overlap = 33;
  CHECK(complaint(config) == "identity.onnx: model.overlap is 33; expected at most half of its tiles' side, 32");
  config = of("smaller");
  config.model.overlap = 9;
  CHECK(complaint(config) ==
        "smaller.onnx: model.overlap is 9, and its output is 2 times as small; expected a multiple of that");
  config = of("features");
  config.model.output = ModelOutput::classes;
  CHECK(complaint(config) ==
        "features.onnx: model.output is \"classes\", and it gives 8 x 32 of float32; expected tiles x channels x "
        "height x "
        "width");
  config = of("identity");
  config.model.output = ModelOutput::vector;
  CHECK(
      complaint(config) ==
      "identity.onnx: model.output is \"vector\", and it gives 16 x 3 x 64 x 64 of float32; expected tiles x entries");
  config = of("endless_shape");
  config.input.max_seconds = 1;
  CHECK(complaint(config) ==
        "endless_shape.onnx: it fails on a batch of 1 black tiles, 1 MiB: it takes longer than input.max_seconds = 1");
  config = of("blur");
  config.model.tile = 0;
  CHECK(complaint(config) == "blur.onnx: it takes tiles of any size: set model.tile");
  config = of("identity");
  config.model.provider = ModelProvider::cuda;
  CHECK(complaint(config).starts_with("model.provider = \"cuda\": "));

  const TemporaryFolder own;
  // Whoever said it is told.
  fs::copy_file(folder + "/identity.onnx", own / "identity.onnx");
  own.write("identity.toml", std::string("[model]\ntile = 96\noverlap = 8\n"));
  config = running((own / "identity.onnx").string());
  CHECK(complaint(config) ==
        "identity.onnx: model.tile is 96 in identity.toml, and it takes ? x 3 x 64 x 64 of float32");
  config.model.tile = 32;
  CHECK(complaint(config) == "identity.onnx: model.tile is 32, and it takes ? x 3 x 64 x 64 of float32");
  CHECK(complaint(running((own / "none.onnx").string())) == "none.onnx: No such file or directory");
  CHECK(complaint(running(own.path().string())).ends_with("not a regular file"));
  CHECK(complaint(running("")) == "model.file isn't set: the operator model wants a network, an ONNX file");
  const auto broken = own.write("broken.onnx", std::string("not a network at all"));
  CHECK(complaint(running(broken.string())).starts_with("broken.onnx: ONNX Runtime 1."));
  std::vector<std::byte> cut(500);
  std::ifstream(folder + "/unet.onnx", std::ios::binary).read(reinterpret_cast<char*>(cut.data()), 500);
  CHECK(complaint(running(own.write("cut.onnx", cut).string())).find("doesn't take it: ") != std::string::npos);
}

TEST_CASE("A batch that can't be computed is an error of one line, and others go on") {
  const std::string folder = models();
  if (folder.empty()) return;
#if !defined(SLIDESTREAM_SANITIZED)  // whose allocator ends the program
  const auto network = open_network(running(folder + "/memory.onnx"));
  const auto session = network->session(-1);
  const auto pixels = random_pixels(samples_of(*network), 6);
  std::vector<float> given(values_of(*network));
  for (int i = 0; i < 2; ++i) {
    try {
      session->run(pixels, given);
      FAIL("it was computed");
    } catch (const SlideError& error) {
      const std::string text = error.what();
      CHECK(text.starts_with(folder + "/memory.onnx: it fails on a batch: "));
      CHECK(text.find('\n') == std::string::npos);
    }
  }
#endif
  // Numbers that aren't are whoever's who knows which tiles count.
  const auto nan = open_network(running(folder + "/nan.onnx"));
  std::vector<float> values(values_of(*nan) + 1);
  CHECK_THROWS_AS(nan->session(-1)->run(random_pixels(samples_of(*nan), 6), values), Error);
  CHECK(std::isnan(run(*nan, std::vector<std::uint8_t>(samples_of(*nan), 200))[0]));
  CHECK(run(*nan, std::vector<std::uint8_t>(samples_of(*nan), 0))[0] == doctest::Approx(std::sqrt(0.5)));
}
