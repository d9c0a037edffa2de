#include "runtime/ring.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "../support/temporary_folder.hpp"

using slidestream::runtime::FileRead;
using slidestream::runtime::Ring;

namespace {

/// Why there is no ring, as in many containers; nothing where there is one.
std::optional<std::string> no_ring() {
  try {
    const Ring ring;
    return std::nullopt;
  } catch (const std::system_error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("more reads than a ring has at a time each bring their own bytes, or their own error") {
  if (const auto reason = no_ring()) {
    MESSAGE("skipped: no io_uring: " << *reason);
    return;
  }
  const slidestream::test::TemporaryFolder folder;
  const std::string path = folder.path() / "bytes";
  constexpr std::size_t count = 2 * Ring::most_reads + 7;
  {
    std::ofstream file(path, std::ios::binary);
    for (std::size_t i = 0; i < count; ++i) file.put(static_cast<char>(i));
  }
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(descriptor >= 0);
  // From the last byte to the first; then one that begins at the file's end, and one of a file that isn't open.
  std::vector<std::byte> bytes(count + 2);
  std::vector<FileRead> reads(count + 2);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    reads[i].descriptor = descriptor;
    reads[i].offset = i < count ? count - 1 - i : count;
    reads[i].to = std::span(bytes).subspan(i, 1);
  }
  reads.back().descriptor = -1;
  Ring().read(reads);
  close(descriptor);
  for (std::size_t i = 0; i < count; ++i) {
    CHECK(reads[i].result == 1);
    CHECK(bytes[i] == static_cast<std::byte>(count - 1 - i));
  }
  CHECK(reads[count].result == 0);
  CHECK(reads[count + 1].result == -EBADF);
}

// Sanitizers: the second thread's ring lies where the first one's was, and nothing else orders the two.
TEST_CASE("a ring may be made where another thread's was") {
  if (const auto reason = no_ring()) {
    MESSAGE("skipped: no io_uring: " << *reason);
    return;
  }
  const int descriptor = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  REQUIRE(descriptor >= 0);
  const auto reads_one_byte = [descriptor] {
    std::array<std::byte, 1> byte{};
    FileRead read{.descriptor = descriptor, .offset = 1, .to = byte};
    Ring().read({&read, 1});
    return read.result == 1 && byte[0] == std::byte{'E'};
  };
  std::atomic<bool> ended = false;
  bool first = false;
  bool second = false;
  std::thread earlier([&] {
    first = reads_one_byte();
    ended.store(true, std::memory_order_relaxed);
  });
  std::thread later([&] {
    while (!ended.load(std::memory_order_relaxed)) std::this_thread::yield();
    second = reads_one_byte();
  });
  earlier.join();
  later.join();
  close(descriptor);
  CHECK(first);
  CHECK(second);
}
