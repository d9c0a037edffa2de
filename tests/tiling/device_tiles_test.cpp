// Windows on a device against the host's: on a GPU, or on one that is made up.
#include "tiling/device_tiles.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slidestream/error.hpp>
#include <thread>
#include <vector>

#include "colour/made_profiles.hpp"
#include "support/coded_slides.hpp"
#include "support/gpu.hpp"
#include "support/made_up_gpus.hpp"
#include "support/temporary_folder.hpp"
#include "support/wide.hpp"
#include "tiling/device_memory.hpp"
#include "tiling/region_reader.hpp"
#ifdef SLIDESTREAM_FAKE_CUDA
#include "support/fake_cuda/fake_cuda.hpp"
#endif

using namespace slidestream;
using namespace slidestream::test;

namespace {

using Pixels = std::vector<std::uint8_t>;

struct Found {
  Pixels pixels;  ///< of a whole batch
  std::vector<std::int64_t> coords;
  std::vector<std::int32_t> slides;
  std::int64_t count = 0;

  bool operator==(const Found&) const = default;
};

std::size_t batch_bytes(const TileStreamOptions& options) {
  return static_cast<std::size_t>(options.windows.size.width * options.windows.size.height * 3 * options.batch);
}

Pixels to_host(const DeviceLease& memory, std::size_t bytes) {
  Pixels pixels(bytes);
  memory.copy_to_host(pixels.data(), bytes);
  return pixels;
}

template <class Stream, class Batch, class Copy>
std::vector<Found> read_all(Stream& stream, const Copy& copy) {
  std::vector<Found> all;
  Batch batch;
  for (;;) {
    const TileStream::State state = stream.next(batch, std::chrono::seconds(60));
    REQUIRE(state != TileStream::State::waiting);
    if (state == TileStream::State::end) return all;
    all.push_back({copy(*batch.pixels), batch.coords, batch.slides, batch.count});
  }
}

std::vector<Found> on_host(const TileStreamOptions& options) {
  TileStream stream(options);
  return read_all<TileStream, TileBatch>(stream, [&](const BatchMemory::Lease& memory) {
    return Pixels(memory.data(), memory.data() + batch_bytes(options));
  });
}

std::vector<Found> on_device(const TileStreamOptions& options) {
  DeviceTileStream stream(options, 0);
  return read_all<DeviceTileStream, DeviceBatch>(
      stream, [&](const DeviceLease& memory) { return to_host(memory, batch_bytes(options)); });
}

/// Made-up GPUs decode on the host, which takes long: with them a part is gone over.
bool is_small() { return made_up_gpus() && !is_wide(); }

/// Whether the made-up GPU vouches for tiles; a real one does.
void decoding(bool on) {
#ifdef SLIDESTREAM_FAKE_CUDA
  fake_decoding(on);
#else
  static_cast<void>(on);
#endif
}

std::filesystem::path sound_slide(const TemporaryFolder& folder, const std::string& name) {
  write_coded_slide(folder / name, {.coding = TileCoding::jpeg_420, .width = 1000, .height = 600});
  return folder / name;
}

TileStreamOptions small_windows(const std::filesystem::path& slide) {
  TileStreamOptions options;
  options.slides = {slide};
  options.windows.size = options.windows.step = {32, 32};
  options.batch = 10;
  return options;
}

}  // namespace

