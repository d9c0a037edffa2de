#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <tuple>
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

/// What becomes of a step that found its GPU full.
struct ScheduleFull {
  /// No other fragment is computed or network loaded there: the step is still begun, and waits for others' memory. Else
  /// it ended, and its fragment waits again.
  bool alone = false;
  std::vector<std::size_t> unload;  ///< networks that make way; nobody uses them
};

/// Decides what is in memory and what is computed next. It counts memory and does no work. Not thread-safe. A decision
/// takes time for what changes, and not for all fragments that wait.
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
/// time, in memory that no network with work has. It begins with that while the first volumes are read. Where all that
/// is left is on other GPUs, it loads one of these networks ahead as soon as it has begun with its own, so that GPUs
/// end at about the same time.
///
/// Others may take a GPU's memory. One that was found full gets no more than it has then, in memory and fragments at a
/// time, and loads nothing ahead. With each few fragments that it computes it gets a little more, up to what it had.
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
  /// It couldn't be loaded. A step goes on to its end.
  void not_loaded(std::size_t network, std::size_t place);
  /// A step ended. \return whether it was the last one of its volume that was left or being computed
  bool done(const FragmentTask& task, std::size_t place = 0);

  /// A step finds its GPU full. \param is_loaded  whether its network is
  ScheduleFull full(const FragmentTask& task, std::size_t place, bool is_loaded);
  /// A load ahead finds its GPU full, and ended. \return the networks that make way; nobody uses them
  std::vector<std::size_t> full_ahead(std::size_t network, std::size_t place);
  /// The GPU of a step that is alone stays full: nothing more is begun there, and the fragment waits for another GPU.
  /// \return the networks that make way; nothing where it is the only GPU that is left: then nothing changes
  std::optional<std::vector<std::size_t>> close(const FragmentTask& task, std::size_t place, bool is_loaded);
  /// A closed GPU has room again for any network with a fragment: it begins with one, as one that was full.
  void open(std::size_t place);

  /// Bytes of the host that are reserved, or of a GPU.
  std::uint64_t used() const noexcept { return host_.used; }
  std::uint64_t used_of_gpu(std::size_t place) const noexcept { return places_[place].own.used; }
  std::uint64_t budget() const noexcept { return host_.budget; }
  /// How often the loading of a network was begun.
  std::size_t loads() const noexcept { return loads_; }

 private:
  enum class State { absent, loading, loaded };
  /// An absent network with work: whether no other GPU has it, fragments that wait, number from the end. The greatest
  /// is loaded first.
  using Wanted = std::tuple<bool, std::size_t, std::size_t>;
  /// A network that nobody uses: whether it has no work, its last use, number from the end. The greatest makes way
  /// first.
  using Idle = std::tuple<bool, std::uint64_t, std::size_t>;
  struct NetworkState {
    NetworkNeeds needs;
    State state = State::absent;
    std::size_t running = 0;
    std::uint64_t last_used = 0;
    // Where it is filed in its place.
    bool usable = false;
    std::optional<Wanted> wanted;
    std::optional<Idle> idle;
  };
  struct Memory {
    std::uint64_t budget = 0;
    std::uint64_t used = 0;
  };
  struct Place {
    std::vector<NetworkState> networks;
    Memory own;                ///< of a GPU
    std::uint64_t whole = 0;   ///< its budget where it wasn't full
    std::size_t most = 0;      ///< fragments at a time; 0: closed
    std::size_t computed = 0;  ///< fragments since it was full, or got more
    std::size_t running = 0;
    std::optional<std::size_t> ahead;  ///< the network that is loaded ahead
    std::set<std::size_t> usable;      ///< loaded networks with work that may compute one more fragment
    std::set<Wanted, std::greater<>> wanted;
    std::set<Idle, std::greater<>> idle;
    std::uint64_t idle_bytes = 0;
    std::size_t spare = 0;  ///< idle networks with work
  };
  struct VolumeState {
    std::size_t number = 0;
    std::uint64_t bytes = 0;
    bool ready = false;
    std::set<std::size_t> left;       ///< fragments that weren't begun
    std::size_t end = 0;              ///< of fragments that may be begun
    std::size_t first_layer = 0;      ///< that isn't done
    std::vector<std::size_t> layers;  ///< fragments of each layer that aren't done
    std::size_t running = 0;
  };

  std::size_t networks() const noexcept { return places_.front().networks.size(); }
  std::size_t network_of(std::size_t fragment) const noexcept { return networks() == 1 ? 0 : fragment; }
  Memory& memory(Place& place) noexcept { return has_gpus_ ? place.own : host_; }
  bool is_elsewhere(std::size_t network, const Place& place) const noexcept;
  bool is_narrow(const Place& place) const noexcept { return place.most < workers_ || place.own.budget < place.whole; }
  std::size_t layer_of(std::size_t fragment) const noexcept { return fragment * layers_ / fragments_; }
  VolumeState& volume(std::size_t number);
  void count_all();
  void file(std::size_t network);
  void file(Place& place, std::size_t network);
  std::optional<ScheduleStep> next_at(Place& place);
  ScheduleStep begin(Place& place, std::size_t network);
  void end(const FragmentTask& task, Place& place);
  void open_layers(VolumeState& volume);
  void take_back(const FragmentTask& task, std::size_t place, bool is_loaded);
  void widen(Place& place);
  std::vector<std::size_t> narrow(Place& place, std::size_t keep);
  std::optional<std::vector<std::size_t>> make_way(Place& place, std::uint64_t bytes, std::size_t keep,
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
  std::uint64_t most_of_one_ = 0;   ///< bytes of a network with a fragment
  std::uint64_t least_of_one_ = 0;  ///< likewise
  std::uint64_t most_run_ = 0;
  std::vector<VolumeState> volumes_;  ///< admitted ones, in the order of admission
  bool are_being_read_ = true;        ///< no volume is ready
  /// Fragments that wait and may be begun, by network; on GPUs also of volumes that aren't ready, while none is.
  std::vector<std::size_t> waiting_;
};

}  // namespace slidestream::volume
