// Tiles come into the slots in several ways, and nobody behind sees which it was.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <slidestream/slide.hpp>
#include <span>
#include <string>
#include <vector>

#include "planning/tile_ranges.hpp"
#include "runtime/page_cache.hpp"
#include "slide/level_coding.hpp"
#include "stages/run/run_context.hpp"
#include "stages/slot_reads.hpp"
#include "support/failing_reads.hpp"
#include "support/pipeline_runs.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;
using test::check_same;
using test::config_for;
using test::Heard;
using test::run_and_listen;

namespace {

constexpr InputIo ways[] = {InputIo::posix, InputIo::uring, InputIo::direct, InputIo::cufile, InputIo::automatic};

Config config_of_strips(Backend backend, InputIo io = InputIo::posix) {
  Config config = config_for(backend);
  config.input.io = io;
  config.input.retries = 0;
  config.pipeline.strip_height = 128;
  config.pipeline.batch_strips = 1;
  return config;
}

/// Nothing of what a test planned stays planned.
struct NothingPlanned {
  NothingPlanned() { test::fail_nothing(); }
  ~NothingPlanned() { test::fail_nothing(); }
};

}  // namespace

TEST_CASE("however tiles are read, results are the same to the bit (long)") {
  const NothingPlanned before_and_after;
  for (const test::Coding coding : {test::Coding::none, test::Coding::lzw, test::Coding::jpeg}) {
    const test::TemporaryFolder folder;
    const std::vector<std::string> slides = test::equal_slides(folder, 4, coding);
    for (const Backend backend : test::backends()) {
      const RunResult expected = test::run(config_of_strips(backend), slides);
      test::require_done(expected);
      for (const InputIo io : ways) {
        for (const int memory_mib : {4, 32}) {
          Config config = config_of_strips(backend, io);
          config.pipeline.memory_mib = memory_mib;
          config.pipeline.batch_strips = 0;
          INFO("way ", static_cast<int>(io), ", ", memory_mib, " MiB");
          for (const std::string& slide : slides) runtime::drop_from_cache(slide);
          check_same(test::run(config, slides), expected);
        }
      }
    }
  }
}

TEST_CASE("files in memory, which have no storage to be read from directly (long)") {
  if (!std::filesystem::is_directory("/dev/shm") || ::access("/dev/shm", W_OK) != 0) {
    MESSAGE("SKIPPED: there is no /dev/shm, or nothing may be written there");
    return;
  }
  const test::TemporaryFolder folder("/dev/shm");
  const std::vector<std::string> slides = test::equal_slides(folder, 3, test::Coding::jpeg);
  for (const Backend backend : test::backends()) {
    const RunResult expected = test::run(config_of_strips(backend), slides);
    for (const InputIo io : ways) {
      const Heard heard = run_and_listen(config_of_strips(backend, io), slides);
      check_same(heard.result, expected);
      CHECK(heard.lines.size() <= 1);
    }
  }
}

TEST_CASE("what the system refuses is said in one line, and tiles are read all the same (long)") {
  const NothingPlanned before_and_after;
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 6, test::Coding::jpeg);
  for (const Backend backend : test::backends()) {
    const RunResult expected = test::run(config_of_strips(backend), slides);
    test::refuse_rings(true);
    Heard heard = run_and_listen(config_of_strips(backend, InputIo::uring), slides);
    check_same(heard.result, expected);
    REQUIRE(heard.lines.size() == 1);
    CHECK(heard.lines[0] ==
          "input.io = \"uring\": the kernel refuses io_uring (Operation not permitted): tiles are read as with "
          "\"posix\"");
    for (const InputIo io : {InputIo::direct, InputIo::automatic}) {
      heard = run_and_listen(config_of_strips(backend, io), slides);
      check_same(heard.result, expected);
      CHECK(heard.lines.empty());
    }
    test::refuse_rings(false);
    test::refuse_direct(true);
    heard = run_and_listen(config_of_strips(backend, InputIo::direct), slides);
    check_same(heard.result, expected);
    REQUIRE(heard.lines.size() == 1);
    CHECK(heard.lines[0].starts_with("input.io = \"direct\": the file system of "));
    CHECK(heard.lines[0].find('\n') == std::string::npos);
    test::refuse_direct(false);
  }
}

