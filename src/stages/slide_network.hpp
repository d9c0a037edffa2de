#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <slidestream/results.hpp>
#include <slidestream/stitch.hpp>

#include "image/mask.hpp"
#include "image/views.hpp"
#include "runtime/slot_pool.hpp"
#include "runtime/trace.hpp"
#include "stages/network_plan.hpp"

namespace slidestream {

/// Tiles that a network gets at a time, and what it gives for them.
struct NetworkBatch {
  std::shared_ptr<std::uint8_t[]> pixels;
  std::shared_ptr<float[]> values;
  std::vector<std::int64_t> tiles;  ///< numbers of those that it has, by place
  std::vector<std::uint8_t> taken;  ///< of those, which have been taken out again
  std::optional<std::string> failure;
  bool interrupted = false;  ///< which is no failure of its tiles
};

/// Which tiles of a slide are given to a network: those with tissue.
struct TissueTiles {
  MaskTable mask;
  GridScale level;  ///< pixels of level 0 a pixel of the run's level
  double share;     ///< of a tile that must be tissue
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
    /// An empty batch; null: it is woken when one comes back.
    virtual std::unique_ptr<NetworkBatch> take_batch() = 0;
    virtual void give_back(std::unique_ptr<NetworkBatch> batch) = 0;
    /// Has the network compute a batch, which comes to `put` then.
    virtual void run(std::unique_ptr<NetworkBatch> batch) = 0;
    /// Takes rows of the image, from top to bottom.
    virtual void made(const ConstHostView& rows, std::shared_ptr<runtime::Slot> slot) = 0;
    /// Nothing more is to be made of the slide.
    virtual void drop() = 0;
    virtual bool dropped() const = 0;
    /// As `Helpers::for_all`.
    virtual void for_all(std::size_t count, const std::function<void(std::size_t)>& work) = 0;
  };

  SlideNetwork(const Network& network, const NetworkPlan& plan, const StitchConfig& config,
               std::shared_ptr<const TissueTiles> tissue);

  const NetworkPlan& plan() const noexcept { return plan_; }

  /// Called when it should be advanced; set before anything is put in. Any thread.
  std::function<void()> wake;
  /// Called at the end of one that was admitted.
  std::function<void()> leave;
  ~SlideNetwork();
  SlideNetwork(const SlideNetwork&) = delete;
  SlideNetwork& operator=(const SlideNetwork&) = delete;

  /// The level's next rows. `owner` is let go when they aren't needed any more, `keeper` by `let_go`. Thread-safe, as
  /// the next.
  void put(const ConstHostView& rows, std::shared_ptr<const void> owner, std::shared_ptr<void> keeper);
  /// A batch that was computed.
  void put(std::unique_ptr<NetworkBatch> batch);
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
  /// Tiles that are absent because they failed, and why; asked as `failure`.
  const std::map<std::int64_t, std::string>& absent() const noexcept { return absent_; }
  /// Of a network of vectors: those of the tiles that were given to it, one after the other.
  const std::vector<float>& vectors() const noexcept { return vectors_; }
  /// The numbers of these tiles.
  const std::vector<std::int64_t>& given() const noexcept { return given_; }

 private:
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
  bool take_values(NetworkBatch& batch, Surroundings& by);
  bool make_rows(Surroundings& by);
  bool take_rows(Surroundings& by);
  bool take_rows(Rows& band, Surroundings& by);
  bool cut_tiles(Surroundings& by);
  void next_tile_row(Surroundings& by);
  void send(Surroundings& by);
  bool is_skipped(std::int64_t tile) const;
  bool is_late() const;
  void lose(std::int64_t tile, const std::string& cause, Surroundings& by);
  void judge(const NetworkBatch& batch);
  void note(std::int64_t tile, const std::string& cause);
  std::int64_t wrong_tile(const NetworkBatch& batch) const;
  std::size_t values_of_tile() const noexcept;

  const NetworkTiles tiles_;
  const NetworkOutput output_;
  const NetworkPlan plan_;
  const StitchConfig config_;
  const std::shared_ptr<const TissueTiles> tissue_;
  const bool makes_image_;

  std::atomic<unsigned> signals_{0};
  std::mutex mutex_;
  std::deque<Rows> rows_put_;                               ///< guarded by mutex_
  std::shared_ptr<void> keeper_;                            ///< guarded by mutex_
  std::vector<std::unique_ptr<NetworkBatch>> batches_put_;  ///< guarded by mutex_

  // Used by who advances it.
  bool admitted_ = false;
  runtime::Clock::time_point begun_;  ///< when it was
  bool ended_ = false;
  bool left_ = false;  ///< by a stop
  std::deque<Rows> bands_;
  std::vector<std::unique_ptr<NetworkBatch>> batches_;  ///< computed, with tiles that have no room yet
  std::unique_ptr<AreaResampler> resampler_;
  std::unique_ptr<std::uint8_t[]> rows_;  ///< of the tiles' resolution, in full width
  std::int64_t first_row_ = 0;            ///< that is held
  std::int64_t held_ = 0;                 ///< rows
  std::int64_t tile_row_ = 0;             ///< that is being cut
  std::int64_t column_ = 0;               ///< of its next tile
  std::unique_ptr<NetworkBatch> filling_;
  std::unique_ptr<StitchBand> band_;
  std::int64_t made_ = 0;  ///< rows of the image
  std::unique_ptr<runtime::SlotPool> chunks_;
  std::shared_ptr<runtime::Slot> chunk_;  ///< that is being filled
  std::int64_t tiles_left_ = 0;           ///< that haven't come back
  std::vector<std::int64_t> given_;
  std::vector<float> vectors_;
  std::map<std::int64_t, std::string> absent_;  ///< tiles that failed, and why
  std::size_t late_ = 0;                        ///< tiles that weren't given to the network, as its time was over
  std::int64_t failed_tile_ = -1;               ///< the first that failed
  std::string cause_;
  std::string broken_;  ///< why it couldn't go on, whatever the tile
};

}  // namespace slidestream
