#pragma once

#include <memory>

#include "cli/command.hpp"
#include "cli/run_options.hpp"

namespace slidestream::cli {

/// `pipeline volume VOLUME...`: networks over 3-D images. \return its options, which messages look at
std::shared_ptr<RunOptions> add_volume_command(CLI::App& app, Action& action);

/// Runs over volumes as `run` has them, with networks of its own. For one run.
std::shared_ptr<const OwnWork> work_of_volumes();

/// Writes labels.csv of a folder with volumes' labels: the voxels of each label of each volume that is done, with their
/// mm^3. Nothing for other results. \throws OutputError
void write_labels(const Config& config);

}  // namespace slidestream::cli