TEST_CASE("windows on a device are the host's, whatever the slides (long)") {
  if (gpus_or_skip() == 0) return;
  const TemporaryFolder folder;
  std::mt19937 random(11);
  const auto in = [&](int low, int high) { return static_cast<int>(low + random_below(random, high - low + 1)); };
  const std::vector<MadeProfile> profiles = made_profiles();
  for (int round = 0; round < (is_small() ? 18 : 40); ++round) {
    CAPTURE(round);
    TileStreamOptions options;
    std::size_t levels = 2;
    for (int i = in(1, 3); i > 0; --i) {
      CodedSlide slide = random_coded_slide(random);
      slide.levels = 2;
      if (in(0, 2) > 0) slide.profile = profiles[static_cast<std::size_t>(in(0, 11)) % profiles.size()].bytes;
      const auto file = folder / (std::to_string(i) + ".svs");
      write_coded_slide(file, slide);
      options.slides.push_back(file);
      levels = std::min(levels, Slide::open(file)->info().levels.size());
    }
    WindowRequest& windows = options.windows;
    windows.size = {in(1, 150), in(1, 150)};
    windows.step = in(0, 2) == 0 ? windows.size : Size{in(10, 200), in(10, 200)};
    windows.level = in(0, static_cast<int>(levels) - 1);
    options.open.mpp = 0.5;
    options.open.to_srgb = in(0, 1) == 0;
    if (in(0, 2) == 0) windows.mpp = 0.5 + 0.01 * in(0, 250);
    windows.edge = in(0, 1) == 0 ? WindowEdge::drop : WindowEdge::pad;
    windows.on_bad_tile = BadTilePolicy::white;
    options.batch = in(1, 20);
    options.layout = in(0, 1) == 0 ? WindowLayout::interleaved : WindowLayout::planar;
    options.fill = static_cast<std::uint8_t>(in(0, 255));
    options.threads = in(1, 3);
    options.prefetch = in(0, 2);
    options.memory_mib = 1;
    if (in(0, 2) == 0) options.shuffle = static_cast<std::uint64_t>(in(0, 1000));
    if (in(0, 2) == 0) {
      // Positions in any order, some of them twice.
      for (const auto& file : options.slides) {
        const Level level = Slide::open(file)->info().levels[0];
        std::vector<WindowCorner>& corners = options.corners.emplace_back();
        for (int i = in(0, 30); i > 0; --i) {
          corners.push_back({in(0, static_cast<int>(level.width) - 1), in(0, static_cast<int>(level.height) - 1)});
          if (in(0, 3) == 0) corners.push_back(corners.front());
        }
      }
    }
    decoding(round % 3 != 0);
    REQUIRE(on_device(options) == on_host(options));
  }
  decoding(false);
}

TEST_CASE("regions on a device are the host's") {
  if (gpus_or_skip() == 0) return;
  const TemporaryFolder folder;
  RegionReader reader;
  std::mt19937 random(6);
  decoding(true);
  for (int round = 0; round < 12; ++round) {
    CodedSlide description = random_coded_slide(random);
    const auto file = folder / "slide.svs";
    write_coded_slide(file, description);
    const auto slide = Slide::open(file);
    DeviceRegionReader there(0);
    for (int i = 0; i < 6; ++i) {
      const std::int64_t x = random_below(random, description.width + 200) - 100;
      const std::int64_t y = random_below(random, description.height + 200) - 100;
      const Size size = {1 + random_below(random, 400), 1 + random_below(random, 400)};
      const Resolution resolution = {0, i % 2 == 0 ? 65536 : 65537 + random_below(random, 300000)};
      Pixels expected(static_cast<std::size_t>(size.width * size.height * 3));
      reader.read(*slide, resolution, x, y, {expected.data(), size.width * 3, size.width, size.height, rgb_format}, 9,
                  BadTilePolicy::white);
      const auto found = there.read(*slide, resolution, x, y, size, 9, BadTilePolicy::white);
      REQUIRE(to_host(*found, expected.size()) == expected);
    }
  }
  decoding(false);
}

TEST_CASE("slides whose colours are converted are decoded on the device, which says nothing of them (long)") {
  if (gpus_or_skip() == 0) return;
  const TemporaryFolder folder;
  decoding(true);
  for (const TileCoding coding : {TileCoding::jpeg_420, TileCoding::jpeg2000_rgb}) {
    for (const MadeProfile& profile : made_profiles()) {
      CAPTURE(profile.name);
      const auto file = folder / "slide.svs";
      // Several rows of tiles in any case, and more than one batch.
      const Size size = is_small() ? Size{180, 150} : Size{500, 300};
      write_coded_slide(file, {.coding = coding,
                               .width = static_cast<int>(size.width),
                               .height = static_cast<int>(size.height),
                               .profile = profile.bytes});
      TileStreamOptions options = small_windows(file);
      const std::vector<Found> as_it_is = on_device(options);
      options.open.to_srgb = true;
      DeviceTileStream stream(options, 0);
      const std::vector<Found> found = read_all<DeviceTileStream, DeviceBatch>(
          stream, [&](const DeviceLease& memory) { return to_host(memory, batch_bytes(options)); });
      CHECK(found == on_host(options));
      CHECK((found == as_it_is) == (profile.name == "sRGB"));
      CHECK(stream.take_notes().empty());
    }
  }
  decoding(false);
}

