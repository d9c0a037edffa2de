#include "cli/verify_command.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cli/signals.hpp"
#include "cli/terminal.hpp"
#include "config/printable.hpp"
#include "config/read_file.hpp"
#include "config/suggest.hpp"
#include "ledger/database.hpp"
#include "ledger/schema.hpp"
#include "ledger/versions.hpp"
#include "output/text.hpp"
#include "output/views.hpp"
#include "report/run_reader.hpp"
#include "sink/background.hpp"
#include "sink/file_digest.hpp"
#include "system/control_groups.hpp"

namespace slidestream::cli {

namespace {

namespace fs = std::filesystem;

struct VerifyOptions {
  std::string folder;
  int jobs = 0;
  bool quiet = false;
};

/// A file, or a folder of files, of a slide that is done.
struct Product {
  std::string file;  ///< as the ledger has it
  PathContent written;
};

/// A slide's map, whose values the ledger has.
struct Map {
  std::int64_t id = 0;
  SlideResult slide;
};

/// What changes with each change of a file, or of one in a folder: the bytes, and when the last one was changed. Empty:
/// it isn't there.
std::string state_of(const fs::path& path) {
  std::uint64_t bytes = 0;
  std::pair<std::int64_t, std::int64_t> newest;
  const auto look_at = [&](const fs::path& each) {
    struct ::stat about {};
    if (::lstat(each.c_str(), &about) != 0) return false;
    if (!S_ISDIR(about.st_mode)) bytes += static_cast<std::uint64_t>(about.st_size);
    newest = std::max(newest, std::pair<std::int64_t, std::int64_t>(about.st_ctim.tv_sec, about.st_ctim.tv_nsec));
    return true;
  };
  if (!look_at(path)) return {};
  std::error_code code;
  for (fs::recursive_directory_iterator entry(path, code); !code && entry != fs::recursive_directory_iterator();
       entry.increment(code)) {
    if (!look_at(entry->path())) return {};
  }
  if (code && fs::is_directory(path)) return {};
  return std::to_string(bytes) + " " + std::to_string(newest.first) + "." + std::to_string(newest.second);
}

/// What an interrupted verification has found in order. Each line is a size, a time, a digest and a file.
class Record {
 public:
  /// \throws ConfigError where something else has its name
  explicit Record(const fs::path& folder) : path_(folder / "verify.partial.list") {
    constexpr std::size_t most_bytes = std::size_t{1} << 30;
    std::error_code code;
    if (fs::symlink_status(path_, code).type() == fs::file_type::not_found) return;
    std::istringstream in(read_file(path_, most_bytes, FileOrigin::own));
    is_there_ = true;
    std::string line;
    while (std::getline(in, line)) {
      std::istringstream fields(line);
      std::string size, time, digest, file;
      const bool is_whole = fields >> size >> time >> digest && fields.get() == ' ' && std::getline(fields, file);
      if (is_whole) known_[file] = size + " " + time + " " + digest;
      // The last line may be cut short.
      if (!is_whole && !in.eof()) throw ConfigError(path_.string() + ": isn't what an interrupted verification leaves");
    }
  }
  ~Record() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  /// Whether the file was found in order, and is as it was then.
  bool has(const std::string& state, const Product& product) const {
    const auto found = known_.find(product.file);
    return found != known_.end() && found->second == state + " " + to_hexadecimal(product.written.digest);
  }

  /// \param state  before it was read. Thread-safe.
  void add(const std::string& state, const Product& product) {
    // A name with a line break would be two lines.
    if (product.file.find('\n') != std::string::npos) return;
    const std::string line = state + " " + to_hexadecimal(product.written.digest) + " " + product.file + "\n";
    const std::lock_guard lock(mutex_);
    if (descriptor_ < 0) open();
    // What isn't written down is looked at again.
    if (descriptor_ >= 0) [[maybe_unused]]
      const auto ignored = ::write(descriptor_, line.data(), line.size());
  }

  void remove() noexcept {
    if (is_there_ || descriptor_ >= 0) ::unlink(path_.c_str());
  }

 private:
  void open() {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    struct ::stat about {};
    if (descriptor_ < 0 || (::fstat(descriptor_, &about) == 0 && S_ISREG(about.st_mode) && about.st_nlink == 1)) return;
    ::close(descriptor_);
    descriptor_ = -1;
  }

