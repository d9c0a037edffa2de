// Cuts through volumes, of volumes whose samples say where they lie.

#include "report/volume_cuts.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <slidestream/error.hpp>
#include <span>
#include <vector>

#include "runtime/machine.hpp"
#include "support/temporary_folder.hpp"
#include "volume/nifti_file.hpp"

namespace slidestream::report {
namespace {

constexpr std::array<std::int64_t, 3> size = {40, 30, 20};  // x, y, z

/// The value of a voxel by its place.
template <class Value>
std::filesystem::path write(const std::filesystem::path& file, const Value& value,
                            const std::array<std::int64_t, 3>& sides = size) {
  volume::NiftiHeader header;
  header.size = sides;
  header.geometry.pixdim = {1, 1, 1, 1};
  std::vector<std::uint8_t> samples;
  for (std::int64_t z = 0; z < sides[2]; ++z) {
    for (std::int64_t y = 0; y < sides[1]; ++y) {
      for (std::int64_t x = 0; x < sides[0]; ++x) samples.push_back(static_cast<std::uint8_t>(value(x, y, z)));
    }
  }
  volume::write_nifti(file, header, volume::ScalarType::uint8, false, std::as_bytes(std::span(samples)));
  return file;
}

Rgb pixel(const ColourImage& image, int x, int y) {
  const std::uint8_t* const at = image.pixels.data() + (y * image.width + x) * 3;
  return {at[0], at[1], at[2]};
}

TEST_CASE("three cuts through the middle lie beside each other, with larger coordinates above and at the right") {
  const test::TemporaryFolder folder;
  // The longest axis has 127 pixels, the others 95 and 64.
  const ColourImage along_x = read_volume_cuts(write(folder / "x.nii.gz", [](auto x, auto, auto) { return 5 * x; }));
  CHECK(along_x.width == 2 * 127 + 2);
  CHECK(along_x.height == 95 + 2 + 64);
  REQUIRE(along_x.pixels.size() == static_cast<std::size_t>(along_x.width * along_x.height * 3));
  for (const int left : {0, 129}) {
    CHECK(pixel(along_x, left, 30)[0] < 10);
    CHECK(pixel(along_x, left + 126, 30)[0] > 245);
  }
  // x is 20 all over the cut across it.
  CHECK(pixel(along_x, 10, 100) == pixel(along_x, 90, 150));
  const ColourImage along_y = read_volume_cuts(write(folder / "y.nii.gz", [](auto, auto y, auto) { return 5 * y; }));
  CHECK(pixel(along_y, 60, 94)[0] < 10);
  CHECK(pixel(along_y, 60, 0)[0] > 245);
  CHECK(pixel(along_y, 94, 120)[0] > 245);
  const ColourImage along_z = read_volume_cuts(write(folder / "z.nii.gz", [](auto, auto, auto z) { return 5 * z; }));
  CHECK(pixel(along_z, 200, 63)[0] < 10);
  CHECK(pixel(along_z, 200, 0)[0] > 245);
  CHECK(pixel(along_z, 20, 97)[0] > 245);
}

TEST_CASE("labels but 0 have colours over the samples, and labels of another size are refused") {
  const test::TemporaryFolder folder;
  const auto scan = write(folder / "scan.nii.gz", [](auto x, auto, auto) { return 5 * x; });
  const auto labels = write(folder / "labels.nii.gz", [](auto x, auto, auto) { return x < 20 ? 0 : 17; });
  const ColourImage plain = read_volume_cuts(scan);
  const ColourImage over = read_volume_cuts(scan, labels);
  CHECK(pixel(over, 30, 30) == pixel(plain, 30, 30));
  const Rgb colour = class_colour(17);
  for (std::size_t i = 0; i < 3; ++i) CHECK(pixel(over, 100, 30)[i] == (pixel(plain, 100, 30)[i] + colour[i] + 1) / 2);
  const auto other = write(folder / "other.nii.gz", [](auto, auto, auto) { return 1; }, {4, 5, 6});
  CHECK_THROWS_WITH_AS(read_volume_cuts(scan, other), doctest::Contains("other.nii.gz: another size"), SlideError);
  CHECK_THROWS_AS(read_volume_cuts(folder / "none.nii"), SlideError);
}

TEST_CASE("reading a volume for its cuts can be given up, and keeps no more samples than are shown") {
  const test::TemporaryFolder folder;
  const auto scan = write(folder / "scan.nii.gz", [](auto x, auto, auto) { return x / 2; }, {400, 300, 200});
  CHECK_THROWS_AS(read_volume_cuts(scan, [] { return true; }), StoppedError);
  const bool is_counted = runtime::reset_peak_memory();
  const std::uint64_t before = runtime::peak_memory().value_or(0);
  const ColourImage image = read_volume_cuts(scan);
  CHECK(pixel(image, 126, 30)[0] > 245);
  // All of them are 92 MiB.
  if (is_counted) CHECK(runtime::peak_memory().value_or(0) - before < (std::uint64_t{32} << 20));
}

}  // namespace
}  // namespace slidestream::report
