#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace slidestream::volume {

/// Memory that a network takes, in bytes.
struct NetworkNeeds {
  std::uint64_t loaded = 0;  ///< as long as it is loaded
  std::uint64_t run = 0;     ///< more, for each fragment that it computes
};

/// A network's work on a fragment of a volume.
struct FragmentTask {
  std::size_t volume = 0;
  std::size_t fragment = 0;
  std::size_t network = 0;
};

/// What one worker does next.
struct ScheduleStep {
  FragmentTask task;
  std::vector<std::size_t> unload;  ///< networks that make way first; nobody uses them
  bool load = false;                ///< the task's network, after that
};

/// Decides what is in memory and what is computed next. It counts memory and does no work. Not thread-safe.
///
/// Each volume, network and running fragment reserves its memory, and what doesn't fit waits. A volume is only admitted
/// if room for one more network with one fragment is left. So one of the fragments can always be computed: with nothing
/// running, all networks may make way.
///
/// Loaded networks come first, the lowest number of those with work. So a network takes its fragment of all volumes
/// that are there before another one is loaded. Of those that aren't loaded the one with the most work comes first.
class Schedule {
 public:
  /// \param networks  one, or one per fragment. \param budget  bytes. \param workers  fragments computed at a time
  Schedule(std::vector<NetworkNeeds> networks, std::size_t fragments, std::uint64_t budget, std::size_t workers);

  /// Bytes that are left for a volume where nothing else is in memory; 0: no fragment can be computed.
  std::uint64_t most_for_volume() const noexcept;
  /// Reserves memory for a volume of a new number. \return the networks that make way first, which nobody uses; nothing
  /// if the volume doesn't fit now. It never fits above `most_for_volume`.
  std::optional<std::vector<std::size_t>> admit(std::size_t volume, std::uint64_t bytes);
  /// Its samples are there: its fragments may be computed.
  void ready(std::size_t volume);
  /// No more of its fragments are begun.
  void drop(std::size_t volume);
  /// It left memory. None of its fragments is being computed.
  void release(std::size_t volume);

  /// What a worker does next; nothing: wait until something of the above or below happens.
  std::optional<ScheduleStep> next();
  /// The network of a step with `load` was loaded.
  void loaded(std::size_t network);
  /// A step ended. \return whether it was the last one of its volume that was left or being computed
  bool done(const FragmentTask& task);

  std::uint64_t used() const noexcept { return used_; }
  std::uint64_t budget() const noexcept { return budget_; }
  /// How often a network was loaded.
  std::size_t loads() const noexcept { return loads_; }

 private:
  enum class State { absent, loading, loaded };
  struct NetworkState {
    NetworkNeeds needs;
    State state = State::absent;
    std::size_t running = 0;
    std::uint64_t last_used = 0;
  };
  struct VolumeState {
    std::size_t number = 0;
    std::uint64_t bytes = 0;
    bool ready = false;
    std::vector<std::size_t> left;  ///< fragments that weren't begun, ascending
    std::size_t running = 0;
  };

  std::size_t network_of(std::size_t fragment) const noexcept { return networks_.size() == 1 ? 0 : fragment; }
  /// Fragments that wait, by network.
  std::vector<std::size_t> work() const;
  VolumeState& volume(std::size_t number);
  ScheduleStep begin(std::size_t network);
  std::optional<std::vector<std::size_t>> make_way(std::uint64_t bytes, const std::vector<std::size_t>& waiting,
                                                   std::size_t keep);

  static constexpr auto none = static_cast<std::size_t>(-1);

  std::vector<NetworkState> networks_;
  std::size_t fragments_;
  std::uint64_t budget_;
  std::size_t workers_;
  std::uint64_t used_ = 0;
  std::uint64_t clock_ = 0;
  std::size_t loads_ = 0;
  std::vector<VolumeState> volumes_;  ///< admitted ones, in the order of admission
};

}  // namespace slidestream::volume
