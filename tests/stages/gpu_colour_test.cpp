// Slides whose colours are converted to sRGB: on a GPU what they are on the CPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <slidestream/forecast.hpp>
#include <slidestream/pipeline.hpp>

#include "colour/made_profiles.hpp"
#include "support/coded_slides.hpp"
#include "support/gpu.hpp"
#include "support/image_runs.hpp"
#include "support/made_up_gpus.hpp"
#include "support/reference.hpp"

using namespace slidestream;
using test::run_anew;
using test::TileCoding;

namespace {

/// Made-up GPUs decode on the host, which takes long.
bool decodes_on_host() { return test::made_up_gpus() && !test::is_wide(); }

/// Slides in every coding, with profiles by turns; of each a few tiles are missing. Two stay as they are: a grey one,
/// and one without a profile.
std::vector<std::string> slides_with_profiles(const test::TemporaryFolder& folder, std::size_t first_profile) {
  const std::vector<test::MadeProfile> profiles = test::made_profiles();
  std::vector<std::string> slides;
  for (int coding = 1; coding < test::tile_codings + 1; ++coding) {
    test::CodedSlide slide;
    slide.coding = coding == test::tile_codings ? TileCoding::jpeg_420 : static_cast<TileCoding>(coding);
    slide.width = decodes_on_host() ? 330 : 500;
    slide.height = decodes_on_host() ? 210 : 330;
    slide.seed = static_cast<unsigned>(coding);
    slide.missing_tiles = 2;
    const std::size_t profile = first_profile + static_cast<std::size_t>(coding) * 5;
    if (coding < test::tile_codings) slide.profile = profiles[profile % profiles.size()].bytes;
    slides.push_back(folder / (std::to_string(coding) + ".tif"));
    test::write_coded_slide(slides.back(), slide);
  }
  return slides;
}

/// Images without loss, and windows of a size that the slides have.
Config config_of(const test::TemporaryFolder& folder, Backend backend, const std::vector<std::string>& operators) {
  Config config = test::config_of_gpu_images(folder, backend, operators);
  config.analysis.window = 64;
  config.analysis.stride = 32;
  config.input.colour = InputColour::srgb;
  config.input.mpp_default = 0.5;
  config.image.compression = ImageCompression::none;
  config.image.tile = 64;
  return config;
}

void check_alike(const SlideResult& gpu, const SlideResult& cpu) {
  CHECK(gpu.backend == "cuda");
  CHECK(gpu.gpu_fallback_tiles == 0);
  CHECK(gpu.missing_tiles == cpu.missing_tiles);
  test::check_same_files(gpu, cpu);
  test::Tolerance tolerance;
  tolerance.moment = 1e-4;
  CHECK(test::difference(gpu.sums, gpu.map, test::as_reference(cpu.sums, cpu.map), tolerance) == "");
}

}  // namespace

TEST_CASE("converted slides are decoded on the GPU, and give there what they give on the CPU") {
  if (test::left_to_release()) return;
  if (test::gpus_or_skip() == 0) return;
  const test::FakeDecoding decoding;
  const test::TemporaryFolder folder;
  std::size_t profile = 0;
  // Pixels of RGB, of luminance, and of both; then all three again, of other operators.
  const std::vector<std::vector<std::string>> runs = {
      {"identity"}, {"spectrum"}, {"identity", "sobel"}, {"sobel"}, {"identity", "spectrum"}};
  for (const std::vector<std::string>& operators : std::span(runs).first(decodes_on_host() ? 3 : runs.size())) {
    CAPTURE(operators.front());
    CAPTURE(operators.back());
    const std::vector<std::string> slides = slides_with_profiles(folder, profile++);
    Config config = config_of(folder, Backend::cuda, operators);
    for (const SlideForecast& slide : forecast_run(config, slides).slides) CHECK(slide.decoded_on_gpu);
    const RunResult expected = run_anew(config_of(folder, Backend::cpu, operators), slides);
    for (const int strip_height : {100, 1024}) {
      if (decodes_on_host() && strip_height == (operators.size() == 1 ? 1024 : 100)) continue;
      CAPTURE(strip_height);
      config.pipeline.strip_height = strip_height;
      const RunResult found = run_anew(config, slides);
      for (std::size_t i = 0; i < slides.size(); ++i) {
        CAPTURE(slides[i]);
        check_alike(found.slides[i], expected.slides[i]);
      }
    }
  }
}

TEST_CASE("on a GPU, too, images of converted colours are others than those of the file's (long)") {
  if (test::gpus_or_skip() == 0) return;
  const test::FakeDecoding decoding;
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = slides_with_profiles(folder, 0);
  for (const char* const op : {"identity", "sobel"}) {
    Config config = config_of(folder, Backend::cuda, {op});
    const RunResult converted = run_anew(config, slides);
    config.input.colour = InputColour::file;
    const RunResult as_they_are = run_anew(config, slides);
    // All but the grey one, the one without a profile, and the one with sRGB's.
    std::ptrdiff_t differ = 0;
    for (std::size_t i = 0; i < slides.size(); ++i) {
      differ += converted.slides[i].artifacts[0].digest != as_they_are.slides[i].artifacts[0].digest ? 1 : 0;
    }
    CHECK(differ >= 7);
  }
}