  fs::path path_;
  bool is_there_ = false;                               ///< from an interrupted verification
  std::unordered_map<std::string, std::string> known_;  ///< what stands before a file, by file
  std::mutex mutex_;
  int descriptor_ = -1;  ///< guarded by mutex_
};

/// Says that a file, or something in a folder, is a link, which may lead anywhere; empty: nothing is.
std::string link_at(const fs::path& path) {
  std::error_code code;
  const fs::file_status status = fs::symlink_status(path, code);
  if (fs::is_symlink(status)) return "is a link, which isn't followed";
  if (!fs::is_directory(status)) return {};
  fs::recursive_directory_iterator entry(path, code);
  for (; !code && entry != fs::recursive_directory_iterator(); entry.increment(code)) {
    std::error_code ignored;
    if (!entry->is_symlink(ignored)) continue;
    return "has the link " + one_line(entry->path().lexically_relative(path).string()) + ", which isn't followed";
  }
  return {};
}

/// What differs; empty: nothing.
std::string difference_of(const fs::path& path, const Product& product) {
  const auto bytes = path_bytes(path);
  if (!bytes) return "is missing, or can't be read";
  if (*bytes != product.written.bytes) {
    return "has " + std::to_string(*bytes) + " bytes, and had " + std::to_string(product.written.bytes);
  }
  const auto found = path_content(path);
  if (!found) return "can't be read";
  if (found->digest == product.written.digest) return {};
  return "has the digest " + to_hexadecimal(found->digest) + ", and had " + to_hexadecimal(product.written.digest);
}

std::string difference_of(report::RunReader& reader, Config config, Map& map, const fs::path& path) {
  if (!reader.read_map(map.id, map.slide.map)) return "can't be compared: the ledger's values of it are damaged";
  config.output.maps = path.extension() == ".tif" ? MapFormat::tiff : MapFormat::npy;
  const std::vector<std::byte> expected = map_bytes(config, map.slide);
  try {
    const std::string found = read_file(path, expected.size(), FileOrigin::own);
    const auto* const bytes = reinterpret_cast<const std::byte*>(found.data());
    return std::equal(expected.begin(), expected.end(), bytes, bytes + found.size()) ? "" : "isn't what was written";
  } catch (const ConfigError&) {
    return "is missing, has another size, or can't be read";
  }
}

/// \throws ConfigError where another version's digests are of another kind.
void check_version(const fs::path& ledger) {
  const std::unique_ptr<Database> database = open_to_read(ledger);
  Statement version(*database, "PRAGMA user_version");
  const std::int64_t number = version.step() ? version.integer(0) : 0;
  if (number == current_ledger_version) return;
  throw ConfigError(ledger.string() +
                    ": another version of the program wrote it, whose digests are of another kind; "
                    "verify it with that version");
}

int verify(const VerifyOptions& options) {
  const fs::path folder = options.folder;
  check_version(folder / ledger_name);
  report::RunReader reader(folder);
  std::vector<Product> products;
  std::vector<Map> maps;
  std::size_t slides = 0;
  reader.for_each([&](const report::LedgerSlide& slide) {
    if (!slide.result.done) return;
    ++slides;
    for (const Artifact& artifact : slide.result.artifacts) {
      products.push_back({artifact.file, {artifact.bytes, artifact.digest}});
    }
    if (slide.result.map_file.empty()) return;
    maps.push_back({slide.id, slide.result});
    maps.back().slide.sums = {};
  });
  RunControl control;
  const SignalScope signals(control);
  Record record(folder);
  std::atomic<std::size_t> differing{0};
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> known{0};
  std::atomic<std::size_t> looked{0};
  const int jobs = options.jobs > 0 ? options.jobs : std::clamp(allowed_processors(), 1, 8);
  at_once(std::clamp<std::size_t>(products.size(), 1, static_cast<std::size_t>(jobs)), [&] {
    for (std::size_t i = next++; i < products.size() && !control.stop_requested(); i = next++) {
      const fs::path path = folder / products[i].file;
      ++looked;
      const std::string state = state_of(path);
      std::string difference = link_at(path);
      if (difference.empty() && record.has(state, products[i])) {
        ++known;
        continue;
      }
      if (difference.empty()) difference = difference_of(path, products[i]);
      if (difference.empty()) {
        record.add(state, products[i]);
      } else {
        ++differing;
        spdlog::error("{}: {}", path.string(), difference);
      }
    }
  });
  for (Map& map : maps) {
    if (control.stop_requested()) break;
    const fs::path path = folder / "maps" / map.slide.map_file;
    ++looked;
    std::string difference = link_at(path);
    if (difference.empty()) difference = difference_of(reader, reader.config(), map, path);
    map.slide.map = {};
    if (difference.empty()) continue;
    ++differing;
    spdlog::error("{}: {}", path.string(), difference);
  }
  const std::size_t all = products.size() + maps.size();
  if (looked < all) {
    spdlog::warn("interrupted: {} of {} files were looked at; the same command does the rest", looked.load(), all);
    return 128 + std::max(1, SignalScope::received());
  }
  record.remove();
  if (known > 0) {
    spdlog::info("{} {} verified before an interruption", count_of(known, "file"), known == 1 ? "was" : "were");
  }
  if (const std::uint64_t left = reader.unfinished_of_shard(); left > 0) {
    spdlog::warn("{} done: nothing of {} was verified", count_of(left, "slide") + (left == 1 ? " isn't" : " aren't"),
                 left == 1 ? "it" : "them");
  }
  if (!options.quiet) {
    std::cout << count_text(all - differing) << " of " << count_text(all) << (all == 1 ? " file" : " files") << " of "
              << count_of(slides, "slide") << (all == 1 ? " is" : " are") << " as written"
              << (differing > 0 ? "; delete the others, and the command that made them makes them again\n" : "\n");
  }
  return differing > 0 ? exit_some_failed : exit_done;
}

}  // namespace

void add_verify_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = app.add_subcommand("verify", "Compare the files of a run with what was written");
  command->add_option("folder", options->folder, "Folder with results")->type_name("DIR")->required()->check(not_empty);
  command->add_option("-j,--jobs", options->jobs, "Files that are read at a time; 0: a few")
      ->type_name("N")
      ->check(CLI::Range(0, 1024));
  command->add_flag("-q,--quiet", options->quiet, "Nothing but warnings and errors");
  command->footer(
      "Reads every file of a slide that is done, and compares its digest with the ledger's, and maps with the "
      "ledger's\n"
      "values. Links aren't followed. Ends with 1 when a file differs, is missing or is a link. Delete such a file, "
      "and\n"
      "the command that made it makes it again. The same verification goes on after an interruption, with what\n"
      "verify.partial.list in the folder has.\n\n"
      "Examples:\n"
      "  pipeline verify results\n"
      "  pipeline verify results --jobs 16");
  command->callback([&action, options] { action = [options] { return verify(*options); }; });
}

}  // namespace slidestream::cli