TEST_CASE("reads that fail or end early are read again, and what can't be read fails its slide alone (long)") {
  const NothingPlanned before_and_after;
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 6, test::Coding::none);
  for (const Backend backend : test::backends()) {
    const RunResult expected = test::run(config_of_strips(backend), slides);
    for (const InputIo io : {InputIo::uring, InputIo::direct}) {
      INFO("way ", static_cast<int>(io));
      for (const int result : {-EIO, -EINVAL, -EAGAIN, 0, 100}) {
        test::change_ring_reads(5, result);
        check_same(test::run(config_of_strips(backend, io), slides), expected);
      }
      // The storage of one slide is gone for good: neither way reads it.
      test::change_ring_reads(1'000'000, -EIO);
      const FaultInjection gone = {
          [](void*, const char* stage, const std::string& path, std::size_t strip) {
            if (std::string(stage) != "read" || strip != 1 || path.find("victim") == std::string::npos) return;
            test::fail_reads("victim", 1'000'000, EIO);
          },
          nullptr};
      const RunResult result = test::run(config_of_strips(backend, io), slides, gone);
      test::fail_nothing();
      REQUIRE(result.slides.size() == slides.size());
      for (std::size_t i = 0; i < slides.size(); ++i) {
        const SlideResult& slide = result.slides[i];
        const bool victim = slide.path.find("victim") != std::string::npos;
        CHECK(slide.done == !victim);
        if (!victim) check_same(slide, expected.slides[i]);
        if (victim) CHECK(slide.error.find("Input/output error") != std::string::npos);
        CHECK(slide.error.find('\n') == std::string::npos);
      }
    }
  }
}

TEST_CASE("a file that shrinks or vanishes while it is read (long)") {
  for (const Backend backend : test::backends()) {
    for (const InputIo io : ways) {
      INFO("way ", static_cast<int>(io));
      const test::TemporaryFolder folder;
      const std::vector<std::string> slides = test::equal_slides(folder, 3, test::Coding::none);
      const RunResult expected = test::run(config_of_strips(backend), slides);
      // An open file stays, whatever its name becomes.
      const FaultInjection vanish = {[](void*, const char* stage, const std::string& path, std::size_t strip) {
                                       if (std::string(stage) == "read" && strip == 1) std::filesystem::remove(path);
                                     },
                                     nullptr};
      check_same(test::run(config_of_strips(backend, io), slides, vanish), expected);

      const std::vector<std::string> others = test::equal_slides(folder, 3, test::Coding::none);
      const FaultInjection shrink = {
          [](void*, const char* stage, const std::string& path, std::size_t strip) {
            if (std::string(stage) == "read" && strip == 2 && path.find("victim") != std::string::npos) {
              std::filesystem::resize_file(path, 1000);
            }
          },
          nullptr};
      const RunResult result = test::run(config_of_strips(backend, io), others, shrink);
      for (const SlideResult& slide : result.slides) {
        const bool victim = slide.path.find("victim") != std::string::npos;
        CHECK(slide.done == !victim);
        if (victim) CHECK(slide.error.find("ends too early") != std::string::npos);
      }
    }
  }
}

