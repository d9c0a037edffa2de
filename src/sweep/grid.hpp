#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <slidestream/config.hpp>

#include "config/keys.hpp"

/// \file
/// What a sweep runs: every combination of the values of some keys.

namespace slidestream {

/// A key and the values that it takes.
struct SweepAxis {
  std::string key;                  ///< "pipeline.strip_height"
  std::vector<std::string> values;  ///< as on the command line
};

/// `section.key=VALUE,VALUE,...`; commas within brackets or quotes belong to a value.
/// \throws ConfigError for a key that isn't there or can't be swept, a value that isn't the key's, one named twice.
SweepAxis parse_axis(const std::string& text);

/// One configuration of a sweep.
struct Combination {
  Config config;
  bool is_base = false;  ///< the configuration that the sweep began from
  std::string name;      ///< "strip_height=256 queue_depth=2", or "base"
};

/// All combinations of the axes over `base`, the last axis fastest, and `base` in front when it isn't among them.
/// \throws ConfigError naming a combination that is wrong in itself.
std::vector<Combination> make_grid(const Config& base, const std::vector<SweepAxis>& axes);

/// A key's value as sweeps write it: names and texts bare, all else TOML.
std::string plain_value(const ConfigKey& key, const Config& config);

/// The keys that say how a run goes: all but where slides and results lie.
std::vector<const ConfigKey*> sweep_keys();

/// 0 ... n-1 in an order that `seed` alone decides, on every machine.
std::vector<std::size_t> shuffled(std::size_t n, std::uint64_t seed);

}  // namespace slidestream
