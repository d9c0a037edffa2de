// Features of tiles as HDF5: the same bytes, and nothing left of what can't be written.

#include <doctest/doctest.h>
#include <hdf5.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <slidestream/error.hpp>
#include <string>
#include <vector>

#include "sink/feature_file.hpp"
#include "support/file_limit.hpp"
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

std::vector<TileCorner> some_corners(std::int64_t count) {
  std::vector<TileCorner> corners;
  for (std::int64_t i = 0; i < count; ++i) corners.push_back({i % 7 * 216, i / 7 * 216});
  return corners;
}

/// The bytes of a file of tiles whose vectors are 0, 1, ... one behind the other.
std::string written(const fs::path& file, std::int64_t tiles) {
  const FeatureDescription about = some_description();
  std::vector<float> values(static_cast<std::size_t>(tiles * about.length));
  std::iota(values.begin(), values.end(), 0.0F);
  write_features(file, about, some_corners(tiles), values);
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("The same features are the same bytes, and N may be 0") {
  const TemporaryFolder folder;
  const std::string bytes = written(folder / "a.h5", 23);
  CHECK(bytes.starts_with("\x89HDF\r\n\x1a\n"));
  CHECK(written(folder / "b.h5", 23) == bytes);
  CHECK(written(folder / "c.h5", 22) != bytes);
  CHECK(written(folder / "d.h5", 0).starts_with("\x89HDF"));
}

TEST_CASE("Features that can't be written leave nothing, and a line") {
  const TemporaryFolder folder;
  const std::vector<float> values(10, 1.0F);
  CHECK_THROWS_AS(write_features(folder / "a.h5", some_description(), some_corners(3), values), Error);
  const fs::path file = folder / "none/a.h5";
  CHECK_THROWS_WITH_AS(write_features(file, some_description(), some_corners(2), values),
                       (file.string() + ": No such file or directory").c_str(), OutputError);
  {
    const FileLimit limit(100);
    CHECK_THROWS_WITH_AS(write_features(folder / "full.h5", some_description(), some_corners(2), values),
                         ((folder / "full.h5").string() + ": File too large").c_str(), OutputError);
  }
  CHECK_FALSE(fs::exists(folder / "full.h5"));
}

TEST_CASE("A file of features is known, unless another program added to it") {
  const TemporaryFolder folder;
  written(folder / "features.h5", 23);
  write_coordinates(folder / "coords.h5", some_description(), some_corners(3));
  written(folder / "none.h5", 0);
  CHECK(is_features_file(folder / "none.h5"));
  const auto change = [&](const char* name, const auto& changed) {
    const fs::path file = folder / name;
    CHECK(is_features_file(file));
    const hid_t opened = H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    REQUIRE(opened >= 0);
    changed(opened);
    H5Fclose(opened);
    CHECK_FALSE(is_features_file(file));
  };
  change("features.h5", [](hid_t file) { H5Gclose(H5Gcreate2(file, "mine", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)); });
  // As programs do that add vectors to corners.
  change("coords.h5", [](hid_t file) {
    const hid_t space = H5Screate(H5S_SCALAR);
    H5Dclose(H5Dcreate2(file, "features", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
  });
  written(folder / "attribute.h5", 2);
  change("attribute.h5", [](hid_t file) {
    const hid_t space = H5Screate(H5S_SCALAR);
    H5Aclose(H5Acreate2(file, "mine", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
  });
  CHECK_FALSE(is_features_file(folder.write("text.h5", std::string("\x89HDF slidestream"))));
  CHECK_FALSE(is_features_file(folder / "absent.h5"));
}

TEST_CASE("Features are written over nothing, and through no link") {
  const TemporaryFolder folder;
  const std::vector<float> values(10, 1.0F);
  folder.write("mine", std::string("mine"));
  fs::create_symlink(folder / "mine", folder / "link.h5");
  fs::create_symlink(folder / "nothing", folder / "dangling.h5");
  for (const char* name : {"mine", "link.h5", "dangling.h5"}) {
    CHECK_THROWS_WITH_AS(write_features(folder / name, some_description(), some_corners(2), values),
                         ((folder / name).string() + ": File exists").c_str(), OutputError);
    CHECK(fs::exists(fs::symlink_status(folder / name)));
  }
  CHECK(fs::file_size(folder / "mine") == 4);
  CHECK_FALSE(fs::exists(folder / "nothing"));
}
