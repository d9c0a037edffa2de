#pragma once

#include <optional>
#include <slidestream/network.hpp>
#include <slidestream/stitch.hpp>
#include <span>
#include <string>

/// \file
/// Which values of a network's are results.

namespace slidestream {

/// Judges the values that a network gave for a tile.
class ValueRule {
 public:
  explicit ValueRule(const Network& network);

  /// Statistics of a tile's values, without samples of them.
  MappedValues look_at(std::span<const float> values) const;
  /// Why values fail their tile, in the words of the network's user. None: they don't.
  std::optional<std::string> complaint(const MappedValues& values) const;

 private:
  const NetworkOutput output_;
  const bool is_vector_;
  const std::string called_;           ///< what messages call the network
  const std::string range_name_;       ///< and the key
  const std::string activation_name_;  ///< likewise
  const std::string ignore_name_;      ///< likewise
};

}  // namespace slidestream
