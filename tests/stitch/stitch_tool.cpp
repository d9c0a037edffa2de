// Tiles put together, and images made smaller, for tests that are not C++: raw samples come in by standard input and go
// out by standard output.
#include <slidestream/stitch.hpp>

#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/pixel_images.hpp"

namespace {

using namespace slidestream;
using slidestream::test::PixelImage;

constexpr const char* usage =
    "usage: stitch_tool WIDTH HEIGHT area FACTOR\n"
    "       stitch_tool WIDTH HEIGHT cut SIDE OVERLAP SCALE EDGE\n"
    "       stitch_tool WIDTH HEIGHT stitch SIDE OVERLAP SCALE EDGE WEIGHTS CHANNELS KIND LOW HIGH\n"
    "area takes RGB, cut gives all tiles of it; stitch takes float32 of all tiles, then a byte for each: 1 if it is\n"
    "there; EDGE shift or mirror, WEIGHTS tent, cosine or none, KIND uint8, uint16 or classes\n";

void read_exactly(void* bytes, std::size_t count) {
  if (std::fread(bytes, 1, count, stdin) != count) throw std::runtime_error("too little input");
}

void write_image(const PixelImage& image) { std::fwrite(image.bytes.data(), 1, image.bytes.size(), stdout); }

PixelImage read_rgb_image(Size size) {
  PixelImage image(size, rgb_format);
  read_exactly(image.bytes.data(), image.bytes.size());
  return image;
}

StitchPlan plan_of(const std::vector<std::string>& arguments, Size size) {
  const StitchEdge edge = arguments.at(6) == "shift" ? StitchEdge::shift : StitchEdge::mirror;
  return plan_stitching(size, std::stoll(arguments.at(3)), std::stoll(arguments.at(4)), std::stoll(arguments.at(5)),
                        edge);
}

/// Tiles come from the last of a row to the first, as rooms allow.
void stitch(const std::vector<std::string>& arguments, Size size) {
  const StitchPlan plan = plan_of(arguments, size);
  const std::string& name = arguments.at(7);
  NetworkOutput output;
  output.kind = arguments.at(9) == "classes" ? NetworkOutput::Kind::classes : NetworkOutput::Kind::image;
  output.channels = std::stoi(arguments.at(8));
  output.scale = static_cast<int>(plan.scale);
  output.sample = arguments.at(9) == "uint16" ? SampleType::uint16 : SampleType::uint8;
  output.low = std::stof(arguments.at(10));
  output.high = std::stof(arguments.at(11));
  const StitchWeights weights = name == "tent"     ? StitchWeights::tent
                                : name == "cosine" ? StitchWeights::cosine
                                                   : StitchWeights::none;
  const auto count = static_cast<std::size_t>(plan.x.tile * plan.y.tile * output.channels);
  const auto tiles = static_cast<std::size_t>(plan.tiles());
  std::vector<float> values(count * tiles);
  std::vector<std::uint8_t> present(tiles);
  read_exactly(values.data(), values.size() * sizeof(float));
  read_exactly(present.data(), present.size());
  StitchBand band(plan, output, weights);
  PixelImage image(plan.image, StitchBand::format(output));
  std::int64_t made = 0;
  for (std::int64_t row = 0; row < plan.y.count; ++row) {
    for (std::int64_t column = plan.x.count - 1; column >= 0; --column) {
      const auto number = static_cast<std::size_t>(row * plan.x.count + column);
      if (present[number] != 0 &&
          !band.put({column, row}, std::span(values).subspan(number * count, count)).sound(output)) {
        throw std::runtime_error("a value is not a number, or outside");
      }
      band.arrived({column, row}, present[number] != 0);
    }
    band.gather(part_of(image.view(), {0, made, plan.image.width, band.ready() - made}));
    made = band.ready();
    band.release(made);
  }
  write_image(image);
}

void run(const std::vector<std::string>& arguments) {
  const Size size = {std::stoll(arguments.at(0)), std::stoll(arguments.at(1))};
  const std::string& what = arguments.at(2);
  if (what == "stitch") return stitch(arguments, size);
  if (what == "area") {
    const std::int64_t factor = std::stoll(arguments.at(3));
    const PixelImage image = read_rgb_image(size);
    PixelImage made(AreaResampler::size_of(size, factor), rgb_format);
    resample_area(made.view(), image.view(), factor);
    return write_image(made);
  }
  if (what != "cut") throw std::runtime_error(usage);
  const StitchPlan plan = plan_of(arguments, size);
  const PixelImage image = read_rgb_image(size);
  PixelImage tile(Size{plan.side, plan.side}, rgb_format);
  for (std::int64_t number = 0; number < plan.tiles(); ++number) {
    cut_tile({reinterpret_cast<std::uint8_t*>(tile.bytes.data()), tile.bytes.size()}, image.view(),
             plan.input_of(plan.tile(number)));
    write_image(tile);
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
