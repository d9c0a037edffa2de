// What the GPU's levels are made of, in plain sequence on the host.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "cuda/pyramid_runs.hpp"

using namespace slidestream;
using namespace slidestream::cuda;

namespace {

/// What the kernels do, a thread after the other.
void execute(const BandWork& work, int channels) {
  for (const BandWork::Step& step : work.steps) {
    const ReduceTask& task = step.reduce;
    if (task.rows > 0) {
      with_value_types(task.level, [&]<class Above, class Sum>() {
        for (std::int64_t row = 0; row < task.rows; ++row) {
          for (std::int64_t column = 0; column < task.columns; column += columns_together) {
            if (channels == 1) {
              reduce_columns<Above, Sum, 1>(task, column, row, is_aligned(task));
            } else {
              reduce_columns<Above, Sum, 3>(task, column, row, is_aligned(task));
            }
          }
        }
      });
    }
    if (step.carry.bytes > 0) std::memcpy(step.carry.to, step.carry.from, step.carry.bytes);
  }
}

PixelView<MemorySpace::device> whole(test::WholeImage& image) {
  return {image.bytes.data(),
          static_cast<std::ptrdiff_t>(image.size.width * image.format.channels),
          {0, 0, image.size.width, image.size.height},
          image.size,
          image.format};
}

}  // namespace

TEST_CASE("levels made of bands of any height are those of the definition") {
  const char* seed = std::getenv("SLIDESTREAM_TEST_SEED");
  std::mt19937 random(seed != nullptr ? static_cast<unsigned>(std::atoi(seed)) : 1);
  for (int run = 0; run < 150; ++run) {
    test::PyramidCase now = test::random_pyramid_case(random, run % 10 == 0 ? 400 : 60);
    CAPTURE(now.image.size.width);
    CAPTURE(now.image.size.height);
    CAPTURE(now.image.format.channels);
    CAPTURE(now.layout.levels());
    CAPTURE(now.most_rows);
    std::vector<test::WholeImage> levels;
    std::vector<PixelView<MemorySpace::device>> views;
    for (int level = 1; level < now.layout.levels(); ++level) {
      levels.emplace_back(now.layout.size(level), now.image.format);
    }
    for (test::WholeImage& level : levels) views.push_back(whole(level));
    std::vector<std::byte> memory(BandReducer::memory_bytes(now.layout, now.image.format, now.most_rows));
    BandReducer reducer(now.layout, now.image.format, now.most_rows, memory);
    for (const std::int64_t rows : now.bands) {
      // The band's memory is another each time, and gone afterwards.
      const ConstPixelView<MemorySpace::host> part = now.image.rows(reducer.rows(), rows);
      const std::ptrdiff_t pitch = run % 2 == 0 ? part.pitch : (part.pitch + 7) / 8 * 8;
      std::vector<std::byte> bytes(static_cast<std::size_t>(pitch * rows));
      for (std::int64_t y = 0; y < rows; ++y) {
        std::memcpy(bytes.data() + y * pitch, part.data + y * part.pitch, static_cast<std::size_t>(part.pitch));
      }
      execute(reducer.add({bytes.data(), pitch, part.rect, part.image, part.format}, views), now.image.format.channels);
    }
    const auto expected = test::plain_pyramid(now.image, now.layout.levels(), false);
    for (std::size_t i = 0; i < levels.size(); ++i) {
      CAPTURE(i);
      CHECK(levels[i] == expected[i + 1]);
    }
  }
}

TEST_CASE("bands that aren't the next, and levels that lack rows, are refused") {
  const PyramidLayout layout({40, 30}, 16, 3);
  std::vector<std::byte> memory(BandReducer::memory_bytes(layout, rgb_format, 10));
  CHECK_THROWS_AS(BandReducer(layout, {SampleType::uint16, 1}, 10, memory), std::invalid_argument);
  CHECK_THROWS_AS(BandReducer(layout, rgb_format, 12, memory), std::length_error);
  CHECK_THROWS_AS(BandReducer(PyramidLayout({1 << 20, 1}, 16, 14), rgb_format, 1, memory), std::invalid_argument);
  BandReducer reducer(layout, rgb_format, 10, memory);
  test::WholeImage image({40, 30}, rgb_format);
  test::WholeImage one({20, 15}, rgb_format);
  test::WholeImage two({10, 8}, rgb_format);
  const std::vector<PixelView<MemorySpace::device>> views{whole(one), whole(two)};
  const auto band = [&](std::int64_t y, std::int64_t rows) {
    const auto part = image.rows(y, rows);
    return ConstPixelView<MemorySpace::device>{part.data, part.pitch, part.rect, part.image, part.format};
  };
  CHECK_THROWS_AS(reducer.add(band(1, 4), views), std::invalid_argument);
  CHECK_THROWS_AS(reducer.add(band(0, 11), views), std::invalid_argument);
  CHECK_THROWS_AS(reducer.add(band(0, 4), std::span(views).first(1)), std::invalid_argument);
  std::vector<PixelView<MemorySpace::device>> lacking = views;
  lacking[1].rect.y = 1;
  CHECK_THROWS_AS(reducer.add(band(0, 4), lacking), std::invalid_argument);
  CHECK(reducer.rows() == 0);
  CHECK_NOTHROW(reducer.add(band(0, 4), views));
  CHECK(reducer.rows() == 4);
}
