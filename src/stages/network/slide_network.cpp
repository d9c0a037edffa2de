#include "stages/network/slide_network.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>

#include "operators/common/tile_grid.hpp"

namespace slidestream {
namespace {

/// Columns that make a task.
constexpr std::int64_t piece_columns = 2048;

/// Rows that are copied by one.
constexpr std::int64_t piece_rows = 8;

/// "4, 7 to 9": as many as a line takes.
std::string text_of(const std::vector<std::int64_t>& sorted) {
  constexpr std::size_t most_runs = 64;
  std::string text;
  std::size_t runs = 0;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) ++end;
    if (runs++ == most_runs) return text + " and others";
    text += (text.empty() ? "" : ", ") + std::to_string(sorted[i]);
    if (end > i + 1) text += " to " + std::to_string(sorted[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace

SlideNetwork::SlideNetwork(const Network& network, const NetworkPlan& plan, const StitchConfig& config,
                           std::shared_ptr<const TissueTiles> tissue)
    : tiles_(network.tiles()),
      output_(network.output()),
      rule_(network),
      plan_(plan),
      config_(config),
      tissue_(std::move(tissue)),
      makes_image_(output_.kind != NetworkOutput::Kind::vector),
      tiles_left_(plan.stitch.tiles()) {}

SlideNetwork::~SlideNetwork() {
  if (leave) leave();
}

void SlideNetwork::put(const ConstHostView& rows, std::shared_ptr<const void> owner, std::shared_ptr<void> keeper) {
  const std::lock_guard lock(mutex_);
  keeper_ = std::move(keeper);
  rows_put_.push_back({rows, std::move(owner), rows.rect.y});
}

void SlideNetwork::put(std::shared_ptr<BatchPart> part) {
  const std::lock_guard lock(mutex_);
  parts_put_.push_back(std::move(part));
}

std::shared_ptr<void> SlideNetwork::let_go() {
  const std::lock_guard lock(mutex_);
  return std::move(keeper_);
}

void SlideNetwork::advance(Surroundings& by) {
  unsigned seen = signals_.load(std::memory_order_acquire);
  do {
    step(by);
  } while (!signals_.compare_exchange_strong(seen, 0, std::memory_order_acq_rel));
}

void SlideNetwork::step(Surroundings& by) {
  {
    const std::lock_guard lock(mutex_);
    for (Rows& rows : rows_put_) bands_.push_back(std::move(rows));
    rows_put_.clear();
    for (auto& part : parts_put_) {
      std::erase(given_away_, part);
      computed_.push_back(std::move(part));
    }
    parts_put_.clear();
  }
  if (ended_ && !by.dropped()) return;
  if (!ended_ && !by.dropped() && tiles_left_ > 0) look_at_time(by);
  bool moved = true;
  while (moved && !by.dropped()) {
    if (!admitted_) {
      if (bands_.empty() || !by.admit()) return;
      admitted_ = true;
      begin();
    }
    moved = take_values(by);
    moved |= make_rows(by);
    moved |= take_rows(by);
    moved |= !by.dropped() && cut_tiles(by);
  }
  if (by.dropped()) {
    end(by);
  } else if (tiles_left_ == 0 && made_ == (makes_image_ ? plan_.stitch.image.height : 0)) {
    end(by);
  }
  tell_waiting(by);
}

/// Where tiles of other slides are all that it waits for, its own time doesn't go on.
void SlideNetwork::tell_waiting(Surroundings& by) {
  const auto is = [](BatchPart::State state) {
    return [state](const std::shared_ptr<BatchPart>& part) { return part->state.load() == state; };
  };
  const bool idle = !ended_ && admitted_ && computed_.empty() && (!makes_image_ || made_ == band_->ready()) &&
                    (all_cut() ? !given_away_.empty() : wants_places_);
  const bool waits = idle && std::ranges::none_of(given_away_, is(BatchPart::State::alone));
  const bool parks = waits && all_cut() && std::ranges::all_of(given_away_, is(BatchPart::State::filling));
  if (waits != waits_) by.waits(waits);
  waits_ = waits;
  if (parks != parks_) by.parks(parks);
  parks_ = parks;
}

/// Where the slide has taken too long, or the run was told to stop, nobody wants its tiles any more.
void SlideNetwork::look_at_time(Surroundings& by) {
  if (by.stopping()) {
    left_ = true;
    by.drop();
  } else if (const auto late = by.late()) {
    broken_ = *late;
    by.drop();
  }
}

void SlideNetwork::begin() {
  const Size input = plan_.stitch.input;
  rows_.reset(new std::uint8_t[static_cast<std::size_t>(std::min(plan_.stitch.side, input.height) * input.width * 3)]);
  if (makes_image_) {
    band_ = std::make_unique<StitchBand>(plan_.stitch, output_, config_.weights);
    chunks_ = std::make_unique<runtime::SlotPool>(network_chunks, plan_.chunk_bytes, [this] { wake(); });
  }
}

/// Lets go of everything. What was computed, or still is, tells whether a tile before the one that failed does, too.
void SlideNetwork::end(Surroundings& by) {
  ended_ = true;
  bands_.clear();
  chunk_.reset();
  by.no_more_tiles();
  for (const auto& part : computed_) {
    judge(*part);
    by.give_back(part);
  }
  computed_.clear();
  band_.reset();
  rows_.reset();
  resampler_.reset();
}

std::size_t SlideNetwork::values_of_tile() const noexcept {
  const StitchPlan& stitch = plan_.stitch;
  const std::int64_t pixels = makes_image_ ? stitch.x.tile * stitch.y.tile : 1;
  return static_cast<std::size_t>(pixels * output_.channels);
}

bool SlideNetwork::take_values(Surroundings& by) {
  bool moved = false;
  for (auto& part : computed_) {
    moved |= take_values(*part, by);
    if (by.dropped()) break;
    if (std::ranges::find(part->taken, 0) != part->taken.end()) continue;
    by.give_back(part);
    part.reset();
  }
  std::erase(computed_, nullptr);
  return moved;
}

const float* SlideNetwork::values_of(const BatchPart& part, std::size_t place) const noexcept {
  return part.batch->values.get() + (part.first + place) * values_of_tile();
}

/// Takes the tiles that have room out of a batch.
bool SlideNetwork::take_values(BatchPart& part, Surroundings& by) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < part.tiles.size(); ++i) {
    if (part.taken[i] != 0) continue;
    if (makes_image_ && !part.failure && !band_->has_room(plan_.stitch.tile(part.tiles[i]).row)) continue;
    places.push_back(i);
  }
  std::vector<MappedValues> seen(places.size());
  const std::size_t count = values_of_tile();
  if (!part.failure) {
    by.for_all(places.size(), [&](std::size_t i) {
      const std::span<const float> values(values_of(part, places[i]), count);
      seen[i] = makes_image_ ? band_->put(plan_.stitch.tile(part.tiles[places[i]]), values) : rule_.look_at(values);
    });
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::int64_t tile = part.tiles[places[i]];
    part.taken[places[i]] = 1;
    if (const auto cause = part.failure ? part.failure : rule_.complaint(seen[i])) {
      lose(tile, *cause, by);
      if (by.dropped()) return false;
      continue;
    }
    --tiles_left_;
    values_ += static_cast<std::int64_t>(count);
    clamped_ += seen[i].outside;
    saturated_ += seen[i].saturated;
    if (makes_image_) {
      band_->arrived(plan_.stitch.tile(tile), true);
    } else {
      const auto at = std::ranges::lower_bound(given_, tile) - given_.begin();
      std::copy_n(values_of(part, places[i]), count, vectors_.begin() + at * static_cast<std::ptrdiff_t>(count));
    }
  }
  return !places.empty();
}

/// A tile that isn't there, and won't be.
void SlideNetwork::lose(std::int64_t tile, const std::string& cause, Surroundings& by) {
  note(tile, cause);
  if (config_.mode == StitchMode::strict) {
    by.drop_own();
    return;
  }
  absent_.emplace(tile, cause);
  --tiles_left_;
  if (makes_image_) band_->arrived(plan_.stitch.tile(tile), false);
}

void SlideNetwork::note(std::int64_t tile, const std::string& cause) {
  if (failed_tile_ >= 0 && failed_tile_ <= tile) return;
  failed_tile_ = tile;
  cause_ = cause;
}

/// Of several tiles that fail the first in the slide is named, whoever was faster.
void SlideNetwork::judge(const BatchPart& part) {
  if (failed_tile_ < 0 || config_.mode == StitchMode::lenient || part.tiles.front() >= failed_tile_) return;
  if (part.interrupted) return;
  if (part.failure) return note(part.tiles.front(), *part.failure);
  for (std::size_t i = 0; i < part.tiles.size(); ++i) {
    const auto cause = rule_.complaint(rule_.look_at({values_of(part, i), values_of_tile()}));
    if (cause) return note(part.tiles[i], *cause);
  }
}

std::vector<NamedValue> SlideNetwork::figures() const {
  const auto share = [](std::int64_t part, std::int64_t of) {
    return of == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(of);
  };
  if (!makes_image_) return {{"tiles", static_cast<double>(given_.size())}};
  if (output_.kind == NetworkOutput::Kind::labels) return {};
  if (output_.kind != NetworkOutput::Kind::classes) return {{"clamped", share(clamped_, values_)}};
  // `ignore` lies behind the classes.
  const std::span<const std::int64_t> classes(labels_.data(), static_cast<std::size_t>(output_.channels));
  const std::int64_t all = std::accumulate(classes.begin(), classes.end(), std::int64_t{0});
  std::vector<NamedValue> shares;
  for (std::size_t k = 0; k < classes.size(); ++k) {
    shares.push_back({"class_" + std::to_string(k), all == 0 ? std::nan("") : share(classes[k], all)});
  }
  const double saturated = share(saturated_, values_ / output_.channels);
  if (output_.activation == NetworkActivation::sigmoid) shares.push_back({"saturated", saturated});
  return shares;
}

/// Makes part of the image's rows, and counts its labels where they are classes.
void SlideNetwork::make_piece(const HostView& out, LabelCounts* labels) const {
  band_->gather(out);
  if (labels == nullptr) return;
  for (std::int64_t y = 0; y < out.rect.height; ++y) {
    const std::uint8_t* const row = out.row<const std::uint8_t>(out.rect.y + y);
    // Neighbours mostly have the same label.
    for (std::int64_t x = 0; x < out.rect.width;) {
      const std::int64_t first = x;
      while (x < out.rect.width && row[x] == row[first]) ++x;
      (*labels)[row[first]] += x - first;
    }
  }
}

bool SlideNetwork::make_rows(Surroundings& by) {
  if (!makes_image_) return false;
  bool moved = false;
  const Size image = plan_.stitch.image;
  const std::int64_t pitch = image_pitch(image.width, static_cast<std::int64_t>(plan_.format.pixel_bytes()));
  while (made_ < band_->ready()) {
    if (chunk_ == nullptr) {
      auto slot = chunks_->try_acquire();
      if (!slot) return moved;
      chunk_ = std::make_shared<runtime::Slot>(std::move(*slot));
    }
    const std::int64_t first = made_ / plan_.chunk_rows * plan_.chunk_rows;
    const std::int64_t end = std::min(first + plan_.chunk_rows, image.height);
    const std::int64_t until = std::min(end, band_->ready());
    HostView chunk = {chunk_->memory().data(), pitch, {0, first, image.width, end - first}, image, plan_.format};
    const auto pieces = static_cast<std::size_t>((image.width + piece_columns - 1) / piece_columns);
    std::vector<LabelCounts> labels(output_.kind == NetworkOutput::Kind::classes ? pieces : 0);
    by.for_all(pieces, [&](std::size_t piece) {
      const std::int64_t x = static_cast<std::int64_t>(piece) * piece_columns;
      const Rect part = {x, made_, std::min(piece_columns, image.width - x), until - made_};
      make_piece(part_of(chunk, part), labels.empty() ? nullptr : &labels[piece]);
    });
    for (const LabelCounts& counts : labels) std::ranges::transform(labels_, counts, labels_.begin(), std::plus());
    made_ = until;
    band_->release(made_);
    moved = true;
    if (made_ == end) by.made(chunk, std::move(chunk_));
    if (by.dropped()) return moved;
  }
  return moved;
}

bool SlideNetwork::take_rows(Surroundings& by) {
  bool moved = false;
  while (!bands_.empty()) {
    Rows& band = bands_.front();
    const std::int64_t before = band.next;
    if (!take_rows(band, by)) return moved || band.next != before;
    bands_.pop_front();
    moved = true;
  }
  return moved;
}

/// Whether all rows of a band could be taken.
bool SlideNetwork::take_rows(Rows& band, Surroundings& by) {
  const StitchPlan& stitch = plan_.stitch;
  const std::int64_t capacity = std::min(stitch.side, stitch.input.height);
  const std::int64_t row_bytes = stitch.input.width * 3;
  const std::int64_t end = band.view.rect.bottom();
  if (plan_.factor != 65536 && !plan_.on_devices && resampler_ == nullptr) {
    resampler_ = std::make_unique<AreaResampler>(band.view.image, plan_.factor);
  }
  while (band.next < end && tile_row_ < stitch.y.count) {
    if (held_ == capacity) return false;
    std::uint8_t* const to = rows_.get() + held_ * row_bytes;
    if (resampler_ != nullptr) {
      const AreaResampler::Taken taken = resampler_->add(
          to, row_bytes, capacity - held_, band.view.row<const std::uint8_t>(band.next), band.view.pitch,
          end - band.next, [&](std::size_t parts, const auto& work) { by.for_all(parts, work); });
      band.next += taken.rows;
      held_ += taken.made;
      continue;
    }
    const std::int64_t count = std::min(end - band.next, capacity - held_);
    by.for_all(static_cast<std::size_t>((count + piece_rows - 1) / piece_rows), [&](std::size_t piece) {
      const std::int64_t first = static_cast<std::int64_t>(piece) * piece_rows;
      for (std::int64_t row = first; row < std::min(first + piece_rows, count); ++row) {
        std::memcpy(to + row * row_bytes, band.view.row<const std::uint8_t>(band.next + row),
                    static_cast<std::size_t>(row_bytes));
      }
    });
    band.next += count;
    held_ += count;
  }
  return true;
}

bool SlideNetwork::is_skipped(std::int64_t tile) const {
  if (tissue_ == nullptr) return false;
  return !operators::is_tissue({plan_.factor, plan_.stitch}, tile, tissue_->mask, tissue_->level, tiles_.tissue_share);
}

bool SlideNetwork::is_late(const Surroundings& by) const {
  return config_.mode == StitchMode::lenient && config_.deadline_seconds > 0 && by.seconds() > config_.deadline_seconds;
}

bool SlideNetwork::cut_tiles(Surroundings& by) {
  const StitchPlan& stitch = plan_.stitch;
  wants_places_ = false;
  if (all_cut() || first_row_ + held_ < stitch.input_rows(tile_row_).second) return false;
  bool moved = false;
  const ConstHostView rows = {reinterpret_cast<const std::byte*>(rows_.get()),
                              stitch.input.width * 3,
                              {0, first_row_, stitch.input.width, held_},
                              stitch.input,
                              rgb_format};
  const bool late = is_late(by);
  while (column_ < stitch.x.count) {
    const std::int64_t tile = tile_row_ * stitch.x.count + column_;
    const bool skipped = is_skipped(tile);
    if (skipped || late) {
      ++column_;
      moved = true;
      if (!skipped) {
        ++late_;
        lose(tile, "stitch.deadline_seconds had passed", by);
        continue;
      }
      --tiles_left_;
      if (makes_image_) band_->arrived(stitch.tile(tile), false);
      continue;
    }
    if (!give_tiles(rows, by)) return moved;
    moved = true;
  }
  next_tile_row(by);
  return true;
}

/// Gives the network tiles from the next one on: as many as lie in this row, and fit into a batch. False: none did.
bool SlideNetwork::give_tiles(const ConstHostView& rows, Surroundings& by) {
  const StitchPlan& stitch = plan_.stitch;
  const auto tile_bytes = static_cast<std::size_t>(stitch.side * stitch.side * 3);
  std::vector<std::int64_t> tiles;
  for (std::int64_t column = column_; column < stitch.x.count && std::ssize(tiles) < tiles_.batch; ++column) {
    const std::int64_t tile = tile_row_ * stitch.x.count + column;
    if (is_skipped(tile)) break;
    tiles.push_back(tile);
  }
  const std::size_t before = given_.size();
  given_.insert(given_.end(), tiles.begin(), tiles.end());
  if (!makes_image_) vectors_.resize(given_.size() * values_of_tile());
  given_away_.reserve(given_away_.size() + 1);
  const BatchFiller::Places places = by.take_places(tiles, given_away_.empty() ? nullptr : given_away_.back());
  given_.resize(before + places.count);
  if (!makes_image_) vectors_.resize(given_.size() * values_of_tile());
  wants_places_ = places.count == 0;
  if (wants_places_) return false;
  column_ += static_cast<std::int64_t>(places.count);
  if (given_away_.empty() || given_away_.back() != places.part) given_away_.push_back(places.part);
  by.for_all(places.count, [&](std::size_t i) {
    cut_tile({places.pixels + i * tile_bytes, tile_bytes}, rows, stitch.input_of(stitch.tile(tiles[i])));
  });
  by.written(places);
  return true;
}

void SlideNetwork::next_tile_row(Surroundings& by) {
  const StitchPlan& stitch = plan_.stitch;
  column_ = 0;
  ++tile_row_;
  if (all_cut()) {
    rows_.reset();
    resampler_.reset();
    by.no_more_tiles();
    return;
  }
  const std::int64_t drop = std::min(held_, stitch.input_rows(tile_row_).first - first_row_);
  const std::int64_t row_bytes = stitch.input.width * 3;
  std::memmove(rows_.get(), rows_.get() + drop * row_bytes, static_cast<std::size_t>((held_ - drop) * row_bytes));
  first_row_ += drop;
  held_ -= drop;
}

std::optional<SlideFailure> SlideNetwork::failure() const {
  if (left_) return std::nullopt;
  if (!broken_.empty()) return SlideFailure{"network", std::nullopt, broken_};
  if (failed_tile_ < 0) return std::nullopt;
  const StitchTile tile = plan_.stitch.tile(failed_tile_);
  std::string cause = "tile " + std::to_string(failed_tile_) + " (column " + std::to_string(tile.column) + ", row " +
                      std::to_string(tile.row) + "): " + cause_;
  if (!absent_.empty()) {
    std::vector<std::int64_t> absent;
    for (const auto& [number, why] : absent_) absent.push_back(number);
    const std::size_t all = given_.size() + late_;
    cause = std::to_string(absent.size()) + " of " + std::to_string(all) + " tiles absent: " + text_of(absent) + "; " +
            cause;
  }
  return SlideFailure{"network", failed_tile_, cause};
}

}  // namespace slidestream
