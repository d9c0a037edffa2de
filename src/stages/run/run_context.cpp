#include "stages/run/run_context.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <slidestream/error.hpp>
#include <string>
#include <utility>

#include "runtime/machine.hpp"
#include "slide/decode_memory.hpp"
#include "slide/level_coding.hpp"
#include "stages/run/small_levels.hpp"

namespace slidestream {

namespace {

bool makes_other_files(const Operators& operators) {
  return std::ranges::any_of(operators, [](const auto& op) {
    return std::ranges::any_of(op->products(),
                               [](const Product& product) { return product.kind == Product::Kind::file; });
  });
}

}  // namespace

RunContext::RunContext(const Config& run_config, int run_threads, Operators run_operators)
    : config(run_config),
      threads(run_threads),
      decode_memory(std::make_shared<DecodeMemory>(decode_memory_bytes(run_config))),
      small_levels(std::make_shared<DecodeMemory>(small_levels_bytes(run_config))),
      all_operators(std::move(run_operators)),
      tissue_network(tissue_network_of(run_config, all_operators)),
      operators(readers_of(all_operators)),
      needs(needs_of(operators)),
      spectrum(place_of_spectrum(operators)),
      makes_images(std::ranges::any_of(needs, [](const OperatorNeeds& op) { return op.image_bytes > 0; })),
      makes_files(makes_images || makes_other_files(all_operators)),
      has_networks(std::ranges::any_of(operators, [](const auto& op) { return op->network() != nullptr; })) {
  limits = slot_limits(config.pipeline, needs);
  for (std::size_t rank = 0; rank < all_operators.size(); ++rank) {
    if (all_operators[rank]->reads_pixels()) ranks.push_back(rank);
  }
}

int threads_of(const Config& config) noexcept {
  return config.pipeline.threads > 0 ? config.pipeline.threads : runtime::available_processors();
}

std::uint64_t decode_memory_bytes(const Config& config) noexcept {
  constexpr std::uint64_t of_thread = std::uint64_t{8} << 20;
  return std::max((static_cast<std::uint64_t>(config.pipeline.memory_mib) << 20) / decode_memory_divisor,
                  of_thread * static_cast<std::uint64_t>(threads_of(config)));
}

void check_decode_memory(const Config& config, const Slide& slide, std::size_t level,
                         const std::function<void()>& plan) {
  const Level& coded = slide.coded_level(level);
  const std::uint64_t needed = decoding_bytes(coded, coding_of(slide, level));
  const std::uint64_t allowed = decode_memory_bytes(config);
  if (needed <= allowed) return;
  const auto mib = [](std::uint64_t bytes) { return std::to_string((bytes + (1U << 20) - 1) >> 20); };
  std::uint64_t wanted = decode_memory_divisor * needed;
  try {
    plan();
  } catch (const RoomError& error) {
    wanted = std::max(wanted, static_cast<std::uint64_t>(error.memory_mib()) << 20);
  } catch (const Error&) {
    // Who plans it with enough memory says it.
  }
  throw Error("a tile of " + std::to_string(coded.tile_width) + " x " + std::to_string(coded.tile_height) +
              " pixels takes " + mib(needed) + " MiB to decode, and decoding may take " + mib(allowed) +
              " MiB; raise pipeline.memory_mib to " + mib(wanted));
}

std::vector<const runtime::StageMeter*> RunContext::meters() const {
  std::vector<const runtime::StageMeter*> all = {&source, &read, &decode};
  if (lanes_are_devices()) {
    all.insert(all.end(), {&upload, &device_decode, &carry, &compute, &collect});
  } else {
    all.insert(all.end(), {&carry, &compute});
  }
  if (has_networks) all.insert(all.end(), {&network, &stitch});
  if (makes_files) all.insert(all.end(), {&encode, &write, &publish});
  all.push_back(&reduce);
  return all;
}

void RunContext::fail(const char* stage, SlideRun& slide, const std::exception_ptr& failure,
                      SlideRun::Place place) const noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const CudaError&) {
    slide.fail(stage, current_cause(slide.path), place);
    if (on_fatal) on_fatal(failure);
  } catch (...) {
    slide.fail(stage, current_cause(slide.path), place);
  }
}

bool RunContext::leaves(const SlideRun& slide) const {
  if (!stopping()) return false;
  const runtime::Clock::rep now = runtime::Clock::now().time_since_epoch().count();
  runtime::Clock::rep seen = 0;
  if (stop_seen_.compare_exchange_strong(seen, now)) seen = now;
  return slide.chains_to_send.load(std::memory_order_relaxed) > 0 ||
         runtime::Clock::duration(now - seen) >= time_to_end;
}

bool RunContext::is_late(const WorkTime& work) const noexcept {
  const int limit = config.input.max_seconds;
  return limit > 0 && work.seconds() > limit;
}

std::string RunContext::text_of_limit() const {
  return "took longer than input.max_seconds = " + std::to_string(config.input.max_seconds);
}

void RunContext::check_time(const SlideRun& slide) const {
  if (is_late(*slide.work)) throw Error(text_of_limit());
}

bool lacks_memory(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

std::string current_cause(const std::string& path) {
  try {
    throw;
  } catch (const MemoryShortage& error) {
    return error.what();
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const std::exception& error) {
    std::string cause = error.what();
    const std::string prefix = path + ": ";
    if (cause.compare(0, prefix.size(), prefix) == 0) cause.erase(0, prefix.size());
    return cause;
  } catch (...) {
    return "unknown error";
  }
}

}  // namespace slidestream
