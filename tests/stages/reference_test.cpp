// Runs of any operators over any slides against the reference executor, and against each other however they are cut,
// on every backend that is here.
#include <doctest/doctest.h>
#include <tiffio.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <slidestream/error.hpp>
#include <string>
#include <vector>

#include "codec/tile_encoder.hpp"
#include "operators/registry.hpp"
#include "sink/image_formats.hpp"
#include "support/coded_slides.hpp"
#include "support/made_up_gpus.hpp"
#include "support/pipeline_runs.hpp"
#include "support/reference_executor.hpp"
#include "support/temporary_folder.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

struct TiffCloser {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
using TiffHandle = std::unique_ptr<TIFF, TiffCloser>;

template <class T>
T field(TIFF* tiff, ttag_t tag) {
  T value{};
  CHECK(TIFFGetFieldDefaulted(tiff, tag, &value) == 1);
  return value;
}

TileCompression compression_of(const Config& config, const PixelFormat& format) {
  switch (config.image.compression) {
    case ImageCompression::none:
      return TileCompression::none;
    case ImageCompression::zstd:
      return TileCompression::zstd;
    case ImageCompression::jpeg:
      return TileCompression::jpeg;
    default:
      return format.sample == SampleType::uint8 ? TileCompression::jpeg : TileCompression::zstd;
  }
}

/// A tile of a level, its last column and row repeated beyond the level's edges.
std::vector<std::byte> padded_tile(const WholeImage& level, std::int64_t x, std::int64_t y, std::int64_t side) {
  const std::size_t pixel = level.format.pixel_bytes();
  std::vector<std::byte> bytes;
  for (std::int64_t v = y; v < y + side; ++v) {
    for (std::int64_t u = x; u < x + side; ++u) {
      const std::int64_t at = std::min(v, level.size.height - 1) * level.size.width + std::min(u, level.size.width - 1);
      const auto* first = level.bytes.data() + static_cast<std::size_t>(at) * pixel;
      bytes.insert(bytes.end(), first, first + pixel);
    }
  }
  return bytes;
}

/// How many tiles of the directory that libtiff is at aren't those of `level`.
int wrong_tiles(TIFF* tiff, const WholeImage& level, const Config& config) {
  const int side = config.image.tile == 0 ? 256 : config.image.tile;
  const TileCompression compression = compression_of(config, level.format);
  const auto encoder = make_tile_encoder(compression, level.format, config.image.quality, side);
  if (compression == TileCompression::jpeg) {
    const std::vector<std::byte> tables = encoder->tables();
    std::uint32_t length = 0;
    const void* found = nullptr;
    REQUIRE(TIFFGetField(tiff, TIFFTAG_JPEGTABLES, &length, &found) == 1);
    CHECK(length == tables.size());
    CHECK(std::equal(tables.begin(), tables.end(), static_cast<const std::byte*>(found)));
  }
  int wrong = 0;
  std::uint32_t index = 0;
  for (std::int64_t y = 0; y < level.size.height; y += side) {
    for (std::int64_t x = 0; x < level.size.width; x += side, ++index) {
      std::vector<std::byte> expected = padded_tile(level, x, y, side);
      std::vector<std::byte> found(expected.size());
      if (compression != TileCompression::jpeg) {
        const auto size = static_cast<tmsize_t>(found.size());
        wrong += TIFFReadEncodedTile(tiff, index, found.data(), size) != size || found != expected;
        continue;
      }
      ConstPixelView<MemorySpace::host> pixels;
      pixels.data = expected.data();
      pixels.pitch = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(side) * level.format.pixel_bytes());
      pixels.rect = {0, 0, side, side};
      pixels.image = {side, side};
      pixels.format = level.format;
      expected = encoder->encode(pixels);
      // Behind the stream there may be zeros: no tile is shorter than the one that stood there before.
      found.assign(TIFFGetStrileByteCount(tiff, index), std::byte{1});
      const auto size = static_cast<tmsize_t>(found.size());
      expected.resize(std::max(expected.size(), found.size()));
      wrong += TIFFReadRawTile(tiff, index, found.data(), size) != size || found != expected;
    }
  }
  return wrong;
}

