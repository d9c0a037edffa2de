#include <dlfcn.h>
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <slidestream/slide.hpp>

#include "slide/test_images.hpp"
#include "support/test_data.hpp"
#include "support/wide.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

/// Checks a slide's luminance against the oracle's, and returns it.
std::shared_ptr<const Slide> open_and_sum(const std::string& name) {
  const auto root = test_data_root();
  if (!root) {
    report_skipped("no test data");
    return nullptr;
  }
  std::ifstream file(*root / "oracle" / (name + ".json"));
  const nlohmann::json oracle = nlohmann::json::parse(file);
  auto slide = Slide::open(*root / "data" / (name + ".svs"));
  CHECK(slide->info().levels.at(0).width == oracle.at("width").get<std::int64_t>());
  CHECK(slide->info().levels.at(0).height == oracle.at("height").get<std::int64_t>());
  const std::vector<std::uint8_t> pixels = read_level(*slide);
  CHECK(std::accumulate(pixels.begin(), pixels.end(), std::uint64_t{0}) == oracle.at("gray_sum").get<std::uint64_t>());
  return slide;
}

/// OpenSlide, where it is installed: whole levels as it has them.
class OpenSlide {
 public:
  OpenSlide() {
    for (const char* name : {"libopenslide.so.1", "libopenslide.so.0"}) {
      if (library_ == nullptr) library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
  }
  bool is_there() const { return library_ != nullptr; }

  /// RGB, interleaved; empty where OpenSlide says an error.
  std::vector<std::uint8_t> read(const std::filesystem::path& path, int level, std::int64_t width,
                                 std::int64_t height) const {
    auto* slide = function<void*(const char*)>("openslide_open")(path.c_str());
    if (slide == nullptr) return {};
    std::vector<std::uint32_t> pixels(static_cast<std::size_t>(width * height));
    function<void(void*, std::uint32_t*, std::int64_t, std::int64_t, std::int32_t, std::int64_t, std::int64_t)>(
        "openslide_read_region")(slide, pixels.data(), 0, 0, level, width, height);
    const bool fine = function<const char*(void*)>("openslide_get_error")(slide) == nullptr;
    function<void(void*)>("openslide_close")(slide);
    std::vector<std::uint8_t> rgb;
    if (!fine) return rgb;
    rgb.reserve(3 * pixels.size());
    for (const std::uint32_t argb : pixels) {
      for (const int shift : {16, 8, 0}) rgb.push_back(static_cast<std::uint8_t>(argb >> shift));
    }
    return rgb;
  }

 private:
  template <class Signature>
  Signature* function(const char* name) const {
    auto* found = reinterpret_cast<Signature*>(dlsym(library_, name));
    if (found == nullptr) throw std::runtime_error(std::string("OpenSlide has no ") + name);
    return found;
  }

  void* library_ = nullptr;  // stays loaded
};

}  // namespace

TEST_CASE("RGB of whole slides is what OpenSlide's read_region gives (long)") {
  const auto root = test_data_root();
  if (!root) return report_skipped("no test data");
  const OpenSlide open_slide;
  if (!open_slide.is_there()) return report_skipped("OpenSlide's library isn't installed");
  for (const char* name : {"cmu-1-small-region.svs", "tcga-cr-7395.svs"}) {
    const auto path = *root / "data" / name;
    const auto slide = Slide::open(path);
    for (std::size_t index = 0; index < slide->info().levels.size(); ++index) {
      const Level& level = slide->info().levels[index];
      // The smallest is decoded in the same way.
      if (!is_wide() && index + 1 < slide->info().levels.size()) continue;
      const bool equal =
          read_level_rgb(*slide, index) == open_slide.read(path, static_cast<int>(index), level.width, level.height);
      CHECK_MESSAGE(equal, name, ", level ", index);
    }
  }
}

TEST_CASE("CMU-1 small region: JPEG coded as RGB") {
  const auto slide = open_and_sum("cmu-1-small-region");
  if (!slide) return;
  const SlideInfo& info = slide->info();
  CHECK(info.format == "aperio");
  REQUIRE(info.levels.size() == 1);
  CHECK(info.levels[0].tile_width == 240);
  CHECK(info.levels[0].columns == 10);
  CHECK(info.levels[0].rows == 13);
  CHECK(info.levels[0].codec == Codec::jpeg);
  CHECK(info.levels[0].colour == Colour::rgb);
  CHECK(info.mpp.value() == doctest::Approx(0.499));
  CHECK(info.magnification.value() == doctest::Approx(20.0));
  CHECK(info.associated == std::vector<std::string>{"thumbnail", "label", "macro"});
  CHECK(info.properties.at("ScanScope ID") == "CPAPERIOCS");
}

TEST_CASE("TCGA-CR-7395: JPEG 2000, two levels (long)") {
  const auto slide = open_and_sum("tcga-cr-7395");
  if (!slide) return;
  const SlideInfo& info = slide->info();
  REQUIRE(info.levels.size() == 2);
  CHECK(info.levels[1].width == 2221);
  CHECK(info.levels[1].height == 1783);
  CHECK(info.levels[0].codec == Codec::jpeg2000);
  CHECK(info.levels[0].colour == Colour::rgb);
  CHECK_FALSE(info.mpp.has_value());
  CHECK(info.associated == std::vector<std::string>{"thumbnail"});
  CHECK(read_level(*slide, 1).size() == 2221 * 1783);
}