TEST_CASE(
    "windows of pixels that stand for many are made in parts where they take more than the room for them (long)") {
  if (gpus_or_skip() == 0) return;
  const TemporaryFolder folder;
  decoding(true);
  // At least as wide as there is room for at a time.
  const Size size = is_small() ? Size{2200, 900} : Size{3600, 2600};
  write_coded_slide(
      folder / "wide.svs",
      {.coding = TileCoding::jpeg_420, .width = static_cast<int>(size.width), .height = static_cast<int>(size.height)});
  for (const double factor : {1.7, 40.25, 256.0}) {
    CAPTURE(factor);
    TileStreamOptions options;
    options.slides = {folder / "wide.svs"};
    options.open.mpp = 0.5;
    options.windows.mpp = 0.5 * factor;
    options.windows.size = factor < 2 ? Size{3000, 2000} : Size{100, 70};
    options.windows.step = options.windows.size;
    options.windows.edge = WindowEdge::pad;
    options.batch = 2;
    options.threads = 1;
    options.memory_mib = 1;
    REQUIRE(on_device(options) == on_host(options));
    // No window is whole: far outside there is nothing but what is filled in.
    DeviceRegionReader reader(0);
    const auto slide = Slide::open(folder / "wide.svs");
    const Resolution resolution = {0, static_cast<std::int64_t>(factor * 65536)};
    const Pixels found = to_host(*reader.read(*slide, resolution, -9000, 90000, {13, 7}, 8, BadTilePolicy::fail), 273);
    CHECK(found == Pixels(273, 8));
  }
  decoding(false);
}

TEST_CASE("a bad tile fails and is named, and what a device doesn't decode is said once") {
  if (gpus_or_skip() == 0) return;
  const TemporaryFolder folder;
  decoding(true);
  write_coded_slide(folder / "bad.svs", {.coding = TileCoding::jpeg_420, .width = 400, .height = 400, .bad_tiles = 9});
  TileStreamOptions options = small_windows(folder / "bad.svs");
  CHECK_THROWS_WITH_AS(on_device(options), doctest::Contains("bad.svs: level 0 tile "), SlideError);
  DeviceRegionReader reader(0);
  CHECK_THROWS_WITH_AS(reader.read(*Slide::open(folder / "bad.svs"), {}, 0, 0, {400, 400}, 0, BadTilePolicy::fail),
                       doctest::Contains("bad.svs: level 0 tile "), SlideError);
  write_coded_slide(folder / "plain.svs", {.coding = TileCoding::rgb, .width = 400, .height = 400});
  options = small_windows(folder / "plain.svs");
  options.slides.push_back(sound_slide(folder, "jpeg.svs"));
  DeviceTileStream stream(options, 0);
  DeviceBatch batch;
  while (stream.next(batch, std::chrono::seconds(60)) == TileStream::State::batch) continue;
  const std::vector<std::string> notes = stream.take_notes();
  REQUIRE(notes.size() == 1);
  CHECK(notes[0] == (folder / "plain.svs").string() +
                        ": the GPU's decoder doesn't take its tiles (none); the CPU decodes them, and their pixels are "
                        "copied to the GPU");
  CHECK(stream.take_notes().empty());
  decoding(false);
}

TEST_CASE("memory on a device outlives its stream, and isn't used again while somebody has it") {
  if (gpus_or_skip() == 0) return;
  const TemporaryFolder folder;
  decoding(true);
  const TileStreamOptions options = small_windows(sound_slide(folder, "slide.svs"));
  const std::vector<Found> expected = on_host(options);
  std::vector<std::shared_ptr<DeviceLease>> kept;
  {
    DeviceTileStream stream(options, 0);
    DeviceBatch batch;
    while (stream.next(batch, std::chrono::seconds(60)) == TileStream::State::batch) kept.push_back(batch.pixels);
  }
  on_device(options);
  REQUIRE(kept.size() == expected.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    REQUIRE(to_host(*kept[i], batch_bytes(options)) == expected[i].pixels);
  }
  // A loop that is left.
  DeviceTileStream stream(options, 0);
  DeviceBatch batch;
  REQUIRE(stream.next(batch, std::chrono::seconds(60)) == TileStream::State::batch);
  stream.close();
  CHECK(stream.next(batch, std::chrono::seconds(60)) == TileStream::State::end);
  CHECK(to_host(*batch.pixels, batch_bytes(options)) == expected[0].pixels);
  decoding(false);
}

