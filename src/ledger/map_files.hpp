#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/pipeline.hpp>

#include "ledger/ledger.hpp"

namespace slidestream {

/// Where a map's file lies in the folder of results.
inline std::string map_path(const std::string& file) { return "maps/" + file; }

/// The names of maps' files by place in the manifest, with suffix; empty without maps. They begin as those of the
/// slides' images. Where slides of joined folders share such a name, all but the first have digits.
std::vector<std::string> map_files(const Config& config, Ledger& ledger, const std::vector<ManifestEntry>& manifest);

/// The same with the names that the slides' images begin with.
std::vector<std::string> map_files(const Config& config, const std::vector<ManifestEntry>& manifest,
                                   const std::vector<std::string>& names);

/// The same of a folder without a ledger.
std::vector<std::string> map_files(const Config& config, const ExpandedInputs& inputs);

/// Refuses what has the name of a map, and is neither a map that the ledger listed before nor empty. \throws
/// ConfigError
void check_maps(const Config& config, const std::vector<ManifestEntry>& manifest, const std::vector<std::string>& files,
                const Ledger::ListedMaps& listed);

/// Deletes the files of maps that the ledger listed before, and that it is going to list with other values, as other
/// `files`, or not at all: files are looked at by size alone, and missing ones are written anew.
void remove_changed_maps(const Config& config, const Ledger::ListedMaps& before, const Ledger::ListedMaps& now,
                         const std::vector<ManifestEntry>& manifest, const std::vector<std::string>& files);

/// Whether a file that isn't empty has the name of a ledger's map of this size, and can't be that.
bool is_foreign_map(const Config& config, const WindowMap& map, const std::filesystem::path& file);

/// Which of the maps that a ledger lists have such a file, in order.
std::vector<std::string> foreign_maps(const Config& config, const Ledger::ListedMaps& listed);

/// Moves these to the files of failed slides, and returns a line for each. \throws OutputError where one can't move
std::vector<std::string> spare_maps(const Config& config, const std::vector<std::string>& files);

/// Writes the maps of the ledger's slides that have no whole file, or one of another name. Returns the places of slides
/// whose map in the ledger isn't what was written. \throws OutputError.
[[nodiscard]] std::vector<std::size_t> write_missing_maps(const Config& config, Ledger& ledger,
                                                          const std::vector<std::string>& files);

}  // namespace slidestream
