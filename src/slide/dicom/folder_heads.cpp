#include "slide/dicom/folder_heads.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <slidestream/error.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "slide/dicom/instance.hpp"

namespace slidestream::dicom {

namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;

constexpr const char* suffix = ".dcm";

/// The coarsest steps in which file systems keep times.
constexpr auto settling = std::chrono::seconds(2);

std::atomic<std::uint64_t> count_of_heads{0};
std::atomic<std::uint64_t> count_of_looks{0};

std::int64_t nanoseconds(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

bool begins_like_dicom(const fs::path& path) {
  const File file(path);
  std::array<std::byte, first_bytes> first;
  return has_prefix(std::span(first).first(file.read_some(0, first)));
}

/// Tells when a stamp has been there for so long that a later change gives another one. A file's time may be ahead of
/// the clock for ever, for it may be another machine's: then it is what this process has seen that counts.
class Settling {
 public:
  /// Before what has the stamp is read. \returns whether what is read then is good as long as the stamp is
  bool note(const Stamp& stamp) {
    const auto now = SteadyClock::now();
    if (!seen_ || stamp != stamp_) seen_ = now;
    stamp_ = stamp;
    const std::int64_t wall =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    const std::int64_t enough = std::chrono::nanoseconds(settling).count();
    return now - *seen_ > settling || wall - stamp.changed > enough;
  }

 private:
  Stamp stamp_;
  std::optional<SteadyClock::time_point> seen_;
};

/// What is remembered of one folder. What a call costs besides what changed: two stamps and those of the files that
/// changed lately, and the names where some came or went.
class KnownFolder {
 public:
  std::shared_ptr<const FolderHeads> read(const fs::path& folder, const std::function<bool()>& give_up) {
    std::unique_lock lock(mutex_, std::defer_lock);
    while (!lock.try_lock_for(std::chrono::milliseconds(20))) {
      if (give_up && give_up()) throw_stopped(folder, "was being listed");
    }
    const std::optional<Stamp> stamp = stamp_of(folder);
    if (!stamp || !names_are_settled_ || *stamp != stamp_) {
      names_are_settled_ = false;
      const bool settles = stamp && settling_.note(*stamp);
      list(folder, give_up);
      // A file may have taken the place of one that is known, at the same time as another for the last time now.
      all_are_due_ = all_are_due_ || settles || !stamp || *stamp != stamp_;
      if (stamp) stamp_ = *stamp;
      names_are_settled_ = settles;
    }
    look(folder, give_up);
    return held_;
  }

  std::size_t size() const noexcept { return size_.load(); }

 private:
  struct Known {
    Head head;
    Settling settling;
    std::uint64_t round = 0;                             ///< that it was listed in last
    std::optional<SteadyClock::time_point> fails_since;  ///< the storage keeps it from being read
  };

  void list(const fs::path& folder, const std::function<bool()>& give_up) {
    ++round_;
    std::error_code code;
    fs::directory_iterator entries(folder, code);
    for (; !code && entries != fs::directory_iterator(); entries.increment(code)) {
      if (give_up && give_up()) throw_stopped(folder, "was being listed");
      const std::string name = entries->path().filename().string();
      std::error_code ignored;
      const bool is_named_so = has_suffix(name, suffix);
      if (name.starts_with('.') || (has_slide_suffix(name) && !is_named_so) || !entries->is_regular_file(ignored)) {
        continue;
      }
      const auto [known, is_new] = known_.try_emplace(name);
      known->second.round = round_;
      if (is_new) unsettled_.insert(name);
    }
    if (code) throw_system_error(folder, "can't be listed", code.value());
    const auto is_gone = [this](const auto& entry) { return entry.second.round != round_; };
    if (std::erase_if(known_, is_gone) > 0) held_ = nullptr;
    std::erase_if(unsettled_, [this](const std::string& name) { return !known_.contains(name); });
    size_ = known_.size();
  }

  /// Looks at files that changed lately. At all others, too, where one may have been replaced; in a large folder that
  /// takes long, and a twentieth of the time is spent on it at most.
  void look(const fs::path& folder, const std::function<bool()>& give_up) {
    const auto begin = SteadyClock::now();
    const bool all = all_are_due_ && begin >= next_of_all_;
    const bool had_fault = fault_ != nullptr;
    fault_ = nullptr;
    if (all) {
      for (auto& [name, known] : known_) look_at(folder, name, known, give_up);
      const auto end = SteadyClock::now();
      next_of_all_ = end + 20 * (end - begin);
      all_are_due_ = false;
    } else {
      const std::vector<std::string> names(unsettled_.begin(), unsettled_.end());
      for (const std::string& name : names) look_at(folder, name, known_.at(name), give_up);
    }
    if (held_ != nullptr && !had_fault && fault_ == nullptr) return;
    auto held = std::make_shared<FolderHeads>();
    for (const auto& [name, known] : known_) {
      const Head& head = known.head;
      if (head.file || head.is_unreadable || head.is_no_slide) held->heads.emplace_back(name, head);
    }
    held->fault = fault_;
    held_ = std::move(held);
  }

  void look_at(const fs::path& folder, const std::string& name, Known& known, const std::function<bool()>& give_up) {
    const fs::path path = folder / name;
    const std::optional<Stamp> stamp = stamp_of(path);
    ++count_of_looks;
    if (stamp && known.head.is_settled && *stamp == known.head.stamp) return;
    unsettled_.insert(name);
    const Head before = std::exchange(known.head, {});
    const bool settles = stamp && known.settling.note(*stamp);
    if (stamp) known.head.stamp = *stamp;
    const bool is_named_so = has_suffix(name, suffix);
    try {
      if (is_named_so || begins_like_dicom(path)) known.head.file = read_head(path, give_up);
      known.head.is_no_slide = is_named_so && !known.head.file;
      known.head.is_settled = settles;
      known.fails_since.reset();
    } catch (const StoppedError&) {
      throw;
    } catch (const DescriptorError&) {
      if (fault_ == nullptr) fault_ = std::current_exception();
      known.head.is_unreadable = is_named_so;
    } catch (const StorageError&) {
      // It may be a level of any slide. What doesn't pass is told of, and holds up none.
      const auto now = SteadyClock::now();
      if (!known.fails_since) known.fails_since = now;
      if (now - *known.fails_since < settling && fault_ == nullptr) fault_ = std::current_exception();
      known.head.is_unreadable = is_named_so;
    } catch (const SlideError&) {
      known.head.is_unreadable = is_named_so;
      known.head.is_settled = settles;
      known.fails_since.reset();
    }
    if (known.head.file) known.head.file->path = name;
    if (known.head.is_settled) unsettled_.erase(name);
    const auto says = [](const Head& head) {
      return std::tuple(head.is_settled, head.is_unreadable, head.is_no_slide, head.file);
    };
    if (says(known.head) != says(before)) held_ = nullptr;
  }

  std::timed_mutex mutex_;  ///< of what follows, without `size_`
  Stamp stamp_;
  Settling settling_;
  bool names_are_settled_ = false;
  bool all_are_due_ = false;
  SteadyClock::time_point next_of_all_;
  std::map<std::string, Known> known_;
  std::set<std::string> unsettled_;  ///< of these names
  std::exception_ptr fault_;         ///< of the last look
  std::shared_ptr<const FolderHeads> held_;
  std::uint64_t round_ = 0;
  std::atomic<std::size_t> size_{0};
};

/// The folders that were read. Bounded: a run may have many.
class KnownFolders {
 public:
  std::shared_ptr<KnownFolder> at(const fs::path& folder) {
    std::error_code code;
    const fs::path key = fs::absolute(folder, code);
    const std::lock_guard lock(mutex_);
    if (const auto known = folders_.find(key); known != folders_.end()) return known->second;
    std::size_t files = 0;
    for (const auto& [path, known] : folders_) files += known->size();
    if (folders_.size() >= most_folders || files > most_files) folders_.clear();
    return folders_[key] = std::make_shared<KnownFolder>();
  }

 private:
  static constexpr std::size_t most_folders = 1024;
  static constexpr std::size_t most_files = std::size_t{1} << 16;
  std::mutex mutex_;
  std::map<fs::path, std::shared_ptr<KnownFolder>> folders_;
};

KnownFolders& known_folders() {
  static KnownFolders all;
  return all;
}

}  // namespace

std::optional<Stamp> stamp_of(const fs::path& path) {
  struct ::stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return Stamp{static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino),
               static_cast<std::int64_t>(status.st_size), nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

const Head* FolderHeads::find(const std::string& name) const {
  const auto found = std::ranges::lower_bound(heads, name, {}, &std::pair<std::string, Head>::first);
  return found != heads.end() && found->first == name ? &found->second : nullptr;
}

std::optional<SeriesFile> read_head(const fs::path& path, const std::function<bool()>& give_up) {
  constexpr double most_seconds = 1.0;
  ++count_of_heads;
  OpenOptions options;
  options.give_up = give_up;
  const File file(path);
  OpenBudget budget(file.path(), file.size(), options, most_seconds);
  Reader reader(file, path.string(), budget, OpenBudget::most_entries);
  const Instance instance = read_instance(reader, Part::series);
  if (instance.sop_class.empty()) reader.refuse("SOPClassUID (0008,0016) is missing");
  if (instance.sop_class != whole_slide_class) return std::nullopt;
  if (instance.series.empty()) reader.refuse("SeriesInstanceUID (0020,000E) is missing");
  const bool is_level = instance.flavour() == "VOLUME";
  return SeriesFile{path, instance.series, is_level ? instance.area() : 0, instance.shows_label,
                    instance.frames_before};
}

std::shared_ptr<const FolderHeads> heads_of(const fs::path& folder, const std::function<bool()>& give_up) {
  return known_folders().at(folder)->read(folder, give_up);
}

std::uint64_t heads_read() noexcept { return count_of_heads.load(); }
std::uint64_t files_looked_at() noexcept { return count_of_looks.load(); }

}  // namespace slidestream::dicom