/// Whether a file holds the levels of an image, and no others.
void check_image(const std::filesystem::path& file, const ReferenceImage& image, const Config& config) {
  INFO(file.filename().string());
  const TiffHandle tiff(TIFFOpen(file.c_str(), "r"));
  REQUIRE(tiff);
  REQUIRE(static_cast<std::size_t>(TIFFNumberOfDirectories(tiff.get())) == image.levels.size());
  for (std::size_t i = 0; i < image.levels.size(); ++i) {
    const WholeImage& level = image.levels[i];
    INFO("level ", i, ", ", level.size.width, " x ", level.size.height);
    REQUIRE(TIFFSetDirectory(tiff.get(), static_cast<tdir_t>(i)) == 1);
    REQUIRE(field<std::uint32_t>(tiff.get(), TIFFTAG_IMAGEWIDTH) == level.size.width);
    REQUIRE(field<std::uint32_t>(tiff.get(), TIFFTAG_IMAGELENGTH) == level.size.height);
    REQUIRE(field<std::uint16_t>(tiff.get(), TIFFTAG_SAMPLESPERPIXEL) == level.format.channels);
    REQUIRE(field<std::uint16_t>(tiff.get(), TIFFTAG_BITSPERSAMPLE) == 8 * bytes_of(level.format.sample));
    CHECK(wrong_tiles(tiff.get(), level, config) == 0);
  }
}

/// The files of an image that is a folder, by name, without those that describe it.
std::map<std::string, std::vector<std::byte>> files_of_tiles(const std::filesystem::path& image) {
  std::filesystem::path folder = image;
  if (image.extension() == ".dzi") folder.replace_filename(image.stem().string() + "_files");
  std::map<std::string, std::vector<std::byte>> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (!entry.is_regular_file() || name.starts_with(".z") || name == "zarr.json") continue;
    files[entry.path().lexically_relative(folder)] = read_file(entry.path());
  }
  return files;
}

/// Whether a folder holds the tiles of an image's levels, and no others: what its sink makes of them, one by one.
void check_folder(const std::filesystem::path& file, const ReferenceImage& image, const Config& config) {
  INFO(file.filename().string());
  const TemporaryFolder folder;
  ImageDescription description;
  description.size = image.levels[0].size;
  description.format = image.levels[0].format;
  const auto sink = make_image_sink(folder / ("expected" + file.extension().string()), description,
                                    image_options(config.image, description.format));
  const PyramidLayout& layout = sink->layout();
  REQUIRE(static_cast<std::size_t>(layout.levels()) == image.levels.size());
  const auto encoder = sink->make_encoder();
  const std::int64_t side = layout.tile();
  for (int i = 0; i < layout.levels(); ++i) {
    const WholeImage& level = image.levels[static_cast<std::size_t>(i)];
    for (std::int64_t row = 0; row < layout.rows(i); ++row) {
      for (std::int64_t column = 0; column < layout.columns(i); ++column) {
        const std::int64_t y = row * side;
        ConstPixelView<MemorySpace::host> tile = level.rows(y, std::min(side, level.size.height - y));
        tile.rect.x = column * side;
        tile.rect.width = std::min(side, level.size.width - tile.rect.x);
        tile.data += tile.rect.x * static_cast<std::int64_t>(level.format.pixel_bytes());
        if (sink->put(i, {column, row}, EncodedTile(encoder->encode(tile)))) sink->drain();
      }
    }
  }
  CHECK(files_of_tiles(file) == files_of_tiles(sink->publish().front().path));
}

/// What several runs had in them, so that nothing is left out by chance.
using Seen = std::map<std::string, int>;

void note(Seen& seen, const RunResult& result, const Config& config) {
  for (const SlideResult& slide : result.slides) {
    if (!slide.done) {
      ++seen["failed in " + slide.failure.stage];
      continue;
    }
    ++seen[slide.codec + " " + slide.colour];
    if (slide.missing_tiles > 0) ++seen["missing tiles"];
    if (slide.bad_tiles > 0) ++seen["bad tiles"];
    if (config.input.level > 0) ++seen["a smaller level"];
    for (const std::string& name : config.operators.run) ++seen[name];
    if (slide.artifacts.empty()) continue;
    ++seen["compression " + std::to_string(static_cast<int>(config.image.compression))];
    const bool is_sharded = config.image.format == ImageFormat::ome_zarr && config.image.zarr_version == 3;
    ++seen[std::string(traits_of(config.image.format).suffixes.front()) + (is_sharded ? ", shards" : "")];
  }
}

