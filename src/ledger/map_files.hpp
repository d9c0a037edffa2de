#pragma once

#include <string>
#include <vector>

#include <slidestream/config.hpp>

#include "ledger/ledger.hpp"

namespace slidestream {

/// The names of maps' files by place in the manifest, with suffix; empty without maps.
std::vector<std::string> map_files(const Config& config, const std::vector<std::string>& slides);

/// Writes the maps of the ledger's slides that have no file, or one of another name. \throws OutputError.
void write_missing_maps(const Config& config, Ledger& ledger, const std::vector<std::string>& files);

}  // namespace slidestream
