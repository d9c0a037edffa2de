#include "sink/file_digest.hpp"

#include <doctest/doctest.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <random>
#include <slidestream/error.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "image/pyramid_builder.hpp"
#include "sink/content_hash.hpp"
#include "sink/image_sink.hpp"
#include "sink/partial_file.hpp"
#include "support/file_limit.hpp"
#include "support/plain_pyramid.hpp"
#include "support/temporary_folder.hpp"

namespace slidestream {
namespace {

using test::TemporaryFolder;

constexpr std::uint64_t block = digest_block;

/// The definition, of a file of more than a block.
std::uint64_t digest_of(const std::vector<std::uint64_t>& blocks, std::uint64_t size) {
  std::string numbers;
  const auto add = [&numbers](std::uint64_t number) {
    for (int i = 0; i < 8; ++i) numbers += static_cast<char>(number >> (8 * i) & 0xff);
  };
  for (const std::uint64_t number : blocks) add(number);
  add(size);
  return stable_hash(numbers);
}

/// Of all bytes at once.
std::uint64_t plain_digest(std::string_view bytes) {
  if (bytes.size() <= block) return stable_hash(bytes);
  std::vector<std::uint64_t> blocks;
  for (std::size_t at = 0; at < bytes.size(); at += block) blocks.push_back(stable_hash(bytes.substr(at, block)));
  return digest_of(blocks, bytes.size());
}

/// Of a file that has nothing from the second block to the byte `data_at`, which isn't read.
std::uint64_t digest_with_hole(const std::filesystem::path& file, std::uint64_t data_at) {
  const std::uint64_t size = std::filesystem::file_size(file);
  const std::uint64_t nothing = stable_hash(std::string(block, '\0'));
  std::ifstream in(file, std::ios::binary);
  std::vector<std::uint64_t> blocks;
  for (std::uint64_t at = 0; at < size; at += block) {
    if (at >= block && at + block <= data_at) {
      blocks.push_back(nothing);
      continue;
    }
    std::string bytes(std::min(block, size - at), '\0');
    in.seekg(static_cast<std::streamoff>(at)).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    REQUIRE(in);
    blocks.push_back(stable_hash(bytes));
  }
  return digest_of(blocks, size);
}

std::string noise(std::size_t size, std::mt19937_64& random) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random() >> 56);
  return bytes;
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string content(const std::filesystem::path& file) {
  // At once: a byte after the other takes most of the test's time where nothing is optimised.
  std::string bytes(std::filesystem::file_size(file), '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  REQUIRE(in);
  return bytes;
}

std::size_t up_to(std::size_t most, std::mt19937_64& random) {
  return std::uniform_int_distribution<std::size_t>(0, most)(random);
}

}  // namespace

TEST_CASE("a file's digest is that of its blocks, and finds a byte that changed in any of them") {
  const TemporaryFolder folder;
  std::mt19937_64 random(5);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, block - 1, block, block + 1, 2 * block, 16 * block + 7}) {
    CAPTURE(size);
    std::string bytes = noise(size, random);
    const auto file = folder.write("file", bytes);
    const auto digest = file_digest(file);
    CHECK(digest == plain_digest(bytes));
    if (size <= block) CHECK(digest == file_hash(file));
    CHECK(path_content(file)->digest == digest);
    CHECK(path_content(file)->bytes == size);
    // In the first blocks and the last.
    for (std::size_t at = 0; at<size; at += size> 3 * block && at == block ? size / block * block - block : block) {
      char& byte = bytes[at + up_to(std::min(block, size - at) - 1, random)];
      byte = static_cast<char>(byte ^ 4);
      CHECK(file_digest(folder.write("file", bytes)) != digest);
      byte = static_cast<char>(byte ^ 4);
    }
  }
  CHECK_FALSE(file_digest(folder / "none"));
  CHECK_FALSE(file_digest(folder.path()));
}

TEST_CASE("why a file or folder can't be read") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "image/0");
  folder.write("image/0/chunk", std::string("some"));
  int code = -1;
  CHECK(path_content(folder / "image", code));
  CHECK(code == 0);
  CHECK_FALSE(path_content(folder / "none", code));
  CHECK(code == ENOENT);
  CHECK_FALSE(path_content(folder / "image/0/chunk/below", code));
  CHECK(code == ENOTDIR);
  std::filesystem::create_symlink(folder / "image/0/loop", folder / "image/0/loop");
  CHECK_FALSE(path_bytes(folder / "image", code));
  CHECK(code == ELOOP);
  CHECK_FALSE(path_bytes("/dev/null", code));
  CHECK(code == 0);
}

