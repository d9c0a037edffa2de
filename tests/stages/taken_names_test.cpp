// Something else has a name that a slide's file is to get: it is replaced or fails that slide, and is never written to.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "support/made_up_network.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;
using namespace slidestream::test;
using test::run;

namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Features of made-up vectors, in files as the operator model writes them.
Config config_of_vectors(const TemporaryFolder& folder, const std::string& name) {
  const auto network = std::make_shared<MadeUp>();
  network->given.kind = NetworkOutput::Kind::vector;
  network->given.channels = 4;
  Config config = config_of_network(folder, name);
  config.image.format = ImageFormat::none;
  config.operators.run = {"model"};
  config.model.network = network;
  return config;
}

fs::path made(const Config& config, const std::string& file) {
  const fs::path path = fs::path(config.output.dir) / file;
  fs::create_directories(path.parent_path());
  return path;
}

/// The first slide fails at the name, in one line, and the others are done.
void check_that_one_fails(const Config& config, const std::vector<std::string>& slides, const fs::path& name) {
  INFO(name);
  const RunResult result = run(config, slides);
  REQUIRE(result.slides.size() == slides.size());
  for (const SlideResult& slide : result.slides) {
    if (slide.path != slides[0]) {
      CHECK_MESSAGE(slide.done, slide.error);
      continue;
    }
    CHECK_FALSE(slide.done);
    CHECK(slide.artifacts.empty());
    CHECK_MESSAGE(slide.error.find(name.string() + ": ") != std::string::npos, slide.error);
    CHECK(slide.error.find('\n') == std::string::npos);
  }
}

}  // namespace

TEST_CASE("a folder in the place of a file of features fails its slide alone") {
  const TemporaryFolder folder;
  const std::vector<std::string> slides = equal_slides(folder, 3);
  const Config config = config_of_vectors(folder, "features");
  const fs::path name = made(config, "features/sound0.h5");
  fs::create_directories(name / "mine");
  check_that_one_fails(config, slides, name);
  CHECK(fs::exists(name / "mine"));
}

TEST_CASE("features have no partial name: what has such a one is in nobody's way, and stays") {
  const TemporaryFolder folder;
  const std::vector<std::string> slides = equal_slides(folder, 1);
  const Config plain = config_of_vectors(folder, "plain");
  require_done(run(plain, slides));
  const std::string expected = text_of(made(plain, "features/sound0.h5"));
  REQUIRE_FALSE(expected.empty());
  const fs::path mine = folder.write("mine", std::string("what is behind a link"));
  for (const std::string kind : {"pipe", "file", "link", "loop", "folder"}) {
    CAPTURE(kind);
    const Config config = config_of_vectors(folder, kind);
    const fs::path name = made(config, "features/sound0.partial.h5");
    if (kind == "file") std::ofstream(name) << "somebody's";
    if (kind == "link") fs::create_symlink(mine, name);
    if (kind == "loop") fs::create_symlink(name, name);
    if (kind == "pipe") REQUIRE(::mkfifo(name.c_str(), 0600) == 0);
    if (kind == "folder") fs::create_directory(name);
    const fs::file_type type = fs::symlink_status(name).type();
    require_done(run(config, slides));
    CHECK(text_of(made(config, "features/sound0.h5")) == expected);
    CHECK(fs::symlink_status(name).type() == type);
    if (kind == "file") CHECK(text_of(name) == "somebody's");
    // Nothing else is left, neither.
    CHECK(std::distance(fs::directory_iterator(name.parent_path()), {}) == 2);
  }
  CHECK(text_of(mine) == "what is behind a link");
}

TEST_CASE("what can't be replaced by an image, or while it is written, fails its slide alone (long)") {
  const TemporaryFolder folder;
  const std::vector<std::string> slides = equal_slides(folder, 3);
  struct Taken {
    ImageFormat format;
    const char* name;
    bool folder;
  };
  int i = 0;
  for (const Taken& taken : std::array<Taken, 7>{{
           {ImageFormat::ome_tiff, "images/sound0.sobel.ome.tif", true},
           {ImageFormat::ome_tiff, "images/sound0.sobel.partial.ome.tif", true},
           {ImageFormat::ome_zarr, "images/sound0.sobel.partial.ome.zarr", false},
           {ImageFormat::dzi, "images/sound0.sobel.dzi", true},
           {ImageFormat::dzi, "images/sound0.sobel.partial.dzi", true},
           {ImageFormat::dzi, "images/sound0.sobel.partial_files", false},
           {ImageFormat::dzi, "images/sound0.sobel.partial.view.html", true},
       }}) {
    Config config = config_of_network(folder, std::to_string(i++));
    config.operators.run = {"sobel"};
    config.image.format = taken.format;
    config.image.compression = ImageCompression::automatic;
    config.image.levels = 0;
    config.image.tile = 256;
    const fs::path name = made(config, taken.name);
    if (taken.folder) {
      fs::create_directories(name / "mine");
    } else {
      std::ofstream(name) << "mine";
    }
    check_that_one_fails(config, slides, name);
    CHECK((taken.folder ? fs::exists(name / "mine") : text_of(name) == "mine"));
  }
}

TEST_CASE("a folder in the place of a file that is prepared fails its slide alone") {
  const TemporaryFolder folder;
  const std::vector<std::string> slides = equal_slides(folder, 3);
  for (const char* name : {"images/sound0.tissue.geojson", "images/sound0.tissue.ome.tif"}) {
    Config config = config_of_network(folder, fs::path(name).filename());
    config.operators.run = {"tissue"};
    fs::create_directories(made(config, name) / "mine");
    check_that_one_fails(config, slides, made(config, name));
    CHECK(fs::exists(made(config, name) / "mine"));
  }
}

TEST_CASE("files that are prepared have no partial names: what has them is in nobody's way, and stays") {
  const TemporaryFolder folder;
  const std::vector<std::string> slides = equal_slides(folder, 1);
  Config config = config_of_network(folder, "prepared");
  config.operators.run = {"tissue"};
  const std::vector<std::string> names = {"images/sound0.tissue.partial.geojson",
                                          "images/sound0.tissue.partial.ome.tif",
                                          "images/sound0.tissue.partial.partial.ome.tif"};
  for (const std::string& name : names) std::ofstream(made(config, name)) << "mine";
  require_done(run(config, slides));
  for (const std::string& name : names) CHECK_MESSAGE(text_of(made(config, name)) == "mine", name);
  for (const char* name : {"images/sound0.tissue.geojson", "images/sound0.tissue.ome.tif"}) {
    CHECK_MESSAGE(fs::file_size(made(config, name)) > 0, name);
  }
  CHECK(std::distance(fs::directory_iterator(made(config, "images/any").parent_path()), {}) == 5);
}

TEST_CASE("a table of absent tiles of an earlier attempt goes when the slide is begun again") {
  const TemporaryFolder folder;
  const std::vector<std::string> slides = equal_slides(folder, 1);
  const Config config = config_of_network(folder, "tables");
  std::ofstream(made(config, "images/sound0.model.partial.csv")) << "tile,column,row";
  require_done(run(config, slides, with(std::make_shared<MadeUp>())));
  CHECK(std::distance(fs::directory_iterator(made(config, "images")), {}) == 1);
}
