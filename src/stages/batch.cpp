#include "stages/batch.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "runtime/machine.hpp"

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
      all_operators(std::move(run_operators)),
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

Operators readers_of(const Operators& operators) {
  Operators readers;
  for (const auto& op : operators) {
    if (op->reads_pixels()) readers.push_back(op);
  }
  return readers;
}

std::optional<Product> image_of(const Operator& op) {
  for (const Product& product : op.products()) {
    if (product.kind == Product::Kind::image) return product;
  }
  return std::nullopt;
}

std::optional<PixelFormat> band_format_of(const Operator& op) {
  if (op.network() != nullptr) return rgb_format;
  const auto product = image_of(op);
  return product ? std::optional(product->format) : std::nullopt;
}

std::vector<OperatorNeeds> needs_of(const Operators& operators) {
  std::vector<OperatorNeeds> all;
  for (const auto& op : operators) {
    OperatorNeeds& needs = all.emplace_back();
    needs.footprint = op->footprint();
    needs.plane = op->input() == rgb_format ? rgb_plane : luminance_plane;
    if (const auto format = band_format_of(*op)) needs.image_bytes = static_cast<std::int64_t>(format->pixel_bytes());
    needs.has_network = op->network() != nullptr;
  }
  return all;
}

std::optional<std::size_t> place_of_spectrum(const Operators& operators) {
  const auto found = std::ranges::find(operators, "spectrum", &Operator::name);
  if (found == operators.end()) return std::nullopt;
  return static_cast<std::size_t>(found - operators.begin());
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

std::int64_t Batch::patch_bytes() const {
  const Level& level = slide->slide->info().levels[slide->level];
  return level.tile_width * level.tile_height * pixel_bytes_of(panel().pitch);
}

std::uint64_t SlideRun::packed(Place place) noexcept {
  constexpr int item_bits = 36;
  constexpr std::uint64_t most_items = (std::uint64_t{1} << item_bits) - 1;
  constexpr std::uint64_t most_strips = (std::uint64_t{1} << (64 - item_bits)) - 2;
  return std::min<std::uint64_t>(place.strip, most_strips) << item_bits |
         std::min(static_cast<std::uint64_t>(place.item), most_items);
}

void SlideRun::fail(const char* stage, const std::string& cause, Place place, std::optional<std::int64_t> tile) {
  const std::lock_guard lock(mutex_);
  if (packed(place) >= failed_at_.load(std::memory_order_relaxed)) return;
  result.fail({stage, tile, cause});
  failed_at_.store(packed(place), std::memory_order_release);
}

void WorkTime::begin() noexcept {
  runtime::Clock::rep none = 0;
  since_.compare_exchange_strong(none, runtime::Clock::now().time_since_epoch().count());
}

void WorkTime::hold() noexcept {
  runtime::Clock::rep since = since_.load();
  // Where it begins anew meanwhile, `since_` isn't what it was.
  while (!anew_.load() && !since_.compare_exchange_weak(since, held)) {
  }
}

void WorkTime::begin_anew() noexcept {
  anew_.store(true);
  since_.store(runtime::Clock::now().time_since_epoch().count());
}

void WorkTime::pause() noexcept {
  const runtime::Clock::rep since = since_.load();
  if (since == paused) return;
  spent_.store(runtime::Clock::now().time_since_epoch().count() - since);
  since_.store(paused);
}

void WorkTime::go_on() noexcept {
  if (since_.load() != paused) return;
  since_.store(runtime::Clock::now().time_since_epoch().count() - spent_.load());
}

double WorkTime::seconds() const noexcept {
  const runtime::Clock::rep since = since_.load();
  if (since == 0 || since == held) return 0.0;
  const runtime::Clock::rep spent =
      since == paused ? spent_.load() : runtime::Clock::now().time_since_epoch().count() - since;
  return std::chrono::duration<double>(runtime::Clock::duration(spent)).count();
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

std::string text_of_tile(const SlideRun& slide, std::int64_t index) {
  const std::int64_t columns = slide.slide->info().levels[slide.level].columns;
  return "tile " + std::to_string(index) + " (column " + std::to_string(index % columns) + ", row " +
         std::to_string(index / columns) + ")";
}

std::string current_cause(const std::string& path) {
  try {
    throw;
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