TEST_CASE("a digest that is taken while a file is written is the file's, whatever is written where (long)") {
  const TemporaryFolder folder;
  std::mt19937_64 random(6);
  const std::string bytes = noise(3 * block, random);
  for (int round = 0; round < 12; ++round) {
    CAPTURE(round);
    PartialFile file(folder / "file", bytes_of(std::string_view(bytes).substr(0, up_to(block + block / 2, random))));
    std::uint64_t end = 0;
    for (int i = 0; i < 12; ++i) {
      // Behind what is there, sometimes with a hole before; else anywhere.
      const std::size_t kind = up_to(5, random);
      end = std::filesystem::file_size(folder / "file.partial");
      std::uint64_t offset = end;
      if (kind == 0) offset += up_to(2 * block, random);
      if (kind == 1) offset = up_to(end, random);
      if (kind == 2) offset = end / block * block;
      std::vector<::iovec> pieces;
      for (std::size_t left = up_to(1, random) == 0 ? 3000 : 2 * block; left > 0;) {
        const std::size_t size = std::min(left, up_to(left > 3000 ? block / 3 : 999, random));
        const std::size_t from = up_to(bytes.size() - size, random);
        pieces.push_back({const_cast<char*>(bytes.data()) + from, size});
        left -= size;
      }
      if (up_to(3, random) > 0) {
        file.write(offset, pieces);
        continue;
      }
      // As far as there is room, and a second time where that wasn't all.
      auto again = pieces;
      const test::FileLimit limit(offset + up_to(2999, random));
      CHECK_THROWS_AS(file.write(offset, pieces), OutputError);
      if (up_to(1, random) == 0) continue;
      const test::FileLimit none(RLIM_INFINITY);
      file.write(offset, again);
    }
    end = std::filesystem::file_size(folder / "file.partial");
    std::uint64_t digest = 0;
    try {
      digest = file.digest();
    } catch (const OutputError& error) {
      // What failed last had the most to write.
      CHECK(std::string(error.what()).find(" were written") != std::string::npos);
      file.discard();
      continue;
    }
    file.publish();
    CHECK(digest == file_digest(folder / "file"));
    CHECK(digest == plain_digest(content(folder / "file")));
  }
}

TEST_CASE("what is written behind a write that failed doesn't make that one's bytes the file's") {
  const TemporaryFolder folder;
  std::mt19937_64 random(8);
  const std::string bytes = noise(2 * block, random);
  PartialFile file(folder / "file", bytes_of("0123456789"));
  {
    const test::FileLimit limit(block / 2);
    CHECK_THROWS_AS(file.write(10, bytes_of(bytes)), OutputError);
  }
  file.write(10 + bytes.size(), bytes_of("behind"));
  const std::uint64_t digest = file.digest();
  file.publish();
  CHECK(digest == plain_digest(content(folder / "file")));
}

TEST_CASE("a file that somebody else cut off or made longer has no digest") {
  const TemporaryFolder folder;
  PartialFile file(folder / "file", bytes_of("0123456789"));
  std::filesystem::resize_file(folder / "file.partial", 7);
  try {
    file.digest();
    FAIL("a digest");
  } catch (const OutputError& error) {
    CHECK(error.what() == (folder / "file.partial").string() + ": has 7 bytes, and 10 were written");
  }
  std::filesystem::resize_file(folder / "file.partial", 10);
  CHECK(file.digest() == stable_hash("0123456789"));
}

TEST_CASE("an image's digest is its file's, for every compression, with one level and with all, behind 4 GiB, too") {
  const TemporaryFolder folder;
  std::mt19937 random(7);
  const test::WholeImage image = test::noise_image({1000, 700}, rgb_format, random);
  ImageDescription description;
  description.name = "image";
  description.size = image.size;
  description.format = image.format;
  const auto file = folder / "a.ome.tif";
  const auto check = [&](const ImageOptions& options, std::uint64_t data_at) {
    const auto sink = make_ome_tiff_sink(file, description, options, data_at);
    PyramidBuilder builder(sink->layout(), image.format, false);
    const auto encoder = sink->make_encoder();
    for (const PyramidTile& job : builder.add(image.rows(0, image.size.height), nullptr)) {
      if (sink->put(job.level, job.index, EncodedTile(encoder->encode(job.pixels)))) sink->drain();
    }
    const auto made = sink->publish();
    REQUIRE(made.size() == 1);
    CHECK(made.front().bytes == std::filesystem::file_size(file));
    CHECK(made.front().digest.has_value());
    CHECK(made.front().digest == (data_at == 0 ? file_digest(file) : digest_with_hole(file, data_at)));
  };
  for (const TileCompression compression : {TileCompression::none, TileCompression::jpeg, TileCompression::zstd}) {
    for (const int levels : {0, 1}) {
      for (const int tile : {16, 256}) check({.compression = compression, .tile = tile, .levels = levels}, 0);
    }
  }
  check({.compression = TileCompression::none, .levels = 1}, (std::uint64_t{4} << 30) - 70'000);
}

TEST_CASE("XXH64") {
  // The specification's test vectors.
  CHECK(stable_hash("") == 0xEF46DB3751D8E999);
  CHECK(stable_hash("a") == 0xD24EC4F1A98C6E5B);
  CHECK(stable_hash("abc") == 0x44BC2CF5AD770999);
  const std::string text = "Nobody inspects the spammish repetition";
  CHECK(stable_hash(text) == 0xFBCEA83C8A378BF1);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    ContentHash hash;
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    hash.add(bytes.first(cut));
    hash.add(bytes.subspan(cut));
    CHECK(hash.value() == 0xFBCEA83C8A378BF1);
  }
  const TemporaryFolder folder;
  CHECK(file_hash(folder.write("x", text)) == 0xFBCEA83C8A378BF1);
  CHECK_FALSE(file_hash(folder / "none"));
  CHECK_FALSE(file_hash(folder.path()));
}

}  // namespace slidestream
