// Prints the mean luminance of every strip of a slide, then the mean of its spectra: strip_means SLIDE

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <numeric>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/slide.hpp>
#include <vector>

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: strip_means SLIDE\n";
    return 2;
  }
  const auto slide = slidestream::Slide::open(argv[1]);
  const slidestream::Level& level = slide->info().levels.front();
  std::vector<std::uint8_t> rows(static_cast<std::size_t>(level.width * level.tile_height));
  for (std::int64_t y = 0; y < level.height; y += level.tile_height) {
    const std::int64_t height = std::min(level.tile_height, level.height - y);
    slidestream::read_luminance(*slide, 0, 0, y, {rows.data(), level.width, level.width, height});
    const auto end = rows.begin() + level.width * height;
    std::cout << "rows from " << y << ": " << std::accumulate(rows.begin(), end, 0.0) / double(level.width * height)
              << '\n';
  }

  slidestream::RunControl control;
  const slidestream::RunResult result = slidestream::run_pipeline({}, {argv[1]}, control);
  const slidestream::SlideResult& spectra = result.slides.at(0);
  if (!spectra.done) throw slidestream::Error(spectra.error);
  std::cout << spectra.sums.windows << " windows, mean " << spectra.sums.mean() << " dB\n";
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
