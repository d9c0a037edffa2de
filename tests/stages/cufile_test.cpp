// Tiles that are read straight into a device's memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "runtime/cuda/device_file.hpp"
#include "support/coded_slides.hpp"
#include "support/gpu.hpp"
#include "support/pipeline_runs.hpp"
#include "support/random_runs.hpp"
#include "support/test_data.hpp"
#include "support/test_slides.hpp"
#ifdef SLIDESTREAM_FAKE_CUDA
#include <dlfcn.h>

#include "support/failing_reads.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/fake_cufile.hpp"
#endif

using namespace slidestream;
using test::check_same;
using test::Heard;
using test::run_and_listen;

namespace {

Config config_of(InputIo io) {
  Config config = test::config_for(Backend::cuda);
  config.input.io = io;
  config.input.retries = 0;
  config.decode.device = DecodeDevice::gpu;
  config.pipeline.strip_height = 128;
  config.pipeline.batch_strips = 1;
  return config;
}

/// For slides that are smaller than a usual window.
Config config_of_small(InputIo io) {
  Config config = config_of(io);
  config.analysis.window = 32;
  config.analysis.stride = 16;
  return config;
}

using Files = std::map<std::string, std::string>;  ///< bytes by name

Files files_of(const std::filesystem::path& folder) {
  Files files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    files[entry.path().lexically_relative(folder)] =
        std::string(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return files;
}

/// What `cufile` reads is what `posix` reads: results, and images where there are some.
void check_ways(const std::vector<std::string>& slides, Config config, const test::TemporaryFolder& folder) {
  std::vector<Files> made;
  std::vector<RunResult> results;
  for (const InputIo io : {InputIo::posix, InputIo::cufile}) {
    config.input.io = io;
    config.output.dir = folder / ("out" + std::to_string(made.size()));
    results.push_back(test::run(config, slides));
    const std::filesystem::path images = std::filesystem::path(config.output.dir) / "images";
    made.push_back(std::filesystem::is_directory(images) ? files_of(images) : Files{});
    std::filesystem::remove_all(config.output.dir);
  }
  check_same(results[1], results[0]);
  CHECK(made[1] == made[0]);
}

}  // namespace

#ifdef SLIDESTREAM_FAKE_CUDA

test::FakeCufile& test::fake_cufile() {
  static FakeCufile* const fake = [] {
    void* library = dlopen(SLIDESTREAM_FAKE_CUFILE, RTLD_NOW | RTLD_GLOBAL);
    REQUIRE_MESSAGE(library != nullptr, dlerror());
    auto* const get = reinterpret_cast<FakeCufile* (*)()>(dlsym(library, "slidestream_fake_cufile"));
    REQUIRE(reinterpret_cast<void*>(get) != nullptr);
    return get();
  }();
  return *fake;
}

namespace {

/// For slides that are as high as others, and 130 pixels wide.
Config config_of_narrow(InputIo io) {
  Config config = config_of(io);
  config.analysis.window = 128;
  return config;
}

std::atomic<bool> has_modules{true};

}  // namespace

/// Stands before the C library's: whether there is a list of the system's modules is the tests' to say.
extern "C" int access(const char* path, int mode) noexcept {
  static const auto real = reinterpret_cast<int (*)(const char*, int)>(dlsym(RTLD_NEXT, "access"));
  if (std::string_view(path) != "/proc/modules") return real(path, mode);
  if (has_modules) return 0;
  errno = ENOENT;
  return -1;
}

namespace {

/// Bytes behind a JPEG's first two that no decoder looks at.
test::Bytes with_comment(const test::Bytes& jpeg, std::size_t length) {
  test::Bytes longer(jpeg.begin(), jpeg.begin() + 2);
  const std::size_t segment = length + 2;
  for (const std::size_t byte : {std::size_t{0xff}, std::size_t{0xfe}, segment >> 8, segment & 255}) {
    longer.push_back(static_cast<std::byte>(byte));
  }
  longer.insert(longer.end(), length, std::byte{0x20});
  longer.insert(longer.end(), jpeg.begin() + 2, jpeg.end());
  return longer;
}

/// Whatever a test asked for is as it was.
struct AsItWas {
  AsItWas() { reset(); }
  ~AsItWas() { reset(); }
  static void reset() {
    test::FakeCufile& fake = test::fake_cufile();
    fake.driver_error = fake.register_error = fake.failing_reads = 0;
    fake.nvidia_fs = 2;
    has_modules = true;
    test::fail_nothing();
    test::fake_decoding(true);
  }
};

}  // namespace

TEST_CASE("cufile: without the library a line says so, and tiles are read as with posix") {
  if (dlopen("libcufile.so.0", RTLD_NOW | RTLD_NOLOAD) != nullptr) {
    MESSAGE("SKIPPED: another case has loaded the library");
    return;
  }
  // CUDA's own is found where its driver isn't, too, and gives another line. What the loader doesn't find isn't loaded
  // here: it would take the place of the made-up one for the other cases.
  for (const char* place :
       {"/usr/local/cuda/lib64/libcufile.so.0", "/usr/local/cuda/targets/x86_64-linux/lib/libcufile.so.0"}) {
    std::error_code ignored;
    if (!std::filesystem::exists(place, ignored)) continue;
    test::report_skipped("libcufile is installed here");
    return;
  }
  if (void* const installed = dlopen("libcufile.so.0", RTLD_LAZY)) {
    dlclose(installed);
    test::report_skipped("libcufile is installed here");
    return;
  }
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 3);
  const Heard heard = run_and_listen(config_of(InputIo::cufile), slides);
  check_same(heard.result, test::run(config_of(InputIo::posix), slides));
  REQUIRE(heard.lines.size() == 1);
  CHECK(heard.lines[0] ==
        "input.io = \"cufile\": libcufile.so.0 isn't installed where the loader looks: tiles are read as with "
        "\"posix\"");
}

