#include "slide/tiff/pyramid.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

using namespace slidestream;

TEST_CASE("levels are the longest pyramid among images that say nothing of themselves") {
  const auto chosen = [](const ImageSize& base, const std::vector<ImageSize>& images) {
    std::string text;
    for (const std::size_t i : pyramid_below(base, images)) text += std::to_string(images[i].width) + " ";
    return text;
  };
  CHECK(chosen({4096, 4096}, {{520, 520}, {2048, 2048}, {585, 585}, {1024, 1024}}) == "2048 1024 ");
  CHECK(chosen({4000, 4000}, {{490, 500}, {1280, 430}}).empty());
  CHECK(chosen({46000, 32914}, {{11500, 8228}, {2875, 2057}, {1437, 1028}}) == "11500 2875 1437 ");
  CHECK(chosen({9000, 100}, {{70, 1}, {141, 3}}) == "141 70 ");
  CHECK(chosen({6000, 6000}, {{2000, 2000}, {3000, 3000}}) == "3000 ");
  CHECK(chosen({6000, 6000}, {{6000, 6000}, {0, 0}, {3000, 6000}}).empty());
}

TEST_CASE("a SubIFD may be off by 2 %") {
  CHECK(is_reduction({4096, 4096}, {2040, 2040}));
  CHECK_FALSE(has_size_of_level({4096, 4096}, {2040, 2040}));
  CHECK_FALSE(is_reduction({4096, 4096}, {2048, 1500}));
}
