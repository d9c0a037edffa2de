#pragma once

#include <string>
#include <vector>

#include <slidestream/config.hpp>

#include "cli/run_options.hpp"
#include "ledger/ledger.hpp"
#include "ledger/owner.hpp"

namespace slidestream::cli {

/// How the process that has the folder is watched.
OwnerWatch owner_watch(const RunOptions& options);

/// Lists all slides of the inputs, and which of them are this shard's. \throws ConfigError where the shard makes no
/// sense.
std::vector<ManifestEntry> make_manifest(const ExpandedInputs& inputs, const RunOptions& options);

/// Logs which slides a run skips, which it does again and why, and whether results lie on a network file system.
/// \param slides  of all shards
/// \param refused  those skipped as failed that need --overwrite: something has a file's name
void log_skipped(const Config& config, const LedgerStart& start, std::size_t slides, std::size_t refused);

/// Logs what the folder of results holds besides this run's slides.
void log_other_results(const Config& config, const LedgerStart& start);

}  // namespace slidestream::cli
