#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <slidestream/results.hpp>
#include <slidestream/stitch.hpp>

#include "image/mask.hpp"
#include "image/views.hpp"
#include "planning/network_plan.hpp"
#include "runtime/slot_pool.hpp"
#include "stages/network/network_batches.hpp"
#include "stages/network/value_rule.hpp"

namespace slidestream {

/// Which tiles of a slide are given to a network: those with tissue.
struct TissueTiles {
  MaskTable mask;
  GridScale level;  ///< pixels of level 0 a pixel of the run's level
};

/// What a network makes of one slide: rows of RGB in, tiles out to the network's threads and back, rows of an image
/// out. Bands of rows and batches that come back are put in by any thread; `advance` does what has become possible
/// since, one thread at a time, and waits for nothing: where there is no batch, no chunk or no room, it ends, and is
/// called again when that changes. So what is slow holds back the bands, whose slots hold back the source.
class SlideNetwork {
 public:
  /// What it needs of others, who keep it alive meanwhile.
  class Surroundings {
   public:
    virtual ~Surroundings() = default;
    /// Whether its tiles may come into memory; if not, it is woken when they may.
    virtual bool admit() = 0;
    /// Whether the run was told to stop, and whether the slide has taken longer than one may. It is woken then.
    virtual bool stopping() const = 0;
    virtual std::optional<std::string> late() const = 0;
    /// How long it has been worked on since it was admitted; while it waits for others that doesn't grow.
    virtual double seconds() const = 0;
    /// Says whether it waits for other slides: has nothing to do but what their tiles are in the way of.
    virtual void waits(bool for_others) = 0;
    /// Says whether all that it has left is in batches that aren't sent yet.
    virtual void parks(bool in_batches) = 0;
    /// As `BatchFiller::take`; where there is no batch it is woken when one comes back.
    virtual BatchFiller::Places take_places(std::span<const std::int64_t> tiles,
                                            const std::shared_ptr<BatchPart>& before) = 0;
    /// The tiles are in their places. When the batch was computed they come to `put`.
    virtual void written(const BatchFiller::Places& places) = 0;
    /// No more tiles will come. It may be called more than once.
    virtual void no_more_tiles() = 0;
    virtual void give_back(const std::shared_ptr<BatchPart>& part) = 0;
    /// Takes rows of the image, from top to bottom.
    virtual void made(const ConstHostView& rows, std::shared_ptr<runtime::Slot> slot) = 0;
    /// Nothing more is to be made of the slide.
    virtual void drop() = 0;
    /// Nothing more is to be made of this network; what else is made of the slide goes on.
    virtual void drop_own() = 0;
    virtual bool dropped() const = 0;
    /// As `Helpers::for_all`.
    virtual void for_all(std::size_t count, const std::function<void(std::size_t)>& work) = 0;
  };

  SlideNetwork(const Network& network, const NetworkPlan& plan, const StitchConfig& config,
               std::shared_ptr<const TissueTiles> tissue);

  const NetworkPlan& plan() const noexcept { return plan_; }

  /// Called when it should be advanced; set before anything is put in. Any thread.
  std::function<void()> wake;
  /// Called at its end.
  std::function<void()> leave;
  ~SlideNetwork();
  SlideNetwork(const SlideNetwork&) = delete;
  SlideNetwork& operator=(const SlideNetwork&) = delete;

  /// The level's next rows, or those of the tiles' resolution where the plan says that GPUs make them. `owner` is let
  /// go when they aren't needed any more, `keeper` by `let_go`. Thread-safe, as the next.
  void put(const ConstHostView& rows, std::shared_ptr<const void> owner, std::shared_ptr<void> keeper);
  /// Tiles that were computed.
  void put(std::shared_ptr<BatchPart> part);
  /// Says that something has changed. True: the caller has it advanced.
  bool signal() noexcept { return signals_.fetch_add(1, std::memory_order_acq_rel) == 0; }
  void advance(Surroundings& by);
  /// It can't go on. By who advances it.
  void fail(const std::string& cause) { broken_ = cause; }
  /// What keeps it alive while nobody works on it, which isn't needed once it has ended.
  std::shared_ptr<void> let_go();
  /// Whether nothing more will come of it; asked by who advances it.
  bool ended() const noexcept { return ended_; }

