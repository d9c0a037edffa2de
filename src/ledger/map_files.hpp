#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <slidestream/config.hpp>

#include "ledger/ledger.hpp"

namespace slidestream {

/// The names of maps' files by place in the manifest, with suffix; empty without maps.
std::vector<std::string> map_files(const Config& config, const std::vector<std::string>& slides);

/// Writes the maps of the ledger's slides that have no whole file, or one of another name. Returns the places of slides
/// whose map in the ledger isn't what was written. \throws OutputError.
[[nodiscard]] std::vector<std::size_t> write_missing_maps(const Config& config, Ledger& ledger,
                                                          const std::vector<std::string>& files);

}  // namespace slidestream
