#include "cli/verify_command.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
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
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cli/report.hpp"
#include "cli/signals.hpp"
#include "cli/terminal.hpp"
#include "config/printable.hpp"
#include "config/read_file.hpp"
#include "config/suggest.hpp"
#include "ledger/artifact_files.hpp"
#include "ledger/database.hpp"
#include "ledger/owner.hpp"
#include "ledger/schema.hpp"
#include "ledger/versions.hpp"
#include "output/folders.hpp"
#include "output/text.hpp"
#include "output/views.hpp"
#include "report/run_reader.hpp"
#include "sink/background.hpp"
#include "sink/file_calls.hpp"
#include "sink/file_digest.hpp"
#include "sink/image_formats.hpp"
#include "sink/stray_files.hpp"
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
    if (!is_stray_file(*entry) && !look_at(entry->path())) return {};
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
    std::istringstream in(content(most_bytes));
    is_there_ = true;
    std::string line;
    while (std::getline(in, line)) {
      std::istringstream fields(line);
      std::string size, time, digest, file;
      const bool is_whole = fields >> size >> time >> digest && fields.get() == ' ' && std::getline(fields, file);
      if (is_whole) known_[file] = size + " " + time + " " + digest;
      // The last line may be cut short.
      if (!is_whole && !in.eof()) {
        throw ConfigError(path_.string() + ": isn't what an interrupted verification leaves" + remedy);
      }
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
  static constexpr const char* remedy = "; move it away, and verify again";

  std::string content(std::size_t most_bytes) const {
    try {
      return read_file(path_, most_bytes, FileOrigin::own);
    } catch (const ConfigError& error) {
      throw ConfigError(error.what() + std::string(remedy));
    }
  }

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

/// What is wrong with a file.
struct Finding {
  std::string line;         ///< empty: nothing
  bool is_unread = false;   ///< nothing tells whether it is as written
  bool is_missing = false;  ///< nothing has the name, nor is a link on the way to it
};

Finding differs(const fs::path& path, const std::string& how) { return {path.string() + ": " + how, false}; }

/// Says that a file can't be read. Empty: it isn't there, or isn't a file. \param code  of errno; 0: none
Finding unread(const fs::path& path, int code) {
  constexpr const char* what = ": can't be read: ";
  if (const fs::path link = lost_link(path); !link.empty()) {
    std::error_code ignored;
    return {path.string() + what + (link == path ? "it" : link.string()) + " is a link to " +
                fs::read_symlink(link, ignored).string() + ", where nothing is",
            true};
  }
  if (code == 0 || code == ENOENT || code == ENOTDIR) return {};
  return {path.string() + what + std::generic_category().message(code), true};
}

/// A file, or something in a folder, that is a link, which may lead anywhere; empty: nothing is.
fs::path link_at(const fs::path& path) {
  std::error_code code;
  const fs::file_status status = fs::symlink_status(path, code);
  if (fs::is_symlink(status)) return path;
  if (!fs::is_directory(status)) return {};
  fs::recursive_directory_iterator entry(path, code);
  for (; !code && entry != fs::recursive_directory_iterator(); entry.increment(code)) {
    std::error_code ignored;
    if (entry->is_symlink(ignored)) return entry->path();
  }
  return {};
}

/// Says that a link isn't followed.
Finding finding_of_link(const fs::path& path, const fs::path& link) {
  if (Finding lost = unread(link, 0); !lost.line.empty()) return lost;
  if (link == path) return differs(path, "is a link, which isn't followed");
  return differs(path, "has the link " + one_line(link.lexically_relative(path).string()) + ", which isn't followed");
}

Finding finding_of(const fs::path& path, const Product& product) {
  int code = 0;
  const bool is_folder = is_folder_of_image(product.file);
  const auto bytes = path_bytes(path, code);
  std::error_code ignored;
  if (bytes && fs::is_directory(path, ignored) != is_folder) {
    return differs(path, is_folder ? "isn't a folder" : "isn't a file");
  }
  if (bytes && *bytes != product.written.bytes) {
    return differs(path, "has " + std::to_string(*bytes) + " bytes, and had " + std::to_string(product.written.bytes));
  }
  const auto found = bytes ? path_content(path, code) : std::nullopt;
  if (!found) {
    Finding unseen = unread(path, code);
    if (!unseen.line.empty()) return unseen;
    return differs(path, code == 0 ? "isn't a file or folder, or has something that is neither" : "is missing");
  }
  if (found->digest == product.written.digest) return {};
  return differs(
      path, "has the digest " + to_hexadecimal(found->digest) + ", and had " + to_hexadecimal(product.written.digest));
}

Finding finding_of(report::RunReader& reader, Config config, Map& map, const fs::path& path) {
  if (!reader.read_map(map.id, map.slide.map)) {
    return differs(path, "can't be compared: the ledger's values of it are damaged");
  }
  config.output.maps = path.extension() == ".tif" ? MapFormat::tiff : MapFormat::npy;
  const std::vector<std::byte> expected = map_bytes(config, map.slide);
  int code = 0;
  const auto bytes = path_bytes(path, code);
  if (bytes != expected.size()) {
    Finding unseen = bytes ? Finding() : unread(path, code);
    if (!unseen.line.empty()) return unseen;
    Finding other = differs(path, "is missing, or has another size");
    other.is_missing = !bytes && (code == ENOENT || code == ENOTDIR);
    return other;
  }
  std::vector<std::byte> found(expected.size());
  const OpenFile file(path);
  code = file.descriptor < 0 ? errno : read_at(file.descriptor, 0, found);
  if (code != 0) return {path.string() + ": can't be read: " + std::generic_category().message(code), true};
  return found == expected ? Finding() : differs(path, "isn't what was written");
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

/// Whether a process has the ledger that works, or died. A map is written behind its slide's row.
bool is_owned(const fs::path& ledger) { return read_owner(*open_to_read(ledger)).has_value(); }

/// Whether it holds an earlier run's results, which `--fresh` moved there: no command writes into it.
bool is_set_aside(const fs::path& folder) {
  constexpr std::string_view begin = "earlier-";
  std::error_code code;
  const fs::path home = fs::weakly_canonical(folder, code);
  const fs::path last = home.has_filename() ? home : home.parent_path();
  const std::string name = last.filename().string();
  return name.starts_with(begin) && name.find_first_not_of("0123456789", begin.size()) == std::string::npos &&
         fs::exists(last.parent_path() / ledger_name, code);
}

/// What to do with files that aren't as written. \param is_joined  other folders' runs made the slides' files
std::string advice(std::size_t differing, std::size_t not_read, bool is_joined, bool is_aside) {
  std::string text;
  if (differing > 0 && !is_aside) {
    text = std::string("; delete ") + (not_read > 0 ? "those that differ" : "the others") +
           (is_joined ? ", run the commands of the joined folders again, and merge again"
                      : ", and the command that made them makes them again");
  }
  if (not_read > 0) text += "; " + count_of(not_read, "file") + " can't be read: nothing to delete";
  return text;
}

/// Says of how many slides nothing was verified.
void tell_undone(report::RunReader& reader) {
  const std::string thing = thing_of(reader.config());
  if (const std::uint64_t others = reader.of_others(); others > 0) {
    spdlog::warn("{} of earlier runs here {} now: nothing of {} was verified; verify {}, or the merged folder",
                 count_of(others, thing), others == 1 ? "is another shard's" : "are other shards'",
                 others == 1 ? "it" : "them", others == 1 ? "that shard's folder" : "those shards' folders");
  }
  const std::uint64_t failed = reader.failed();
  const std::uint64_t left = reader.unfinished() + failed;
  if (left == 0) return;
  spdlog::warn("{} {} done{}: nothing of {} was verified", count_of(left, thing), left == 1 ? "isn't" : "aren't",
               failed > 0 ? " (" + count_text(failed) + " failed)" : "", left == 1 ? "it" : "them");
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
  // Behind the rows: the maps of a run that has ended by now are written.
  const bool is_under_way = is_owned(folder / ledger_name);
  RunControl control;
  const SignalScope signals(control);
  Record record(folder);
  std::atomic<std::size_t> differing{0};
  std::atomic<std::size_t> not_read{0};
  const auto tell = [&](const Finding& finding) {
    ++(finding.is_unread ? not_read : differing);
    spdlog::error("{}", finding.line);
  };
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> known{0};
  std::atomic<std::size_t> looked{0};
  const int jobs = options.jobs > 0 ? options.jobs : std::clamp(allowed_processors(), 1, 8);
  at_once(std::clamp<std::size_t>(products.size(), 1, static_cast<std::size_t>(jobs)), [&] {
    for (std::size_t i = next++; i < products.size() && !control.stop_requested(); i = next++) {
      const fs::path path = place_of(folder, products[i].file);
      ++looked;
      const std::string state = state_of(path);
      const fs::path link = link_at(path);
      if (link.empty() && record.has(state, products[i])) {
        ++known;
        continue;
      }
      const Finding finding = link.empty() ? finding_of(path, products[i]) : finding_of_link(path, link);
      if (finding.line.empty()) {
        record.add(state, products[i]);
      } else {
        tell(finding);
      }
    }
  });
  std::size_t unwritten = 0;
  for (Map& map : maps) {
    if (control.stop_requested()) break;
    const fs::path path = folder / "maps" / map.slide.map_file;
    ++looked;
    const fs::path link = link_at(path);
    const Finding finding = link.empty() ? finding_of(reader, reader.config(), map, path) : finding_of_link(path, link);
    map.slide.map = {};
    if (is_under_way && finding.is_missing) {
      ++unwritten;
    } else if (!finding.line.empty()) {
      tell(finding);
    }
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
  tell_undone(reader);
  if (unwritten > 0) {
    spdlog::warn("{} {} written yet: the run is under way, or was killed; the same command writes {}",
                 count_of(unwritten, "map"), unwritten == 1 ? "isn't" : "aren't", unwritten == 1 ? "it" : "them");
  }
  const std::size_t written = all - unwritten;
  if (!options.quiet) {
    std::cout << count_text(written - differing - not_read) << " of " << count_text(written)
              << (written == 1 ? " file" : " files") << " of " << count_of(slides, thing_of(reader.config()))
              << (all == 1 ? " is" : " are") << " as written"
              << advice(differing, not_read, reader.is_joined(), is_set_aside(folder)) << '\n';
  }
  return differing + not_read > 0 ? exit_some_failed : exit_done;
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
      "values. Links aren't followed. Ends with 1 when a file differs, is missing, is a link or can't be read. Delete "
      "one\n"
      "that differs or is a link, and the command that made it makes it again. One that can't be read may be whole. "
      "The\n"
      "same verification goes on after an interruption, with what verify.partial.list in the folder has.\n\n"
      "Examples:\n"
      "  pipeline verify results\n"
      "  pipeline verify results --jobs 16");
  command->callback([&action, options] { action = [options] { return verify(*options); }; });
}

}  // namespace slidestream::cli