/// One slide of a run against the reference.
void check_slide(const SlideResult& slide, const ReferenceSlide& expected, const Config& config, Backend backend) {
  INFO(slide.path, ": ", slide.error);
  REQUIRE(slide.done == expected.failed_stage.empty());
  CHECK(slide.failure.stage == (slide.done ? expected.lacking_stage : expected.failed_stage));
  CHECK(slide.failure.tile == expected.failed_tile);
  if (!expected.cause.empty()) CHECK(slide.failure.cause == expected.cause);
  if (!slide.done) {
    CHECK(slide.artifacts.empty());
    CHECK(slide.missing_tiles + slide.bad_tiles + slide.sums.windows == 0);
    return;
  }
  CHECK(slide.width == expected.width);
  CHECK(slide.height == expected.height);
  CHECK(slide.mpp == expected.mpp);
  CHECK(slide.missing_tiles == expected.missing_tiles + expected.missing_as_glass);
  CHECK(slide.bad_tiles == expected.bad_tiles.size() + expected.bad_as_glass);
  std::vector<ReferenceImage>::const_iterator image = expected.images.begin();
  for (const Artifact& artifact : slide.artifacts) {
    // Deep Zoom has two more for each image.
    if (artifact.product != "image" || !artifact.file.ends_with(traits_of(config.image.format).suffixes.front()))
      continue;
    REQUIRE(image != expected.images.end());
    REQUIRE(artifact.maker == image->maker);
    const std::filesystem::path file = std::filesystem::path(config.output.dir) / artifact.file;
    const bool is_tiff = config.image.format == ImageFormat::ome_tiff;
    (is_tiff ? check_image : check_folder)(file, *image, config);
    // Slides have 8 bits.
    if (is_tiff && image->levels[0].format.sample == SampleType::uint8) {
      const std::optional<double> mpp = Slide::open(file)->info().mpp;
      CHECK(mpp.has_value() == expected.mpp.has_value());
      if (mpp && expected.mpp) CHECK(*mpp == doctest::Approx(*expected.mpp));
    }
    ++image;
  }
  CHECK(image == expected.images.end());
  REQUIRE(expected.spectrum.has_value() == (slide.sums.windows > 0));
  if (!expected.spectrum) return;
  const ReferenceSpectrum& spectrum = *expected.spectrum;
  // Where coefficients are zero by definition, the value in decibels is that of rounding errors.
  if (config.analysis.value == ValueKind::log1p_db) {
    CHECK(difference(slide.sums, slide.map, spectrum.exact, tolerance_for_zeros(config.analysis)) == "");
  }
  if (backend == Backend::cpu) CHECK(same_bits({slide.sums, slide.map}, spectrum.host));
}

/// Everything that two runs gave, their files to the byte.
void check_same_run(const RunResult& a, const Config& of_a, const RunResult& b, const Config& of_b) {
  check_same(a, b);
  for (std::size_t i = 0; i < a.slides.size() && i < b.slides.size(); ++i) {
    const SlideResult& x = a.slides[i];
    const SlideResult& y = b.slides[i];
    REQUIRE(x.values.size() == y.values.size());
    for (std::size_t j = 0; j < x.values.size(); ++j) CHECK(x.values[j].value == y.values[j].value);
    REQUIRE(x.artifacts.size() == y.artifacts.size());
    for (std::size_t j = 0; j < x.artifacts.size(); ++j) {
      CHECK(x.artifacts[j].file == y.artifacts[j].file);
      CHECK(x.artifacts[j].digest == y.artifacts[j].digest);
      if (std::filesystem::is_directory(std::filesystem::path(of_a.output.dir) / x.artifacts[j].file)) continue;
      const bool same_bytes = read_file(std::filesystem::path(of_a.output.dir) / x.artifacts[j].file) ==
                              read_file(std::filesystem::path(of_b.output.dir) / y.artifacts[j].file);
      CHECK_MESSAGE(same_bytes, y.artifacts[j].file);
    }
  }
}

/// Strips of all slides together.
std::uint64_t strips_of(const RunResult& result) {
  const auto source = std::ranges::find(result.stages, "source", &StageReport::name);
  return source == result.stages.end() ? 0 : source->items;
}

/// Whether a slide wanted more memory than the run has.
bool is_too_little(const RunResult& result) {
  return std::ranges::any_of(result.slides, [](const SlideResult& slide) {
    return slide.error.find("pipeline.memory_mib") != std::string::npos;
  });
}