TEST_CASE("long batches: every byte is where its read says, and none beside it is touched") {
  if (test::left_to_release()) return;
  const NothingPlanned before_and_after;
  const test::TemporaryFolder folder;
  test::Image image = test::textured_image(300, 200, 3);
  test::write_test_slide(folder / "long.tif", image, {});
  // Bytes behind the slide's own, as many as don't fit a processor's caches, and an end in the middle of a block.
  constexpr std::size_t more = (std::size_t{34} << 20) + 777;
  std::vector<std::byte> bytes(more);
  std::uint32_t state = 1;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((state = state * 1664525U + 1013904223U) >> 24U);
  {
    std::ofstream file(folder / "long.tif", std::ios::binary | std::ios::app);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  const std::shared_ptr<const Slide> slide = Slide::open(folder / "long.tif");
  const std::uint64_t first = slide->info().file_size - more;
  runtime::SlotPool pool(1, (std::size_t{40} << 20));
  for (const InputIo io : ways) {
    {
      Config config;
      config.input.io = io;
      RunContext context(config, 2, {});
      SlotReads reads(context);
      Batch batch;
      batch.slot = *pool.try_acquire();
      batch.slide = std::make_shared<SlideRun>();
      batch.slide->slide = slide;
      batch.slide->io = reads.choose(*slide);
      INFO("way ", static_cast<int>(batch.slide->io));
      const std::span<std::byte> slot = batch.slot.memory();
      std::ranges::fill(slot, std::byte{0xa5});
      // A long read, a short one, one of no block's whole, and the rest to the end of the file.
      std::size_t place = 4096 + static_cast<std::size_t>(first % 4096);
      std::vector<ReadChunk> whole;
      std::uint64_t at = first;
      for (const std::size_t length : {std::size_t{20} << 20, std::size_t{5000}, std::size_t{3}, std::size_t{0}}) {
        const std::size_t wanted = length > 0 ? length : static_cast<std::size_t>(slide->info().file_size - at);
        const bool blocks = SlotReads::block(batch.slide->io) > 1 && length != 3;
        if (blocks) place = (place + 4095) / 4096 * 4096 + static_cast<std::size_t>(at % 4096);
        whole.push_back({at, place, wanted, blocks});
        at += wanted;
        place += wanted + 3 * 4096;
      }
      batch.chunks = whole;
      batch.compressed_end = place;
      CHECK(reads.share_out(batch) > 0);
      // No block is two threads'.
      std::size_t cut = 0;
      for (std::size_t i = 0; i + 1 < batch.chunks.size(); ++i) {
        const std::uint64_t end = batch.chunks[i].file_offset + batch.chunks[i].length;
        const bool inside = end == batch.chunks[i + 1].file_offset &&
                            batch.chunks[i].slot_offset + batch.chunks[i].length == batch.chunks[i + 1].slot_offset;
        if (!inside) continue;
        ++cut;
        if (batch.chunks[i].whole_blocks) CHECK(end % File::direct_block == 0);
      }
      CHECK(cut >= 3);
      for (SlotReads::Turn turn = reads.take(batch); !turn.empty(); turn = reads.take(batch)) {
        std::size_t failed = 0;
        reads.read(batch, turn, failed);
      }
      for (const ReadChunk& chunk : whole) {
        const std::span<std::byte> got = slot.subspan(chunk.slot_offset, chunk.length);
        CHECK(std::memcmp(got.data(), bytes.data() + (chunk.file_offset - first), chunk.length) == 0);
        // Beside it only the rest of its blocks may be written.
        const std::size_t block = chunk.whole_blocks ? File::direct_block : 1;
        const std::size_t begin = chunk.slot_offset / block * block;
        const std::size_t end = (chunk.slot_offset + chunk.length + block - 1) / block * block;
        CHECK(slot[begin - 1] == std::byte{0xa5});
        CHECK(slot[end] == std::byte{0xa5});
      }
    }
  }
}

TEST_CASE("auto chooses by what the page cache holds, and by how much there is to read") {
  const NothingPlanned before_and_after;
  const test::TemporaryFolder folder;
  test::Image image = test::textured_image(1500, 1500, 4);
  test::write_test_slide(folder / "a.tif", image, {});
  const std::string path = (folder / "a.tif").string();
  const std::shared_ptr<const Slide> slide = Slide::open(path);
  Config config;
  RunContext few(config, 2, {});
  few.slides = 2;
  RunContext many(config, 2, {});
  many.slides = std::size_t{1} << 50;
  if (runtime::cached_share({path}).value_or(0.0) < 0.5) {
    MESSAGE("SKIPPED: the system doesn't tell what is in the page cache");
    return;
  }
  CHECK(SlotReads(few).choose(*slide) == InputIo::posix);
  CHECK(SlotReads(many).choose(*slide) == InputIo::posix);
  runtime::drop_from_cache(path);
  if (runtime::cached_share({path}).value_or(1.0) >= 0.5) {
    MESSAGE("SKIPPED: the system doesn't forget what it caches");
    return;
  }
  const InputIo of_few = SlotReads(few).choose(*slide);
  CHECK((of_few == InputIo::uring || of_few == InputIo::posix));
  const bool has_direct = files_of(*slide)[0].direct_descriptor() >= 0;
  CHECK(SlotReads(many).choose(*slide) == (has_direct ? InputIo::direct : of_few));
  test::refuse_rings(true);
  CHECK(SlotReads(few).choose(*slide) == InputIo::posix);
  CHECK(SlotReads(many).choose(*slide) == (has_direct ? InputIo::direct : InputIo::posix));
}

TEST_CASE("reads of whole blocks have the slot's blocks for themselves") {
  const test::TemporaryFolder folder;
  // Tiles that lie apart: gaps of several kinds between reads.
  test::Image image = test::textured_image(900, 700, 5);
  test::write_test_slide(folder / "a.tif", image, {.coding = test::Coding::lzw});
  const auto slide = Slide::open(folder / "a.tif");
  const Level& level = slide->info().levels[0];
  constexpr std::size_t block = File::direct_block;
  const TileRanges ranges{*slide, 0};
  for (const std::size_t every : {1, 2, 3, 7}) {
    for (const std::size_t more : {std::size_t{0}, 3 * block, 5 * block, std::size_t{1} << 20}) {
      for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, std::size_t{100}, block + 1}) {
        std::vector<BatchTile> tiles;
        std::size_t room = more;
        for (std::int64_t i = 0; i < level.columns * level.rows; i += static_cast<std::int64_t>(every)) {
          tiles.emplace_back().index = i;
          room += static_cast<std::size_t>(slide->tile(0, i).length) + 128;
        }
        std::vector<ReadChunk> chunks;
        plan_reads(chunks, tiles, ranges, offset, room, block);
        std::size_t last_end = offset;
        std::size_t of_blocks = 0;
        for (const ReadChunk& chunk : chunks) {
          std::size_t begin = chunk.slot_offset;
          std::size_t end = chunk.slot_offset + chunk.length;
          if (chunk.whole_blocks) {
            ++of_blocks;
            CHECK(chunk.slot_offset % block == chunk.file_offset % block);
            begin = begin / block * block;
            end = (end + block - 1) / block * block;
          }
          CHECK(begin >= last_end);
          CHECK(end <= offset + room);
          last_end = end;
        }
        CHECK((more < 3 * block || of_blocks > 0));
        if (more == std::size_t{1} << 20) CHECK(of_blocks == chunks.size());
        for (const BatchTile& tile : tiles) CHECK(tile.offset + tile.length <= last_end);
      }
    }
  }
}
