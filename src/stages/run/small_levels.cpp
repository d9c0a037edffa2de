#include "stages/run/small_levels.hpp"

#include <algorithm>
#include <chrono>

#include "networks/tissue_network.hpp"
#include "operators/stain/stained_blocks.hpp"
#include "operators/tissue/outlines.hpp"
#include "operators/tissue/preparation.hpp"
#include "slide/decode_memory.hpp"
#include "slide/file.hpp"

namespace slidestream {
namespace {

bool look_at_small_levels(const Operators& operators) {
  return std::ranges::any_of(operators, [](const auto& op) {
    return op->looks_at_small_level() || (op->network() != nullptr && op->network()->tiles().tissue_only);
  });
}

}  // namespace

std::uint64_t small_levels_bytes(const Config& config) noexcept {
  constexpr std::uint64_t least = std::uint64_t{64} << 20;
  return std::max(least, (static_cast<std::uint64_t>(config.pipeline.memory_mib) << 20) / 4);
}

std::uint64_t stains_bytes(const Config& config, const SlideInfo& info) {
  if (!config.operators.runs("stain")) return 0;
  return operators::stained_blocks_bytes(info, info.mean_mpp(), config.stain.mpp);
}

std::shared_ptr<const Network> tissue_network_of(const Config& config, const Operators& operators) {
  return look_at_small_levels(operators) ? networks::open_tissue_network(config) : nullptr;
}

std::uint64_t small_level_bytes(const Config& config, const Operators& operators, const SlideInfo& info,
                                const Network* tissue) {
  if (!look_at_small_levels(operators)) return 0;
  const std::uint64_t most_network_bytes = static_cast<std::uint64_t>(config.stitch.memory_mib) << 20;
  return operators::preparation_bytes(info, most_network_bytes, tissue) + stains_bytes(config, info);
}

std::uint64_t most_writing_bytes(std::uint64_t pixels) noexcept {
  const auto corners = std::min(2 * pixels, static_cast<std::uint64_t>(operators::most_outline_corners));
  return operators::writing_bytes(pixels, pixels / 2, corners);
}

operators::Admission admission_of(const std::shared_ptr<DecodeMemory>& memory, const std::string& path,
                                  const std::function<bool()>& give_up, std::atomic<std::int64_t>& waited) {
  const auto take = [memory](std::uint64_t bytes, const std::function<bool()>& until) {
    return std::make_shared<const DecodeMemory::Lease>(memory->take(std::min(bytes, memory->size()), until));
  };
  operators::Admission admission;
  admission.stopped = give_up;
  admission.waited = [&waited](std::chrono::nanoseconds time) { waited += time.count(); };
  admission.prepare = [take, path, give_up, &waited](std::uint64_t bytes) {
    const auto begin = std::chrono::steady_clock::now();
    const auto lease = take(bytes, give_up);
    waited += std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
    if (!*lease) throw_stopped(path, "waited for memory");
    return std::shared_ptr<const void>(lease);
  };
  // Who has memory works: the wait ends.
  admission.write = [take](std::uint64_t bytes) { return std::shared_ptr<const void>(take(bytes, {})); };
  return admission;
}

}  // namespace slidestream
