// The operators of a run: their kernels cut in any way against whole images, and how the configuration names them.

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <slidestream/error.hpp>
#include <string>
#include <vector>

#include "config/operator_files.hpp"
#include "operators/gaussian/gaussian.hpp"
#include "operators/registry.hpp"
#include "operators/sobel/sobel.hpp"
#include "support/operator_runs.hpp"

using namespace slidestream;
using namespace slidestream::operators;
using namespace slidestream::test;

namespace {

/// Checks an operator's one image, made in random blocks, against `plain(out, in)` over the whole image.
template <class Plain>
void check_operator(const Config& config, const Border& halo, PixelFormat from, PixelFormat to, const Plain& plain) {
  const auto op = make_operators(config).at(0);
  CHECK(op->name() == config.operators.run[0]);
  CHECK(op->input() == from);
  CHECK(op->reads_pixels());
  CHECK(op->footprint().window == Size{1, 1});
  CHECK(op->footprint().step == Size{1, 1});
  CHECK(op->footprint().halo == halo);
  REQUIRE(op->products().size() == 1);
  CHECK(op->products()[0].kind == Product::Kind::image);
  CHECK(op->products()[0].format == to);
  std::mt19937_64 random(3);
  for (int i = 0; i < 30; ++i) {
    const Size size = i == 0 ? Size{1, 1} : random_size(random, i < 10 ? 6 : 150);
    INFO(size.width << " x " << size.height);
    const PixelImage image = random_image(random, size, from);
    PixelImage expected(size, to);
    plain(expected.view(), image.view());
    CHECK(run_in_blocks(*op, image, nullptr, random).same_pixels(expected, expected.rect));
  }
}

Config running(const std::string& name) {
  Config config;
  config.operators.run = {name};
  return config;
}

}  // namespace

TEST_CASE("The spectrum runs unless others are named, and these in the order of their names") {
  const auto names = [](const Config& config) {
    std::vector<std::string> found;
    for (const auto& op : make_operators(config)) found.push_back(op->name());
    return found;
  };
  CHECK(names({}) == std::vector<std::string>{"spectrum"});
  Config config;
  config.operators.run = {"tissue", "sobel", "spectrum", "stain", "identity", "gaussian"};
  CHECK(names(config) == config.operators.run);
  // The other one wants a network: tests/networks.
  CHECK(config.operators.run.size() + 1 == operator_names.size());
  CHECK_THROWS_WITH_AS(make_operators(running("model")),
                       "model.file isn't set: the operator model wants a network, an ONNX file", ConfigError);
  config.operators.run = {"soble"};
  CHECK_THROWS_WITH_AS(make_operators(config), "operators.run names 'soble', which isn't an operator", ConfigError);
}

TEST_CASE("Every operator says how it computes, and only tissue wants no pixels") {
  for (const std::string_view name : operator_names) {
    if (name == "model") continue;
    const auto op = make_operators(running(std::string(name))).at(0);
    INFO(op->name());
    CHECK_FALSE(op->host_description().empty());
    CHECK(op->host_kernel()->columns_per_task() >= 1);
    CHECK(op->reads_pixels() == (name != "tissue"));
    CHECK((op->input() == rgb_format || op->input() == luminance_format));
    std::set<std::string> products;
    for (const Product& product : op->products()) products.insert(product.name);
    CHECK(products.size() == op->products().size());
  }
}

TEST_CASE("What is known beforehand of an operator's files is what it makes") {
  for (const std::string_view name : operator_names) {
    if (name == "model") continue;
    const auto op = make_operators(running(std::string(name))).at(0);
    INFO(op->name());
    const auto makes = [&op](Product::Kind kind) {
      const std::vector<Product> products = op->products();
      return std::ranges::any_of(products, [kind](const Product& product) { return product.kind == kind; });
    };
    const bool image = makes(Product::Kind::image);
    const bool file = makes(Product::Kind::file);
    CHECK(may_make_image(name) == image);
    CHECK(surely_writes_into_images(name, {}) == (image || file));
    CHECK((files_in_images(name) == FilesInImages::others) == (file && !image));
  }
  // What a network gives is known where it is set.
  CHECK(may_make_image("model"));
  ModelConfig model;
  CHECK_FALSE(surely_writes_into_images("model", model));
  model.output = ModelOutput::vector;
  CHECK_FALSE(surely_writes_into_images("model", model));
  model.output = ModelOutput::classes;
  CHECK(surely_writes_into_images("model", model));
  for (const std::string_view other : {"volume", "soble"}) CHECK(files_in_images(other) == FilesInImages::none);
}

TEST_CASE("identity gives the pixels, in colour or as luminance") {
  Config config = running("identity");
  const auto copy = [](const HostView& out, const ConstHostView& in) { copy_pixels(out, in); };
  check_operator(config, {}, rgb_format, rgb_format, copy);
  config.identity.colour = PixelColour::luminance;
  check_operator(config, {}, luminance_format, luminance_format, copy);
}

TEST_CASE("sobel gives its kernel's pixels in both formats") {
  Config config = running("sobel");
  check_operator(config, border_of(1), luminance_format, luminance_format, sobel);
  config.sobel.output = SobelOutput::float32;
  check_operator(config, border_of(1), luminance_format, {SampleType::float32, 1}, sobel);
}

TEST_CASE("gaussian gives its kernel's pixels for its radius, sigma and colour") {
  Config config = running("gaussian");
  const auto smoothed = [](int radius, double sigma) {
    return [=](const HostView& out, const ConstHostView& in) { Gaussian(radius, sigma).run(out, in); };
  };
  check_operator(config, border_of(3), rgb_format, rgb_format, smoothed(3, 1.4));
  config.gaussian.colour = PixelColour::luminance;
  config.gaussian.radius = 16;
  config.gaussian.sigma = 7.5;
  check_operator(config, border_of(16), luminance_format, luminance_format, smoothed(16, 7.5));
  config.gaussian.radius = 0;
  check_operator(config, {}, luminance_format, luminance_format, smoothed(0, 7.5));
}

TEST_CASE("A kernel refuses pixels that don't hold what its block needs") {
  const auto kernel = make_operators(running("sobel")).at(0)->host_kernel();
  const PixelImage image({20, 20}, luminance_format);
  PixelImage made({20, 20}, luminance_format);
  OutputViews to;
  to.image = made.view();
  CHECK_NOTHROW(kernel->run(image.view(), {2, 5, 3, 4}, to, nullptr));
  CHECK_THROWS_AS(kernel->run(image.cut({2, 3, 5, 4}).view(), {2, 5, 3, 4}, to, nullptr), std::invalid_argument);
}
