#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace slidestream::volume {

/// Memory that a network takes, in bytes, where it is loaded.
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

/// GPUs that have the networks.
struct ScheduleGpus {
  std::vector<std::uint64_t> budgets;  ///< bytes of each; empty: networks are in the host's memory
  std::size_t runs = 1;                ///< fragments that a network computes at a time on one of them, at most
};

/// What one worker does next.
struct ScheduleStep {
  FragmentTask task;
  std::size_t place = 0;            ///< the GPU; 0 for the host
  std::vector<std::size_t> unload;  ///< networks that make way first; nobody uses them
  bool load = false;                ///< the task's network, after that
};

/// A network that a GPU loads while it computes with others, or while the first volumes are read.
struct ScheduleLoad {
  std::size_t network = 0;
  std::size_t place = 0;            ///< the GPU
  std::vector<std::size_t> unload;  ///< networks that make way first; nobody uses them, and they have no work
};

/// Decides what is in memory and what is computed next. It counts memory and does no work. Not thread-safe.
///
/// Each volume, network and running fragment reserves its memory, and what doesn't fit waits. A volume is only admitted
/// if room for one more network with one fragment is left. So one of the fragments can always be computed: with nothing
/// running, all networks may make way.
///
/// Loaded networks come first, the lowest number of those with work. So a network takes its fragment of all volumes
/// that are there before another one is loaded. Of those that aren't loaded the one with the most work comes first.
///
/// On GPUs networks have memory of their own, and volumes all of the host's. The GPU that computes the fewest fragments
/// is next. A network that another GPU has is loaded once more only for two fragments or more, and after all others.
/// Workers end with their networks at about the same time. So each GPU loads as many ahead as it has workers, one at a
/// time, in memory that no network with work has. It begins with that while the first volumes are read.
class Schedule {
 public:
  /// \param networks  one, or one per fragment. \param budget  bytes of the host
  /// \param workers  fragments computed at a time, on the host or on each GPU
  /// \param layers  parts of a volume's fragments, in their order, of which two are computed at a time: none is begun
  /// while
  ///   one more than a layer before it is left. 0: any fragment may be begun
  Schedule(const std::vector<NetworkNeeds>& networks, std::size_t fragments, std::uint64_t budget, std::size_t workers,
           const ScheduleGpus& gpus = {}, std::size_t layers = 0);

  /// Bytes that are left for a volume where nothing else is in memory; 0: no fragment can be computed.
  std::uint64_t most_for_volume() const noexcept;
  /// Reserves memory for a volume of a new number. \return the networks that make way first, which nobody uses; nothing
  /// if the volume doesn't fit now. It never fits above `most_for_volume`.
  std::optional<std::vector<std::size_t>> admit(std::size_t number, std::uint64_t bytes);
  /// Its samples are there: its fragments may be computed.
  void ready(std::size_t number);
  /// No more of its fragments are begun.
  void drop(std::size_t number);
  /// It left memory. None of its fragments is being computed.
  void release(std::size_t number);

  /// What a worker does next; nothing: wait until something of the above or below happens.
  std::optional<ScheduleStep> next();
  /// What a GPU loads ahead, if anything. Ask when `next` has nothing.
  std::optional<ScheduleLoad> next_load();
  /// The network of a step with `load`, or of a load ahead, was loaded.
  void loaded(std::size_t network, std::size_t place = 0);
  /// A step ended. \return whether it was the last one of its volume that was left or being computed
  bool done(const FragmentTask& task, std::size_t place = 0);

  /// Bytes of the host that are reserved, or of a GPU.
  std::uint64_t used() const noexcept { return host_.used; }
  std::uint64_t used_of_gpu(std::size_t place) const noexcept { return places_[place].own.used; }
  std::uint64_t budget() const noexcept { return host_.budget; }
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
  struct Memory {
    std::uint64_t budget = 0;
    std::uint64_t used = 0;
  };
  struct Place {
    std::vector<NetworkState> networks;
    Memory own;  ///< of a GPU
    std::size_t running = 0;
    std::optional<std::size_t> ahead;  ///< the network that is loaded ahead
  };
  struct VolumeState {
    std::size_t number = 0;
    std::uint64_t bytes = 0;
    bool ready = false;
    std::vector<std::size_t> left;    ///< fragments that weren't begun, ascending
    std::vector<std::size_t> layers;  ///< fragments of each layer that aren't done
    std::size_t running = 0;
  };

  std::size_t networks() const noexcept { return places_.front().networks.size(); }
  std::size_t network_of(std::size_t fragment) const noexcept { return networks() == 1 ? 0 : fragment; }
  Memory& memory(Place& place) noexcept { return has_gpus_ ? place.own : host_; }
  bool is_elsewhere(std::size_t network, const Place& place) const noexcept;
  std::size_t layer_of(std::size_t fragment) const noexcept { return fragment * layers_ / fragments_; }
  bool may_begin(const VolumeState& volume, std::size_t fragment) const noexcept;
  /// Fragments that wait and may be begun, by network. \param also_unread  of volumes that aren't ready, too
  std::vector<std::size_t> work(bool also_unread = false) const;
  VolumeState& volume(std::size_t number);
  std::optional<ScheduleStep> next_at(Place& place, const std::vector<std::size_t>& waiting);
  ScheduleStep begin(Place& place, std::size_t network);
  std::optional<std::size_t> to_load(const Place& place, const std::vector<std::size_t>& waiting) const;
  std::optional<std::vector<std::size_t>> make_way(Place& place, std::uint64_t bytes,
                                                   const std::vector<std::size_t>& waiting, std::size_t keep,
                                                   bool keeps_work = false);

  static constexpr auto none = static_cast<std::size_t>(-1);

  bool has_gpus_;
  std::size_t runs_;  ///< of a network at a time; 0: any number
  std::vector<Place> places_;
  std::size_t fragments_;
  std::size_t layers_;
  Memory host_;
  std::size_t workers_;
  std::uint64_t clock_ = 0;
  std::size_t loads_ = 0;
  std::vector<VolumeState> volumes_;  ///< admitted ones, in the order of admission
};

}  // namespace slidestream::volume
