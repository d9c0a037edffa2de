// The operators' kernels for tests that are not C++: raw samples come in by standard input and go out by standard
// output.
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "operators/gaussian/gaussian.hpp"
#include "operators/sobel/sobel.hpp"
#include "operators/stain/stain.hpp"
#include "operators/stain/stained_blocks.hpp"
#include "operators/tissue/outlines.hpp"
#include "operators/tissue/preparation.hpp"
#include "operators/tissue/tissue.hpp"
#include "support/pixel_images.hpp"

namespace {

using namespace slidestream;
using namespace slidestream::operators;
using slidestream::test::PixelImage;

constexpr const char* usage =
    "usage: kernel_tool WIDTH HEIGHT sobel | sobel-float | gaussian-luminance RADIUS SIGMA | gaussian-rgb RADIUS "
    "SIGMA\n"
    "         | stain-fit WHITE | stain-apply OUTPUT (6 COLOURS, 2 MAXIMA, WHITE of the slide, then of the reference)\n"
    "         | tissue SCALE MPP | outlines SCALE MPP\n"
    "       kernel_tool prepare SLIDE\n"
    "prepare gives a line with the small level, its factor, size, scale, the slide's MPP, white and stains, then the "
    "mask\n"
    "stain-fit takes RGB, then the mask; MPP is 0 where it is not known\n";

void read_exactly(std::vector<std::byte>& bytes) {
  if (std::fread(bytes.data(), 1, bytes.size(), stdin) != bytes.size()) throw std::runtime_error("too little input");
}

PixelImage read_image(Size size, PixelFormat format) {
  PixelImage image(size, format);
  read_exactly(image.bytes);
  return image;
}

void write_bytes(const void* bytes, std::size_t count) { std::fwrite(bytes, 1, count, stdout); }

void print(const StainBasis& stains) {
  for (const Density& colour : stains.colours) std::printf("%.17g %.17g %.17g ", colour[0], colour[1], colour[2]);
  std::printf("%.17g %.17g\n", stains.maxima[0], stains.maxima[1]);
}

WhitePoint white_of(double value) {
  const auto white = static_cast<std::uint8_t>(value);
  return {white, white, white};
}

StainBasis stains_of(const std::vector<std::string>& arguments, std::size_t at) {
  std::array<double, 9> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::stod(arguments.at(at + i));
  return {{{{values[0], values[1], values[2]}, {values[3], values[4], values[5]}}},
          {values[6], values[7]},
          white_of(values[8])};
}

void prepare(const std::string& path) {
  const auto slide = Slide::open(path);
  const auto mpp = slide->info().mpp;
  const SlideContext context = {*slide, 0, path, mpp};
  const auto mask = prepare_mask(context, {});
  const SmallLevel small = choose_small_level(slide->info(), mpp);
  const WhitePoint white = measure_white(Preparation::of(context, {}).image().view(), *mask);
  std::printf("%zu %d %lld %lld %lld %.17g %.17g %.17g %d %d %d ", small.level, small.halvings,
              static_cast<long long>(small.factor), static_cast<long long>(mask->size.width),
              static_cast<long long>(mask->size.height), mask->scale.x, mask->scale.y, mpp.value_or(0.0), white[0],
              white[1], white[2]);
  print(fit_stains(stained_blocks(*slide, mpp, *mask, 1.0, BadTilePolicy::fail), white));
  write_bytes(mask->pixels.data(), mask->pixels.size());
}

void run(const std::vector<std::string>& arguments) {
  if (arguments.at(0) == "prepare") return prepare(arguments.at(1));
  const Size size = {std::stoll(arguments.at(0)), std::stoll(arguments.at(1))};
  const std::string& what = arguments.at(2);
  if (what == "sobel" || what == "sobel-float") {
    const PixelImage image = read_image(size, luminance_format);
    PixelImage made(size, {what == "sobel" ? SampleType::uint8 : SampleType::float32, 1});
    sobel(made.view(), image.view());
    write_bytes(made.bytes.data(), made.bytes.size());
  } else if (what == "gaussian-luminance" || what == "gaussian-rgb") {
    const PixelImage image = read_image(size, what == "gaussian-rgb" ? rgb_format : luminance_format);
    PixelImage made(size, image.format);
    Gaussian(std::stoi(arguments.at(3)), std::stod(arguments.at(4))).run(made.view(), image.view());
    write_bytes(made.bytes.data(), made.bytes.size());
  } else if (what == "stain-fit") {
    const PixelImage image = read_image(size, rgb_format);
    const PixelImage pixels = read_image(size, luminance_format);
    Mask mask = empty_mask(size, {}, size);
    for (std::size_t i = 0; i < mask.pixels.size(); ++i) mask.pixels[i] = static_cast<std::uint8_t>(pixels.bytes[i]);
    std::vector<std::uint8_t> stained;
    for (std::size_t i = 0; i < mask.pixels.size(); ++i) {
      for (std::size_t c = 0; c < 3 && mask.pixels[i] != 0; ++c) {
        stained.push_back(static_cast<std::uint8_t>(image.bytes[3 * i + c]));
      }
    }
    print(fit_stains(stained, white_of(std::stod(arguments.at(3)))));
  } else if (what == "stain-apply") {
    const std::string& name = arguments.at(3);
    const StainOutput output = name == "normalised"    ? StainOutput::normalised
                               : name == "hematoxylin" ? StainOutput::hematoxylin
                                                       : StainOutput::eosin;
    const PixelImage image = read_image(size, rgb_format);
    PixelImage made(size, rgb_format);
    Stain(stain_map(stains_of(arguments, 4), stains_of(arguments, 13), output)).run(made.view(), image.view());
    write_bytes(made.bytes.data(), made.bytes.size());
  } else if (what == "tissue" || what == "outlines") {
    const double scale = std::stod(arguments.at(3));
    const double mpp = std::stod(arguments.at(4));
    const PixelImage image = read_image(size, rgb_format);
    const Size level0 = {static_cast<std::int64_t>(static_cast<double>(size.width) * scale),
                         static_cast<std::int64_t>(static_cast<double>(size.height) * scale)};
    const Mask mask =
        find_tissue(image.view(), {scale, scale}, level0, mpp > 0.0 ? std::optional<double>(mpp) : std::nullopt);
    const std::string text = what == "outlines" ? geojson_of(mask) : "";
    write_bytes(mask.pixels.data(), what == "outlines" ? 0 : mask.pixels.size());
    write_bytes(text.data(), text.size());
  } else {
    throw std::runtime_error(usage);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(std::vector<std::string>(argv + 1, argv + argc));
    return 0;
  } catch (const std::out_of_range&) {
    std::cerr << usage;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
  }
  return 1;
}
