#include "volume/gzip_writer.hpp"

#include <doctest/doctest.h>
#include <oneapi/tbb/task_arena.h>
#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "output/atomic_file.hpp"
#include "support/temporary_folder.hpp"

namespace slidestream::volume {
namespace {

using test::TemporaryFolder;

constexpr std::size_t mib = std::size_t{1} << 20;

std::filesystem::path written(const TemporaryFolder& folder, std::span<const std::byte> head,
                              std::span<const std::byte> body) {
  std::filesystem::path path = folder.path() / "a.gz";
  std::filesystem::remove(path);
  AtomicFile file(path);
  write_gzip(file, "ours", head, body);
  file.commit();
  return path;
}

/// As zlib has it, which compares the checksum and the length.
std::vector<std::byte> unpacked(const std::filesystem::path& path, std::size_t most) {
  std::vector<std::byte> bytes(most);
  gzFile file = gzopen(path.c_str(), "rb");
  REQUIRE(file != nullptr);
  const int count = gzread(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  CHECK(gzdirect(file) == 0);
  CHECK(gzeof(file) != 0);
  CHECK(gzclose(file) == Z_OK);
  REQUIRE(count >= 0);
  bytes.resize(static_cast<std::size_t>(count));
  return bytes;
}

/// Some of it repeats itself from one piece to the next.
std::vector<std::byte> some_bytes(std::size_t count) {
  std::mt19937 random(5);
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = i >= 3000 && i / 1000 % 3 != 0 ? bytes[i - 3000] : static_cast<std::byte>(random() & 0xFF);
  }
  return bytes;
}

TEST_CASE("zlib has the bytes of a gzip file of any number of pieces") {
  const TemporaryFolder folder;
  // More pieces than are in memory at a time. Those in the middle are quick to compress, and each has its number.
  std::vector<std::byte> all(34 * mib);
  for (std::size_t i = 0; i < 34; ++i) std::fill_n(&all[i * mib], mib, static_cast<std::byte>(i));
  std::ranges::copy(some_bytes(4 * mib), all.begin());
  std::copy_n(all.begin(), 4 * mib, all.end() - 4 * mib);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, mib - 1, mib, mib + 1, 3 * mib, 34 * mib - 400}) {
    CAPTURE(size);
    const auto head = std::span(all).first(352);
    const auto body = std::span(all).subspan(352, size);
    const std::vector<std::byte> found = unpacked(written(folder, head, body), all.size() + 1);
    REQUIRE(found.size() == 352 + size);
    CHECK(std::memcmp(found.data(), all.data(), found.size()) == 0);
  }
  CHECK(unpacked(written(folder, {}, {}), 10).empty());
}

TEST_CASE("a gzip file has equal bytes for any number of threads") {
  const TemporaryFolder folder;
  const std::vector<std::byte> all = some_bytes(5 * mib + 77);
  std::string first;
  for (const int threads : {1, 4}) {
    tbb::task_arena arena(threads);
    arena.execute([&] { written(folder, {}, all); });
    std::ifstream file(folder.path() / "a.gz", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (first.empty()) first = bytes;
    CHECK(bytes == first);
  }
  // Two thirds repeat what is 3,000 bytes before, pieces or not.
  CHECK(first.size() < all.size() / 2);
}

TEST_CASE("a megabyte is work for many threads") {
  const TemporaryFolder folder;
  std::ifstream file(written(folder, {}, some_bytes(mib)), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  // Each piece but the last ends so.
  constexpr std::string_view flush("\x00\x00\xff\xff", 4);
  std::size_t pieces = 1;
  for (std::size_t at = bytes.find(flush); at != std::string::npos; at = bytes.find(flush, at + 1)) ++pieces;
  CHECK(pieces >= 16);
}

}  // namespace
}  // namespace slidestream::volume
