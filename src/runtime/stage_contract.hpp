#pragma once

#include <span>

namespace slidestream::runtime {

/// What travels between two stages.
enum class Payload { nothing, strips, compressed_tiles, luminance_rows, partial_sums, results };

/// Where it lies.
enum class MemorySpace { none, host, device };

enum class Concurrency { serial, parallel };

/// What a stage takes and gives, as data: the graph is checked against it before it runs.
struct StageContract {
  const char* name;
  Payload takes;
  MemorySpace takes_from;
  Payload gives;
  MemorySpace gives_in;
  Concurrency concurrency;
};

/// \throws std::logic_error naming both stages when one gives what the next doesn't take.
void check_chain(std::span<const StageContract* const> stages);

}  // namespace slidestream::runtime
