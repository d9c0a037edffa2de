// What decoding takes is bounded over all threads.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "slide/codestream.hpp"
#include "slide/decode_memory.hpp"
#include "slide/test_dicom.hpp"
#include "slide/test_images.hpp"
#include "support/test_data.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

/// One tile, with these bytes.
TestTiff tiff_of(std::uint16_t compression, const Bytes& tile, std::uint32_t side) {
  TestTiff tiff;
  tiff.directories = {tiled_directory(side, side, side, side, 1)};
  tiff.directories[0].set_short(259, compression);
  tiff.directories[0].tiles = {tile};
  return tiff;
}

std::string error_of_reading(const Slide& slide) {
  try {
    read_level(slide);
    return "";
  } catch (const SlideError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("what a run must have for decoding is told in whole MiB, and is enough") {
  const DecodeMemory of_run(mib);
  CHECK(of_run.advice(1) == "raise pipeline.memory_mib to 1");
  CHECK(of_run.advice(4 * mib) == "raise pipeline.memory_mib to 16");
  CHECK(of_run.advice(4 * mib + 1) == "raise pipeline.memory_mib to 17");
  CHECK(DecodeMemory(mib, "decode_mib", 1).advice(4 * mib + 1) == "raise decode_mib to 5");
}

TEST_CASE("a forked child doesn't wait for what threads of its parent have") {
  DecodeMemory memory(10);
  const DecodeMemory::Lease all = memory.take(10, {});
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    bool served = true;
    for (int i = 0; i < 2; ++i) {
      const DecodeMemory::Lease input = memory.take_input(5, {});
      const DecodeMemory::Lease lease = memory.take(10, {});
      served = served && input && lease && memory.input_held_here() == 0;
    }
    ::_exit(served ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("leases are never more than the memory, and all are served") {
  DecodeMemory memory(10);
  std::atomic<std::uint64_t> taken{0}, most{0}, served{0};
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t i = 0; i < 200; ++i) {
        const std::uint64_t bytes = 1 + (i * 7 + thread) % 10;
        const DecodeMemory::Lease lease = memory.take(bytes, {});
        CHECK(static_cast<bool>(lease));
        const std::uint64_t now = taken += bytes;
        for (std::uint64_t before = most; now > before && !most.compare_exchange_weak(before, now);) {
        }
        ++served;
        taken -= bytes;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(served == 1600);
  CHECK(most <= 10);
  CHECK(most > 5);
}

TEST_CASE("whoever waits can give up, and those behind have their turn") {
  DecodeMemory memory(10);
  DecodeMemory::Lease all = memory.take(10, {});
  std::atomic<bool> give_up{false};
  std::atomic<int> has{-1};
  std::thread impatient([&] { has = static_cast<bool>(memory.take(5, [&] { return give_up.load(); })) ? 1 : 0; });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(has == -1);
  give_up = true;
  impatient.join();
  CHECK(has == 0);
  all = {};
  CHECK(static_cast<bool>(memory.take(10, {})));
}

TEST_CASE("who holds compressed bytes takes memory to decode them before all who wait") {
  DecodeMemory memory(10);
  DecodeMemory::Lease input = memory.take_input(6, {});
  CHECK(memory.input_held_here() == 6);
  std::atomic<int> asked{0};
  const auto count = [&asked] { return ++asked, false; };
  std::atomic<int> served{0};
  std::thread all([&] { served += static_cast<bool>(memory.take(10, count)) ? 1 : 0; });
  std::thread another([&] {
    CHECK(memory.input_held_here() == 0);
    served += static_cast<bool>(memory.take_input(1, count)) ? 1 : 0;
  });
  while (asked < 4) std::this_thread::yield();
  // Without its turn it would wait for the thread that waits for it.
  int questions = 0;
  CHECK(static_cast<bool>(memory.take(4, [&questions] { return ++questions > 100; })));
  CHECK(served == 0);
  input = {};
  all.join();
  another.join();
  CHECK(served == 2);
  CHECK(memory.input_held_here() == 0);
}

TEST_CASE("large compressed bytes count, and once more where a frame may have items to join") {
  const TemporaryFolder folder;
  DicomFile file = make_dicom(make_picture(512, 512, 1, 1), {.codec = DicomOptions::Codec::jpeg_grey, .tile = 512});
  // Behind the image's end.
  file.frames.at(0).resize(std::size_t{4} << 20);
  const auto error = [&](int fragments, std::uint64_t mibs) {
    file.fragments = fragments;
    OpenOptions options;
    options.decode_memory = std::make_shared<DecodeMemory>(mibs * mib);
    return error_of_reading(*Slide::open(folder.write("slide.dcm", file.encode()), options));
  };
  // Only what was read tells how many items there are.
  for (const int fragments : {1, 2}) {
    CHECK(error(fragments, 8).find("level 0 tile 0 takes 9 MiB to decode, and decoding may take 8 MiB") !=
          std::string::npos);
    CHECK(error(fragments, 9) == "");
  }
}

TEST_CASE("a tile that takes more than all of the memory fails with its name") {
  const TemporaryFolder folder;
  OpenOptions options;
  options.decode_memory = std::make_shared<DecodeMemory>(mib);
  // Deflate's smallest stream: it would fail later.
  const TestTiff tiff = tiff_of(8, Bytes(100), 2048);
  const auto slide = Slide::open(folder.write("slide.tif", tiff.bytes()), options);
  CHECK(decoding_bytes(slide->coded_level(0), coding_of(*slide, 0)) == 5 * mib);
  CHECK(error_of_reading(*slide).find("level 0 tile 0 takes 5 MiB to decode, and decoding may take 1 MiB; raise "
                                      "pipeline.memory_mib") != std::string::npos);
  options.decode_memory = std::make_shared<DecodeMemory>(5 * mib);
  const auto other = Slide::open(folder.write("slide.tif", tiff.bytes()), options);
  CHECK(error_of_reading(*other).find("libtiff") != std::string::npos);
}

TEST_CASE("JPEG 2000: segments of code-blocks count, as many as the layers and the data may have") {
  const auto work = [](int style, int layers, std::uint16_t said) {
    Jpeg2000Options coded;
    coded.irreversible = false;
    coded.layers = layers;
    coded.block_style = style;
    Bytes stream = encode_jpeg2000(make_picture(256, 256, 1, 1), coded);
    const Bytes cod = {std::byte{0xFF}, std::byte{0x52}};
    const auto at = std::search(stream.begin(), stream.end(), cod.begin(), cod.end());
    REQUIRE(stream.end() - at > 8);
    at[6] = static_cast<std::byte>(said >> 8);
    at[7] = static_cast<std::byte>(said & 255);
    return std::pair(parse_codestream(stream).work_bytes, std::uint64_t{stream.size()});
  };
  const auto plain = work(0, 1, 1);
  CHECK(plain.first < mib / 4);
  CHECK(work(0, 1, 20).first < mib / 2);
  for (const int style : {1, 4}) {  // bypass, and termination of each pass
    const auto many = work(style, 1, 900);
    const std::uint64_t by_data = many.second * 8 / 3 * 64;
    CHECK(many.first > by_data);
    CHECK(many.first < by_data + mib);
    CHECK(work(style, 1, 1).first > plain.first + 16 * 150 * 64);
  }
}

TEST_CASE("JPEG 2000: markers, and components of each codestream tile count") {
  Jpeg2000Options coded;
  coded.tile_size = 16;
  const auto work = [&](int samples) {
    return parse_codestream(encode_jpeg2000(make_picture(256, 256, samples, 1), coded)).work_bytes;
  };
  CHECK(work(3) > work(1) + 256 * 2 * 1080);
  Bytes stream = encode_jpeg2000(make_picture(64, 64, 1, 1));
  const std::uint64_t before = parse_codestream(stream).work_bytes;
  const Bytes cod = {std::byte{0xFF}, std::byte{0x52}};
  const auto at = std::search(stream.begin(), stream.end(), cod.begin(), cod.end());
  const Bytes comment = {std::byte{0xFF}, std::byte{0x64}, std::byte{0}, std::byte{2}};
  Bytes many(stream.begin(), at);
  for (int i = 0; i < 1000; ++i) many.insert(many.end(), comment.begin(), comment.end());
  many.insert(many.end(), at, stream.end());
  CHECK(parse_codestream(many).work_bytes >= before + 1000 * 24);
}

TEST_CASE("samples that lie in the file as they are count as they are read") {
  const TemporaryFolder folder;
  const auto path = folder.write("slide.tif", tiff_of(1, Bytes(4 * mib), 2048).bytes());
  OpenOptions options;
  options.decode_memory = std::make_shared<DecodeMemory>(2 * mib);
  const auto slide = Slide::open(path, options);
  CHECK(error_of_reading(*slide).find("level 0 tile 0 takes 4 MiB to decode, and decoding may take 2 MiB; raise "
                                      "pipeline.memory_mib") != std::string::npos);
  // The rows that are asked for don't change what is read.
  std::vector<std::uint8_t> row(3 * 2048);
  CHECK_THROWS_AS(read_rgb(*slide, 0, 0, 0, {row.data(), 3 * 2048, 2048, 1, rgb_format}, BadTilePolicy::white),
                  SlideError);
  options.decode_memory = std::make_shared<DecodeMemory>(4 * mib);
  const auto other = Slide::open(path, options);
  CHECK(error_of_reading(*other).empty());
  // Given back.
  CHECK(error_of_reading(*other).empty());
  CHECK(static_cast<bool>(options.decode_memory->take(4 * mib, {})));
}

TEST_CASE("small tiles without compression are read into what a thread keeps") {
  const TemporaryFolder folder;
  OpenOptions options;
  options.decode_memory = std::make_shared<DecodeMemory>(1);
  const auto slide = Slide::open(folder.write("slide.tif", tiff_of(1, Bytes(mib), 1024).bytes()), options);
  CHECK(error_of_reading(*slide).empty());
}

TEST_CASE("tables of an open slide are counted") {
  TestTiff tiff;
  tiff.directories = {tiled_directory(640, 640, 64, 64, 1)};
  tiff.directories[0].tiles.assign(100, Bytes());
  const TemporaryFolder folder;
  CHECK(table_bytes(*Slide::open(folder.write("slide.tif", tiff.bytes()))) == 1600);
}