  /// Whether a stop ended it; asked as `failure`.
  bool left() const noexcept { return left_; }
  /// Why the slide failed here, if it did; after nobody works on it any more.
  std::optional<SlideFailure> failure() const;
  /// Figures of the output for the slide's line; asked as `failure`:
  /// - an image: "clamped", the share of values outside of their range;
  /// - classes: "class_0" and on, the shares of the pixels with a class, none if no pixel has one. With a sigmoid also
  ///   "saturated", the share of pixels whose classes it makes equal;
  /// - labels: none;
  /// - vectors: "tiles", their number.
  std::vector<NamedValue> figures() const;
  /// Tiles that are absent because they failed, and why; asked as `failure`.
  const std::map<std::int64_t, std::string>& absent() const noexcept { return absent_; }
  /// Of a network of vectors: those of the tiles that were given to it, one after the other.
  const std::vector<float>& vectors() const noexcept { return vectors_; }
  /// The numbers of these tiles.
  const std::vector<std::int64_t>& given() const noexcept { return given_; }

 private:
  using LabelCounts = std::array<std::int64_t, 256>;

  struct Rows {
    ConstHostView view;
    std::shared_ptr<const void> owner;
    std::int64_t next = 0;  ///< row that is to be taken
  };

  void step(Surroundings& by);
  void look_at_time(Surroundings& by);
  void begin();
  void end(Surroundings& by);
  bool take_values(Surroundings& by);
  bool take_values(BatchPart& part, Surroundings& by);
  bool make_rows(Surroundings& by);
  bool take_rows(Surroundings& by);
  bool take_rows(Rows& band, Surroundings& by);
  bool cut_tiles(Surroundings& by);
  bool give_tiles(const ConstHostView& rows, Surroundings& by);
  void next_tile_row(Surroundings& by);
  void tell_waiting(Surroundings& by);
  bool all_cut() const noexcept { return tile_row_ == plan_.stitch.y.count; }
  bool is_skipped(std::int64_t tile) const;
  bool is_late(const Surroundings& by) const;
  void make_piece(const HostView& out, LabelCounts* labels) const;
  void lose(std::int64_t tile, const std::string& cause, Surroundings& by);
  void judge(const BatchPart& part);
  void note(std::int64_t tile, const std::string& cause);
  const float* values_of(const BatchPart& part, std::size_t place) const noexcept;
  std::size_t values_of_tile() const noexcept;

  const NetworkTiles tiles_;
  const NetworkOutput output_;
  const ValueRule rule_;
  const NetworkPlan plan_;
  const StitchConfig config_;
  const std::shared_ptr<const TissueTiles> tissue_;
  const bool makes_image_;

  std::atomic<unsigned> signals_{0};
  std::mutex mutex_;
  std::deque<Rows> rows_put_;                          ///< guarded by mutex_
  std::shared_ptr<void> keeper_;                       ///< guarded by mutex_
  std::vector<std::shared_ptr<BatchPart>> parts_put_;  ///< guarded by mutex_

  // Used by who advances it.
  bool admitted_ = false;
  bool ended_ = false;
  bool left_ = false;  ///< by a stop
  std::deque<Rows> bands_;
  std::vector<std::shared_ptr<BatchPart>> given_away_;  ///< that haven't come back
  std::vector<std::shared_ptr<BatchPart>> computed_;    ///< with tiles that have no room yet
  bool wants_places_ = false;                           ///< in a batch, and there were none
  bool waits_ = false;                                  ///< for other slides
  bool parks_ = false;
  std::unique_ptr<AreaResampler> resampler_;
  std::unique_ptr<std::uint8_t[]> rows_;  ///< of the tiles' resolution, in full width
  std::int64_t first_row_ = 0;            ///< that is held
  std::int64_t held_ = 0;                 ///< rows
  std::int64_t tile_row_ = 0;             ///< that is being cut
  std::int64_t column_ = 0;               ///< of its next tile
  std::unique_ptr<StitchBand> band_;
  std::int64_t made_ = 0;  ///< rows of the image
  std::unique_ptr<runtime::SlotPool> chunks_;
  std::shared_ptr<runtime::Slot> chunk_;  ///< that is being filled
  std::int64_t tiles_left_ = 0;           ///< that haven't come back
  std::vector<std::int64_t> given_;
  std::vector<float> vectors_;
  std::int64_t values_ = 0;                     ///< of an image, that were put into it
  std::int64_t clamped_ = 0;                    ///< of those
  std::int64_t saturated_ = 0;                  ///< pixels of classes, of these tiles
  LabelCounts labels_{};                        ///< of an image of classes: how many pixels have each label
  std::map<std::int64_t, std::string> absent_;  ///< tiles that failed, and why
  std::size_t late_ = 0;                        ///< tiles that weren't given to the network, as its time was over
  std::int64_t failed_tile_ = -1;               ///< the first that failed
  std::string cause_;
  std::string broken_;  ///< why it couldn't go on, whatever the tile
};

}  // namespace slidestream