/// One configuration of anything that decides results, over some slides.
class Property {
 public:
  Property(Backend backend, unsigned seed) : backend_(backend), random_(seed), config_(config_for(backend)) {
    choose_operators();
    choose_images();
    Config& config = config_;
    config.decode.on_bad_tile = in(0, 2) == 0 ? BadTilePolicy::fail : BadTilePolicy::white;
    config.input.mpp = in(0, 3) == 0 ? 6.5 : 0.0;
    config.input.level = in(0, 4) == 0 ? 1 : 0;
    for (int i = in(1, 3); i > 0; --i) {
      CodedSlide slide = random_coded_slide(random_);
      slide.levels = config.input.level + 1;
      // Most slides have windows.
      const bool runs_spectrum = std::ranges::count(config.operators.run, "spectrum") > 0;
      if (runs_spectrum && in(0, 7) > 0) slide.width = std::max(slide.width, config.analysis.window);
      if (runs_spectrum && in(0, 7) > 0) slide.height = std::max(slide.height, config.analysis.window);
      // Rows of tiles that the least memory doesn't hold: panels, with tiles that two of them decode.
      if (config.operators.run.size() == 1 && runs_spectrum && in(0, 2) > 0) {
        slide.width = in(400, 1600);
        slide.height = in(200, 500);
        slide.tile_width = slide.tile_height = in(120, 250);
        slide.missing_tiles = in(1, 6);
        slide.bad_tiles = in(0, 3);
      }
      slides_.push_back(folder_ / ("slide" + std::to_string(i) + ".tif"));
      write_coded_slide(slides_.back(), slide);
    }
  }

  /// Against the reference, and whatever is turned that must not matter.
  void check(Seen& seen) {
    const Config plain = with([](PipelineConfig& pipeline) {
      pipeline.threads = 1;
      pipeline.queue_depth = 1;
      pipeline.strip_height = 4096;
    });
    const RunResult expected = run(plain, slides_);
    REQUIRE(expected.slides.size() == slides_.size());
    std::vector<ReferenceSlide> references;
    for (const SlideResult& slide : expected.slides) {
      references.push_back(reference_slide(plain, slide.path));
      check_slide(slide, references.back(), plain, backend_);
    }
    note(seen, expected, plain);
    for (int i = 0; i < wide_or_few(3, 2); ++i) {
      const Config other = with([&](PipelineConfig& pipeline) {
        pipeline.threads = in(1, 6);
        pipeline.queue_depth = in(1, 6);
        pipeline.strip_height = in(16, 300);
        pipeline.batch_strips = in(0, 3);
        pipeline.memory_mib = 1;
      });
      RunResult result = run_with_least_memory(other);
      INFO(other.pipeline.threads, " threads, depth ", other.pipeline.queue_depth, ", strips of ",
           other.pipeline.strip_height);
      check_bad_tiles_of_panels(result, expected, references);
      check_same_run(result, other, expected, plain);
      if (strips_of(result) > 4 * slides_.size()) ++seen["low strips"];
    }
  }

 private:
  int in(int low, int high) { return static_cast<int>(low + random_below(random_, high - low + 1)); }

  /// Panels are looked at one after the other: of several bad tiles another may be the first, which is made the one
  /// that is expected.
  void check_bad_tiles_of_panels(RunResult& found, const RunResult& expected,
                                 const std::vector<ReferenceSlide>& references) const {
    if (config_.operators.run != std::vector<std::string>{"spectrum"}) return;
    for (std::size_t i = 0; i < found.slides.size(); ++i) {
      const SlideFailure& failure = found.slides[i].failure;
      if (!failure.tile) continue;
      CHECK(std::ranges::count(references[i].bad_tiles, *failure.tile) == 1);
      CHECK(failure.stage == references[i].failed_stage);
      found.slides[i].fail(expected.slides[i].failure);
    }
  }

  /// Some of those that the backend computes, in any order.
  void choose_operators() {
    std::vector<std::string> names;
    for (const std::string_view name : operator_names) {
      if (name == "model") continue;  // network_test runs networks, which aren't pixel by pixel
      Config one;
      one.operators.run = {std::string(name)};
      if (backend_ == Backend::cpu || why_not_on_gpus(one, operators::make_operators(one)).empty())
        names.emplace_back(name);
    }
    std::shuffle(names.begin(), names.end(), random_);
    names.resize(static_cast<std::size_t>(in(1, static_cast<int>(names.size()))));
    Config& config = config_;
    config.operators.run = names;
    // Without images, levels are cut into panels and fragments as well.
    if (in(0, 3) == 0) config.operators.run = {"spectrum"};
    constexpr int windows[] = {16, 32, 64, 50, 128};
    config.analysis.window = windows[in(0, 4)];
    config.analysis.stride = in(config.analysis.window / 2, config.analysis.window * 3 / 2);
    config.analysis.smoothing_radius = in(0, 7);
    config.analysis.value = in(0, 3) == 0 ? ValueKind::db : ValueKind::log1p_db;
    config.identity.colour = static_cast<PixelColour>(in(0, 1));
    config.sobel.output = static_cast<SobelOutput>(in(0, 1));
    config.gaussian.radius = in(0, 16);
    config.gaussian.sigma = 0.2 * in(1, 30);
    config.gaussian.colour = static_cast<PixelColour>(in(0, 1));
    config.stain.output = static_cast<StainOutput>(in(0, 2));
  }

