// Features of tiles as HDF5: the same bytes whenever they come, and nothing under the final name before it is whole.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>
#include <slidestream/error.hpp>
#include <span>
#include <string>
#include <vector>

#include "sink/feature_file.hpp"
#include "support/temporary_folder.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

namespace fs = std::filesystem;

FeatureDescription some_description() {
  FeatureDescription about;
  about.name = "slide";
  about.encoder = "m.onnx";
  about.length = 5;
  about.patch = 224;
  about.overlap = 8;
  about.level0 = {5000, 4000};
  about.level = 1;
  about.downsample = 4.0;
  about.reduction = 1.5;
  about.magnification = 40.0;
  return about;
}

std::vector<FeatureFile::Corner> some_corners(std::int64_t count) {
  std::vector<FeatureFile::Corner> corners;
  for (std::int64_t i = 0; i < count; ++i) corners.push_back({i % 7 * 216, i / 7 * 216});
  return corners;
}

/// Writes a file of tiles whose vectors are 0, 1, ... one behind the other, some at a time.
std::string written(const fs::path& file, std::int64_t tiles, std::int64_t at_a_time, bool backwards) {
  const FeatureDescription about = some_description();
  FeatureFile features(file, about, some_corners(tiles));
  std::vector<float> values(static_cast<std::size_t>(tiles * about.length));
  std::iota(values.begin(), values.end(), 0.0F);
  for (std::int64_t i = 0; i < tiles; i += at_a_time) {
    const std::int64_t first = backwards ? std::max<std::int64_t>(0, tiles - i - at_a_time) : i;
    const std::int64_t end = backwards ? tiles - i : std::min(tiles, i + at_a_time);
    features.put(first, std::span(values).subspan(static_cast<std::size_t>(first * about.length),
                                                  static_cast<std::size_t>((end - first) * about.length)));
  }
  CHECK(features.missing() == 0);
  CHECK(fs::exists(partial_name(file)));
  CHECK_FALSE(fs::exists(file));
  features.publish();
  CHECK_FALSE(fs::exists(partial_name(file)));
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("Features have the same bytes in whatever order they come, and N may be 0") {
  const TemporaryFolder folder;
  const std::string bytes = written(folder / "a.h5", 23, 23, false);
  CHECK(bytes.starts_with("\x89HDF\r\n\x1a\n"));
  CHECK(written(folder / "b.h5", 23, 4, false) == bytes);
  CHECK(written(folder / "c.h5", 23, 1, true) == bytes);
  CHECK(written(folder / "d.h5", 0, 1, false).starts_with("\x89HDF"));
  CHECK(written(folder / "e.h5", 22, 1, false) != bytes);
}

TEST_CASE("Features that aren't whole, or no numbers, don't get the final name") {
  const TemporaryFolder folder;
  const fs::path file = folder / "a.h5";
  {
    FeatureFile features(file, some_description(), some_corners(3));
    CHECK_THROWS_AS(FeatureFile(file, some_description(), some_corners(3)), OutputError);  // somebody is writing it
    std::vector<float> values(5, 1.0F);
    features.put(1, values);
    CHECK(features.missing() == 2);
    CHECK_THROWS_AS(features.put(3, values), Error);
    CHECK_THROWS_AS(features.put(0, std::span(values).first(4)), Error);
    values[3] = std::numeric_limits<float>::quiet_NaN();
    CHECK_THROWS_WITH_AS(features.put(2, values), "the network gives NaN for the tile at 432, 0", Error);
    CHECK_THROWS_AS(features.publish(), Error);
  }
  CHECK_FALSE(fs::exists(file));
  CHECK_FALSE(fs::exists(partial_name(file)));
  CHECK_THROWS_AS(FeatureFile(folder / "none/a.h5", some_description(), {}), OutputError);
}
