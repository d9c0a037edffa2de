#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

namespace slidestream::cli {

/// Looks after the files of a folder with results.
class FolderGuard {
 public:
  /// \param begins_anew  the results that are there are moved aside first.
  FolderGuard(const Config& config, bool overwrite, bool begins_anew);

  /// Checks the maps with these names and the file of progress. The ledger looks after tables.
  /// \throws ConfigError as `Ledger::check_folder`, `check_map_places` and `check_target`.
  void check_names(const Config& config, const std::vector<std::string>& maps) const;

  /// Checks a slide's file or folder before it is begun. One that the ledger lists, and that isn't what was written,
  /// moves to the files of failed slides, with a warning. Thread-safe. \throws SlideError as `check_target`, and where
  /// it can't move
  void check_file(const std::filesystem::path& file) const;

  /// Checks the name of a slide's map before the slide is begun: the ledger lists the map, or an earlier process may
  /// have made it, or nothing is there. A listed one that can't be the ledger's moves as in `check_file`. An empty path
  /// is none. Thread-safe. \throws SlideError as `check_target`.
  void check_map(const std::filesystem::path& file) const;

  /// Checks the name that an image has while it is written. Warns where another run of this program has begun an image
  /// there, which is replaced. Thread-safe. \throws SlideError as `check_partial_target`.
  void check_partial(const std::filesystem::path& partial) const;

 private:
  /// Checks the folder of chunks or tiles, where the file that says whose it is isn't there.
  void check_folder(const std::filesystem::path& file) const;
  void check_page(const std::filesystem::path& page) const;
  /// Whether the ledger lists a path. What is there and isn't what was written moves away. \throws SlideError as
  /// `spare` \param is_folder  whether runs make a folder there \param image  the file or folder that says whose it is
  bool spare_changed(const std::filesystem::path& path, bool is_folder, const std::filesystem::path& image) const;
  /// \throws SlideError where it can't move
  void spare(const std::filesystem::path& file, const std::filesystem::path& image) const;
  /// Whether a file may be what an earlier process of this ledger made, though the ledger doesn't list it.
  bool may_be_left(const std::filesystem::path& file) const;
  /// What the names of the slide's files begin with that a file is of; nothing: the ledger has no such slide.
  std::optional<std::string> slide_of(const std::filesystem::path& file) const;
  std::string unlisted(const std::filesystem::path& file) const;

  Config config_;
  std::filesystem::path folder_;
  bool overwrite_;
  bool begins_anew_;
  bool moves_maps_;                                  ///< with other results, before the first is written
  bool had_ledger_;                                  ///< before the run
  bool is_ours_;                                     ///< it has a ledger, which the run continues
  std::unordered_map<std::string, Artifact> made_;   ///< files that the ledger lists, whatever became of them
  std::unordered_map<std::string, WindowMap> maps_;  ///< that it lists, without values
  std::unordered_map<std::string, bool> slides_;     ///< `may_be_left`, by what the names of their files begin with
  std::unordered_set<std::string> tried_;            ///< of these, slides that a process of this ledger has worked on
};

}  // namespace slidestream::cli