  void choose_images() {
    ImageConfig& image = config_.image;
    image.format = ImageFormat::ome_tiff;
    image.compression = static_cast<ImageCompression>(in(0, 3));
    const bool floats = config_.sobel.output == SobelOutput::float32;
    if (image.compression == ImageCompression::jpeg && floats) image.compression = ImageCompression::automatic;
    image.quality = in(1, 100);
    image.tile = 16 * (in(0, 1) == 0 ? in(1, 5) : in(1, 32));
    image.levels = in(0, 9);
    if (in(0, 2) == 0) choose_folders();
  }

  /// Formats that are folders, of fewer tiles: each file is synced.
  void choose_folders() {
    ImageConfig& image = config_.image;
    image.tile = 16 * in(6, 32);
    if (in(0, 2) == 0) {
      image.format = ImageFormat::dzi;
      image.compression = ImageCompression::automatic;
      image.levels = 0;
      config_.sobel.output = SobelOutput::uint8;
    } else {
      image.format = ImageFormat::ome_zarr;
      image.zarr_version = in(2, 3);
      constexpr ImageCompression compressions[] = {ImageCompression::automatic, ImageCompression::none,
                                                   ImageCompression::zstd, ImageCompression::blosc_lz4};
      image.compression = compressions[in(0, image.zarr_version == 2 ? 3 : 2)];
    }
  }

  /// The configuration with other settings of what must not matter.
  template <class Choose>
  Config with(const Choose& choose) {
    Config config = config_;
    choose(config.pipeline);
    config.gpu.split_slides = static_cast<SplitSlides>(in(0, 2));
    config.output.dir = folder_ / ("run" + std::to_string(runs_++));
    return config;
  }

  /// So that strips are as low as they can be, and work completes in any order.
  RunResult run_with_least_memory(Config config) {
    RunResult result = run(config, slides_, dawdling);
    while (is_too_little(result) && config.pipeline.memory_mib < 1024) {
      config.pipeline.memory_mib *= 2;
      result = run(config, slides_, dawdling);
    }
    return result;
  }

  Backend backend_;
  std::mt19937_64 random_;
  TemporaryFolder folder_;
  Config config_;
  std::vector<std::string> slides_;
  int runs_ = 0;
};

/// What random runs are to come by.
std::vector<std::string> everything() {
  std::vector<std::string> names = {"none grey",     "none rgb",     "jpeg grey",        "jpeg rgb",
                                    "jpeg ycbcr",    "jpeg2000 rgb", "jpeg2000 ycbcr",   "failed in source",
                                    "missing tiles", "bad tiles",    "failed in decode", "a smaller level",
                                    "low strips",    ".ome.tif",     ".ome.zarr",        ".ome.zarr, shards",
                                    ".dzi"};
  for (const std::string_view name : operator_names) {
    if (name != "model") names.emplace_back(name);
  }
  for (int i = 0; i < 4; ++i) names.push_back("compression " + std::to_string(i));
  return names;
}

}  // namespace

TEST_CASE("Whatever runs over whatever slides is what the definitions give, however it is cut (long)") {
  // More of them, or others: SLIDESTREAM_TEST_ROUNDS, and SLIDESTREAM_TEST_SEED as the first.
  const auto number = [](const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::atoi(text);
  };
  const int first = number("SLIDESTREAM_TEST_SEED", 1);
  for (const Backend backend : backends()) {
    const int usual_rounds = wide_or_few(backend == Backend::cpu ? 32 : 16, 10);
    const int rounds = number("SLIDESTREAM_TEST_ROUNDS", test::rounds(usual_rounds));
    // Where all rounds are run, more follow until each of these was seen, and too many are a mistake.
    std::vector<std::string> wanted;
    if (backend == Backend::cpu && rounds >= usual_rounds) wanted = everything();
    Seen seen;
    const auto is_missing = [&seen](const std::string& name) { return seen[name] == 0; };
    for (int seed = first;
         seed < first + rounds || (seed < first + 4 * rounds && std::ranges::any_of(wanted, is_missing)); ++seed) {
      CAPTURE(seed);
      // Every other time the CPU decodes what the device doesn't vouch for, which is everything.
      test::fake_decoding(seed % 2 == 1);
      Property(backend, static_cast<unsigned>(seed)).check(seen);
    }
    test::fake_decoding(false);
    for (const std::string& name : wanted) CHECK_MESSAGE(seen[name] > 0, name);
  }
}
