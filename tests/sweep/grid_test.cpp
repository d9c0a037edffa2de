#include "sweep/grid.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include <slidestream/error.hpp>

using namespace slidestream;

TEST_CASE("axes are read as settings are") {
  const SweepAxis axis = parse_axis("pipeline.strip_height=256,512");
  CHECK(axis.key == "pipeline.strip_height");
  CHECK(axis.values == std::vector<std::string>{"256", "512"});
  CHECK(parse_axis("gpu.devices=[0],[0,1]").values == std::vector<std::string>{"[0]", "[0,1]"});
  CHECK(parse_axis("analysis.value=\"db\",linear").values == std::vector<std::string>{"\"db\"", "linear"});
  for (const char* wrong : {"pipeline.strip_height", "pipeline.strip_heigth=1", "pipeline.strip_height=", "nothing=1",
                            "pipeline.strip_height=256,", "pipeline.strip_height=1,0x1", "pipeline.backend=gpu",
                            "output.dir=a,b", "input.slides=a,b", "=1", "pipeline.queue_depth=0"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_axis(wrong), ConfigError);
  }
}

TEST_CASE("a grid has every combination once, and the base") {
  Config base;
  const auto grid =
      make_grid(base, {parse_axis("pipeline.strip_height=256,1024"), parse_axis("pipeline.queue_depth=2,4")});
  REQUIRE(grid.size() == 4);
  CHECK(grid[0].name == "strip_height=256 queue_depth=2");
  CHECK(grid[1].config.pipeline.queue_depth == 4);
  CHECK(std::ranges::count_if(grid, &Combination::is_base) == 1);
  CHECK(grid[3].is_base);

  base.pipeline.threads = 3;
  const auto with_base = make_grid(base, {parse_axis("pipeline.threads=1,2")});
  REQUIRE(with_base.size() == 3);
  CHECK(with_base[0].name == "base");
  CHECK(with_base[0].config.pipeline.threads == 3);

  CHECK_THROWS_AS(make_grid(base, {parse_axis("pipeline.threads=1"), parse_axis("pipeline.threads=2")}), ConfigError);
}

TEST_CASE("the order is a permutation that the seed alone decides") {
  const auto order = shuffled(100, 5);
  CHECK(std::set<std::size_t>(order.begin(), order.end()).size() == 100);
  CHECK(*std::ranges::max_element(order) == 99);
  CHECK(order == shuffled(100, 5));
  CHECK(order != shuffled(100, 6));
  CHECK(shuffled(0, 1).empty());
  // The same on every machine.
  CHECK(shuffled(6, 1) == std::vector<std::size_t>{1, 3, 0, 4, 5, 2});
}

TEST_CASE("keys of a row: all but places") {
  for (const ConfigKey* key : sweep_keys()) {
    CHECK(key->full_name() != "input.slides");
    CHECK(key->full_name() != "output.dir");
  }
  CHECK(sweep_keys().size() + 2 == config_keys().size());
  Config config;
  config.output.dir = "two\nlines";
  CHECK(plain_value(*find_key("output", "dir"), config) == "two lines");
  CHECK(plain_value(*find_key("pipeline", "backend"), config) == "auto");
  CHECK(plain_value(*find_key("analysis", "range"), config) == "[0.0, 150.0]");
}
