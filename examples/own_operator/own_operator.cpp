// Writes the local contrast of slides as OME-TIFF pyramids: own_operator OUTPUT_FOLDER SLIDE...
// The contrast at a pixel is the largest less the smallest luminance of the 3 x 3 pixels around it.

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <slidestream/error.hpp>
#include <slidestream/operator.hpp>
#include <slidestream/pipeline.hpp>
#include <string>
#include <vector>

namespace ss = slidestream;

/// Computes one block of the image. Each thread of the run has a kernel of its own.
class LocalContrastKernel final : public ss::HostKernel {
 public:
  std::int64_t columns_per_task() const noexcept override { return 512; }

  void run(const ss::ConstPixelView<ss::MemorySpace::host>& pixels, const ss::OutputBlock& block,
           const ss::OutputViews& to, const ss::SlideParameters*) override {
    // The view has the halo as far as there are pixels: at the image's edges the neighbourhood is smaller.
    const ss::Rect& held = pixels.rect;
    for (std::int64_t y = block.row; y < block.row + block.rows; ++y) {
      auto* out = to.image.row<std::uint8_t>(y) - to.image.rect.x;
      for (std::int64_t x = block.column; x < block.column + block.columns; ++x) {
        std::uint8_t least = 255;
        std::uint8_t most = 0;
        for (std::int64_t v = std::max(y - 1, held.y); v < std::min(y + 2, held.bottom()); ++v) {
          const auto* row = pixels.row<const std::uint8_t>(v) - held.x;
          for (std::int64_t u = std::max(x - 1, held.x); u < std::min(x + 2, held.right()); ++u) {
            least = std::min(least, row[u]);
            most = std::max(most, row[u]);
          }
        }
        out[x] = static_cast<std::uint8_t>(most - least);
      }
    }
  }
};

class LocalContrast final : public ss::Operator {
 public:
  std::string name() const override { return "contrast"; }
  ss::PixelFormat input() const override { return ss::luminance_format; }
  /// One output per pixel, from one pixel more on each side.
  ss::Footprint footprint() const override { return {{1, 1}, {1, 1}, {1, 1, 1, 1}}; }
  std::vector<ss::Product> products() const override {
    return {{"image", ss::Product::Kind::image, ss::luminance_format}};
  }
  std::string host_description() const override { return "plain"; }
  std::unique_ptr<ss::HostKernel> host_kernel() const override { return std::make_unique<LocalContrastKernel>(); }
};

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::cerr << "usage: own_operator OUTPUT_FOLDER SLIDE...\n";
    return 2;
  }
  ss::Config config;
  config.output.dir = argv[1];
  config.image.compression = ss::ImageCompression::zstd;  // without loss

  ss::RunControl control;
  control.operators = {std::make_shared<LocalContrast>()};
  const ss::RunResult result = ss::run_pipeline(config, {argv + 2, argv + argc}, control);

  int failed = 0;
  for (const ss::SlideResult& slide : result.slides) {
    if (!slide.done) {
      std::cerr << slide.path << ": " << slide.error << '\n';
      ++failed;
    }
    for (const ss::Artifact& made : slide.artifacts) std::cout << made.file << ": " << made.bytes << " bytes\n";
  }
  return failed == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