TEST_CASE("cufile: what is read into a device's memory is what is read into the host's, to the bit (long)") {
  const AsItWas before_and_after;
  test::FakeCufile& fake = test::fake_cufile();
  for (const test::Coding coding : {test::Coding::none, test::Coding::jpeg}) {
    const test::TemporaryFolder folder;
    const std::vector<std::string> slides = test::equal_slides(folder, 4, coding);
    for (const bool vouches : {true, false}) {
      test::fake_decoding(vouches);
      for (const int memory_mib : {4, 32}) {
        Config config = config_of(InputIo::posix);
        config.pipeline.memory_mib = memory_mib;
        config.pipeline.batch_strips = 0;
        const RunResult expected = test::run(config, slides);
        test::require_done(expected);
        config.input.io = InputIo::cufile;
        const std::uint64_t before = fake.bytes;
        const Heard heard = run_and_listen(config, slides);
        check_same(heard.result, expected);
        CHECK(heard.lines.empty());
        // Headers come back from the device, or it would vouch for no tile.
        for (const SlideResult& slide : heard.result.slides) {
          if (vouches || coding == test::Coding::none) CHECK(slide.gpu_fallback_tiles == 0);
        }
        // All that the tiles have, and the rest of their blocks.
        CHECK(fake.bytes - before > 4 * 50'000);
        CHECK(fake.files == 0);
      }
    }
  }
}

TEST_CASE("cufile: random slides of every coding, with missing and bad tiles, and their images") {
  if (test::left_to_release()) return;
  const AsItWas before_and_after;
  test::fake_cufile();
  std::mt19937 random(17);
  for (int round = 0; round < test::rounds(test::wide_or_few(40, 12)); ++round) {
    const test::TemporaryFolder folder;
    std::vector<std::string> slides;
    for (int i = 0; i < 3; ++i) {
      slides.push_back(folder / (std::to_string(i) + ".tif"));
      test::write_coded_slide(slides.back(), test::random_coded_slide(random));
    }
    Config config = config_of_small(InputIo::posix);
    config.gpu.devices = round % 3 == 0 ? std::vector<int>{0, 1} : std::vector<int>{0};
    config.decode.on_bad_tile = round % 2 == 0 ? BadTilePolicy::white : BadTilePolicy::fail;
    if (round % 2 == 0) {
      config.operators.run = {"spectrum", "sobel"};
      config.image.format = ImageFormat::ome_tiff;
    }
    if (round % 4 == 0) config.image.compression = ImageCompression::automatic;
    INFO("round ", round);
    check_ways(slides, config, folder);
  }
}

TEST_CASE("cufile: tiles whose headers are longer than what is looked at come from the processors (long)") {
  const AsItWas before_and_after;
  test::fake_cufile();
  for (const std::size_t length : {std::size_t{100}, std::size_t{400}, std::size_t{2000}, std::size_t{60'000}}) {
    const test::TemporaryFolder folder;
    test::CodedSlide slide;
    slide.coding = test::TileCoding::jpeg_420;
    test::TestTiff tiff;
    tiff.directories.push_back(test::coded_level(slide, false, 3));
    std::vector<test::Bytes>& tiles = tiff.directories[0].tiles;
    for (std::size_t i = 0; i < tiles.size(); i += 2) tiles[i] = with_comment(tiles[i], length);
    const test::Bytes bytes = tiff.bytes();
    {
      std::ofstream file(folder / "a.tif", std::ios::binary);
      file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    const std::vector<std::string> slides = {folder / "a.tif"};
    check_ways(slides, config_of_small(InputIo::posix), folder);
    const RunResult result = test::run(config_of_small(InputIo::cufile), slides);
    REQUIRE_MESSAGE(result.slides[0].done, result.slides[0].error);
    // Half of the tiles, where their headers end behind 1,024 bytes.
    CHECK((result.slides[0].gpu_fallback_tiles > 0) == (length >= 2000));
  }
}

TEST_CASE("cufile: a batch that takes several reads is described when all are there (long)") {
  const AsItWas before_and_after;
  test::fake_cufile();
  const test::TemporaryFolder folder;
  constexpr int side = 512, across = 5;
  test::Picture noise = test::make_picture(side, side, 3, 1);
  std::mt19937 random(5);
  for (auto& sample : noise.data) sample = static_cast<std::uint8_t>(random());
  const test::Bytes tile = test::encode_jpeg(noise, {.horizontal = 1, .vertical = 1, .quality = 100});
  test::TestTiff tiff;
  tiff.directories.push_back(test::tiled_directory(side * across, side * across, side, side, 3));
  tiff.directories[0].set_short(259, 7).set_short(262, 6);
  tiff.directories[0].tiles.assign(across * across, tile);
  const test::Bytes bytes = tiff.bytes();
  // Reads are cut at 8 MiB.
  REQUIRE(bytes.size() > std::size_t{18} << 20);
  {
    std::ofstream file(folder / "a.tif", std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  Config config = config_of(InputIo::cufile);
  config.analysis.stride = 1024;  // what is read matters here
  config.pipeline.strip_height = 4096;
  config.pipeline.batch_strips = 0;
  config.pipeline.memory_mib = 256;
  config.gpu.memory_fraction = 0.9;
  for (int round = 0; round < 3; ++round) {
    const RunResult result = test::run(config, {folder / "a.tif"});
    REQUIRE_MESSAGE(result.slides[0].done, result.slides[0].error);
    CHECK(result.slides[0].gpu_fallback_tiles == 0);
  }
}

TEST_CASE("cufile: detours and refusals are said in one line (long)") {
  const AsItWas before_and_after;
  test::FakeCufile& fake = test::fake_cufile();
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 5, test::Coding::none, 130);
  const RunResult expected = test::run(config_of_narrow(InputIo::posix), slides);
  const auto said = [&](const Config& config, const std::vector<std::string>& files) {
    const Heard heard = run_and_listen(config, files);
    for (const SlideResult& slide : heard.result.slides) CHECK_MESSAGE(slide.done, slide.error);
    if (files == slides) check_same(heard.result, expected);
    CHECK(heard.lines.size() == 1);
    return heard.lines.empty() ? std::string() : heard.lines[0];
  };
  const std::string before = "input.io = \"cufile\": ";
  const std::string behind = ": tiles are read as with \"posix\"";
  const Config config = config_of_narrow(InputIo::cufile);

  fake.nvidia_fs = 0;
  const std::uint64_t bytes = fake.bytes;
  CHECK(said(config, slides) ==
        before + "this machine has no nvidia-fs: libcufile reads into the host's memory, and copies from there");
  CHECK(fake.bytes > bytes);
  fake.nvidia_fs = 2;

  has_modules = false;
  CHECK(said(config, slides) ==
        before + "this system has no /proc/modules to read, without which libcufile never comes back" + behind);
  has_modules = true;

  fake.driver_error = 5001;
  CHECK(said(config, slides) == before + "libcufile can't be used on this machine (code 5001)" + behind);
  fake.driver_error = 0;

  fake.register_error = 5018;
  std::string line = said(config, slides);
  CHECK(line.starts_with(before + folder.path().string()));
  CHECK(line.ends_with("libcufile refuses the file (code 5018)" + behind));
  fake.register_error = 0;

  Config on_cpu = config;
  on_cpu.decode.device = DecodeDevice::cpu;
  CHECK(said(on_cpu, slides).ends_with(".tif is decoded by the processors" + behind));

  test::CodedSlide slide;
  slide.coding = test::TileCoding::jpeg2000_rgb;
  test::write_coded_slide(folder / "wavelets.tif", slide);
  const Config small = config_of_small(InputIo::cufile);
  CHECK(said(small, {folder / "wavelets.tif"}) ==
        before + std::string(folder / "wavelets.tif") + " is JPEG 2000" + behind);

  // By a detour, and beside a slide that can't be read so: a line each.
  fake.nvidia_fs = 0;
  const Heard both = run_and_listen(small, {folder / "wavelets.tif", slides[0], slides[1]});
  CHECK(both.lines.size() == 2);
  fake.nvidia_fs = 2;

  slide.coding = test::TileCoding::jpeg_420;
  slide.tile_width = slide.tile_height = 128;
  test::write_coded_slide(folder / "blocks.tif", slide);
  Config copies = small;
  copies.operators.run = {"identity"};
  copies.image.format = ImageFormat::ome_tiff;
  copies.image.compression = ImageCompression::copy;
  copies.image.tile = 128;
  copies.output.dir = folder / "copies";
  CHECK(said(copies, {folder / "blocks.tif"}) ==
        before + "tiles of " + std::string(folder / "blocks.tif") + " are copied to its image" + behind);
}

TEST_CASE("cufile: reads that fail or end early are read again, and what can't be read fails its slide alone (long)") {
  const AsItWas before_and_after;
  test::FakeCufile& fake = test::fake_cufile();
  for (const test::Coding coding : {test::Coding::none, test::Coding::jpeg}) {
    const test::TemporaryFolder folder;
    const std::vector<std::string> slides = test::equal_slides(folder, 6, coding, 130);
    const RunResult expected = test::run(config_of_narrow(InputIo::posix), slides);
    for (const int result : {-1, -5044, 0, 100}) {
      for (const int count : {1, 5, 1'000'000}) {
        fake.result = result;
        fake.failing_reads = count;
        check_same(test::run(config_of_narrow(InputIo::cufile), slides), expected);
        fake.failing_reads = 0;
      }
    }
    fake.result = -1;
    fake.failing_reads = 1'000'000;
    const FaultInjection gone = {[](void*, const char* stage, const std::string& path, std::size_t strip) {
                                   if (std::string(stage) != "read" || strip != 1) return;
                                   if (path.find("victim") != std::string::npos) {
                                     test::fail_reads("victim", 1'000'000, EIO);
                                   }
                                 },
                                 nullptr};
    const RunResult result = test::run(config_of_narrow(InputIo::cufile), slides, gone);
    AsItWas::reset();
    REQUIRE(result.slides.size() == slides.size());
    for (std::size_t i = 0; i < slides.size(); ++i) {
      const bool victim = slides[i].find("victim") != std::string::npos;
      CHECK(result.slides[i].done == !victim);
      if (!victim) check_same(result.slides[i], expected.slides[i]);
      if (victim) CHECK(result.slides[i].error.find("Input/output error") != std::string::npos);
    }
    CHECK(fake.files == 0);
  }
}

TEST_CASE("cufile: a file that shrinks while it is read fails its slide alone") {
  const AsItWas before_and_after;
  test::fake_cufile();
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 3);
  const FaultInjection shrink = {
      [](void*, const char* stage, const std::string& path, std::size_t strip) {
        if (std::string(stage) == "read" && strip == 2 && path.find("victim") != std::string::npos) {
          std::filesystem::resize_file(path, 1000);
        }
      },
      nullptr};
  const RunResult result = test::run(config_of(InputIo::cufile), slides, shrink);
  for (const SlideResult& slide : result.slides) {
    const bool victim = slide.path.find("victim") != std::string::npos;
    CHECK(slide.done == !victim);
    if (victim) CHECK(slide.error.find("ends too early") != std::string::npos);
  }
}

#else

TEST_CASE("cufile: a GPU gets what the host would, to the bit") {
  if (test::gpus_or_skip() == 0) return;
  const runtime::cuda::DeviceFileSupport support = runtime::cuda::device_file_support();
  if (!support.there) {
    MESSAGE("SKIPPED: " << support.note);
    return;
  }
  for (const test::Coding coding : {test::Coding::none, test::Coding::jpeg}) {
    const test::TemporaryFolder folder;
    const std::vector<std::string> slides = test::equal_slides(folder, 6, coding);
    const RunResult expected = test::run(config_of(InputIo::posix), slides);
    test::require_done(expected);
    const Heard heard = run_and_listen(config_of(InputIo::cufile), slides);
    check_same(heard.result, expected);
    CHECK(heard.lines.size() <= 1);
    for (const std::string& line : heard.lines) {
      if (line.find("libcufile refuses the file") == std::string::npos) {
        CHECK(line.find("tiles are read as with") == std::string::npos);
        continue;
      }
      // A file system that it doesn't know, or a machine without udev's database, as containers are.
      MESSAGE("SKIPPED: " << line);
      return;
    }
  }
  std::mt19937 random(17);
  for (int round = 0; round < 20; ++round) {
    const test::TemporaryFolder folder;
    const std::vector<std::string> slides = {folder / "a.tif"};
    test::write_coded_slide(slides[0], test::random_coded_slide(random));
    Config config = config_of_small(InputIo::posix);
    config.decode.on_bad_tile = BadTilePolicy::white;
    INFO("round ", round);
    check_ways(slides, config, folder);
  }
}

#endif