TEST_CASE("who has memory next waits for those who had it, on every stream") {
  if (gpus_or_skip() == 0) return;
#ifdef SLIDESTREAM_FAKE_CUDA
  const auto memory = std::make_shared<DeviceBatchMemory>(0, 4096, 2);
  const runtime::cuda::Stream named;
  const runtime::cuda::Stream writer;
  std::vector<std::string> done;
  for (const cudaStream_t user : {named.get(), cudaStreamLegacy}) {
    done.clear();
    auto lease = memory->take();
    std::uint8_t* const data = lease->data();
    if (user == named.get()) lease->used_on(user);
    REQUIRE(fake_launch(user, [&] {
              std::this_thread::sleep_for(std::chrono::milliseconds(20));
              done.emplace_back("reads");
            }) == cudaSuccess);
    lease->hand_back();
    const auto next = memory->take();
    REQUIRE(next->data() == data);
    next->wait_for_former_users(writer.get());
    REQUIRE(fake_launch(writer.get(), [&] { done.emplace_back("writes"); }) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(writer.get()) == cudaSuccess);
    CHECK(done == std::vector<std::string>{"reads", "writes"});
  }
#endif
}

TEST_CASE("devices that aren't there are refused, and children of a fork have none") {
  if (gpus_or_skip() == 0) return;
  CHECK(usable_device({}) == 0);
  CHECK(usable_device(0) == 0);
  CHECK_THROWS_WITH_AS(usable_device(99), doctest::Contains("there is no GPU 99; there "), CudaError);
#if defined(SLIDESTREAM_SANITIZED)
  MESSAGE("skipped: AddressSanitizer's memory may stay locked in a child, as a thread of its parent had it");
#else
  const TemporaryFolder folder;
  const TileStreamOptions options = small_windows(sound_slide(folder, "slide.svs"));
  auto stream = std::make_unique<DeviceTileStream>(options, 0);
  DeviceBatch batch;
  REQUIRE(stream->next(batch, std::chrono::seconds(60)) == TileStream::State::batch);
  const pid_t child = fork();
  if (child == 0) {
    int wrong = 0;
    try {
      usable_device(0);
      ++wrong;
    } catch (const CudaError&) {
      wrong += 0;
    }
    try {
      stream->next(batch, std::chrono::milliseconds(1));
      ++wrong;
    } catch (const Error&) {
      wrong += 0;
    }
    stream.reset();
    batch.pixels.reset();
    ::_exit(wrong);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(stream->next(batch, std::chrono::seconds(60)) == TileStream::State::batch);
#endif
}

#ifdef SLIDESTREAM_FAKE_CUDA
TEST_CASE("every call that fails ends the loop with CudaError, and leaves nothing under way") {
  const TemporaryFolder folder;
  decoding(true);
  const TileStreamOptions options = [&] {
    TileStreamOptions made = small_windows(sound_slide(folder, "slide.svs"));
    made.threads = 2;
    made.memory_mib = 1;
    return made;
  }();
  const std::size_t pinned = fake_pinned();
  for (const FakeFailure failure : {FakeFailure::once, FakeFailure::for_ever}) {
    bool reached = true;
    const auto step = [](int number) { return !is_wide() ? 1 + number / 4 : number < 60 ? 1 : 17; };
    for (int number = 0; reached && number < 400; number += step(number)) {
      fake_fail_call(number, failure);
      try {
        on_device(options);
      } catch (const CudaError&) {
        reached = true;
      }
      reached = fake_recover();
    }
  }
  CHECK(fake_pinned() == pinned);
  CHECK(on_device(options) == on_host(options));
  decoding(false);
}
#endif
