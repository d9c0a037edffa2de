// The ICC profiles that a TIFF file's directories hold.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/tiff_fixture.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

Bytes profile(std::size_t bytes) {
  Bytes made(bytes);
  for (std::size_t i = 0; i < 4; ++i) made[i] = static_cast<std::byte>(bytes >> (24 - 8 * i));
  const auto put = [&made](std::size_t at, const std::string& text) {
    for (std::size_t i = 0; i < text.size(); ++i) made[at + i] = static_cast<std::byte>(text[i]);
  };
  put(16, "RGB ");
  put(36, "acsp");
  return made;
}

}  // namespace

TEST_CASE_FIXTURE(TiffFixture, "an ICC profile is that of the level, or of the first") {
  constexpr std::uint16_t icc = 34675;
  tiff.directories = {black_level(400, 240), black_level(200, 120), black_level(100, 60)};
  CHECK(open()->icc_profile(0).bytes.empty());
  CHECK(open()->icc_profile(0).fault.empty());
  tiff.directories[0].set_bytes(icc, profile(300));
  tiff.directories[2].set_bytes(icc, profile(128));
  for (const bool big : {false, true}) {
    tiff.big = big;
    const auto slide = open();
    CHECK(slide->icc_profile(0).bytes == profile(300));
    CHECK(slide->icc_profile(0).space == "RGB");
    CHECK(slide->icc_profile(1).bytes == profile(300));
    CHECK(slide->icc_profile(2).bytes == profile(128));
    CHECK(slide->icc_profile(2).fault.empty());
  }
}

TEST_CASE_FIXTURE(TiffFixture, "an ICC profile that is damaged is none, and no fault of the slide") {
  constexpr std::uint16_t icc = 34675;
  tiff.directories = {black_level(100, 60)};
  const auto fault = [this] {
    const IccProfile found = open()->icc_profile(0);
    CHECK(found.bytes.empty());
    return found.fault;
  };
  tiff.directories[0].set_bytes(icc, Bytes(profile(127)));
  CHECK(fault() == "the ICC profile has 127 bytes, supported are 128 to 16777216");
  Bytes larger = profile(300);
  larger[2] = std::byte{2};
  tiff.directories[0].set_bytes(icc, larger);
  CHECK(fault() == "the ICC profile of 300 bytes is damaged");
  Bytes unsigned_ = profile(300);
  unsigned_[36] = std::byte{};
  tiff.directories[0].set_bytes(icc, unsigned_);
  CHECK(fault() == "the ICC profile of 300 bytes is damaged");
  tiff.directories[0].set(icc, short_, std::vector<std::uint64_t>(300));
  CHECK(fault() == "the ICC profile has type 3, supported are BYTE and UNDEFINED");

  // What the entry claims, and the file doesn't hold.
  tiff.directories[0].set_bytes(icc, profile(300));
  Bytes bytes = tiff.bytes();
  const std::size_t at = [&] {
    for (std::size_t i = 0; i + 12 <= bytes.size(); ++i) {
      if (bytes[i] == std::byte{0x73} && bytes[i + 1] == std::byte{0x87} && bytes[i + 2] == std::byte{7}) return i;
    }
    return bytes.size();
  }();
  REQUIRE(at < bytes.size());
  bytes[at + 6] = std::byte{1};
  const auto beyond = Slide::open(folder.write("slide.tif", bytes))->icc_profile(0);
  CHECK(beyond.bytes.empty());
  CHECK(beyond.fault.find("lies outside the file") != std::string::npos);
  bytes[at + 7] = std::byte{0x7F};
  CHECK(Slide::open(folder.write("slide.tif", bytes))->icc_profile(0).fault.find("supported are 128") !=
        std::string::npos);
}
