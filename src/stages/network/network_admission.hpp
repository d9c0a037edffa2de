#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace slidestream {

/// Which slides' tiles may be in memory. So many slides have a place. Where batches are shared, a slide that has given
/// all its tiles steps aside, and others get its place, as long as there is room: for small ones by their tiles, for
/// one of the others while it waits for a batch to be filled. Thread-safe.
///
/// Slides that are aside need nothing of others but that batches are filled. Those that have places may wait for what
/// is held by slides that aren't let in. So that one of them always comes to its end none may wait for a batch to be
/// filled: where it can't step aside, `make_way` has the batch go as it is.
class NetworkAdmission {
 public:
  using Wake = std::function<void()>;
  /// Slides that step aside, at most: they have files open.
  static constexpr std::int64_t most_aside = 256;
  /// Of these, those that aren't small.
  static constexpr std::int64_t most_large_aside = 1;

  /// Of a slide.
  struct Place {
    std::int64_t tiles = 0;
    bool small = false;  ///< they are fewer than a batch
    // Used by the admission.
    bool taken = false;
    bool aside = false;
    bool parked = false;
  };

  /// \param tiles  of small slides that are aside, at most; 0: none steps aside.
  NetworkAdmission(std::size_t places, std::int64_t tiles, std::function<void()> make_way)
      : places_(places), tiles_(tiles), make_way_(std::move(make_way)) {}

  /// Whether the slide has a place, or has stepped aside from it. False: `wake` is called when there may be one.
  bool take(Place& place, const Wake& wake);
  /// All its tiles are in batches.
  void all_given(Place& place);
  /// Whether all that it waits for is in batches that aren't sent, for want of others' tiles.
  void park(Place& place, bool parked);
  /// The slide came to its end, with a place or without.
  void leave(Place& place);

 private:
  void step_aside();
  bool has_room(const Place& place) const noexcept;
  bool stands_still() const noexcept;

  const std::size_t places_;
  const std::int64_t tiles_;
  const std::function<void()> make_way_;
  std::mutex mutex_;  ///< of what follows
  std::size_t taken_ = 0;
  std::int64_t parked_ = 0;  ///< of those with places
  std::int64_t aside_ = 0;
  std::int64_t parked_aside_ = 0;   ///< of these
  std::int64_t large_aside_ = 0;    ///< of these
  std::int64_t tiles_aside_ = 0;    ///< of small ones
  std::vector<Place*> next_aside_;  ///< that would step aside
  std::vector<Wake> waiting_;
};

}  // namespace slidestream
