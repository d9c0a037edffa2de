#pragma once

#include <slidestream/config.hpp>
#include <slidestream/pipeline.hpp>
#include <string>

#include "volume/volume_networks.hpp"
#include "volume/volume_work.hpp"

namespace slidestream::volume {

/// A line for people, about what may be wrong.
void warn(const RunControl& control, const std::string& text);

/// Reads the samples of a volume that was opened, and makes what its fragments need. Lines tell of a header in doubt.
/// Where a stop ends it the file stays open, and the next start does the volume.
/// \throws Error in one line, also after `input.max_seconds`; std::bad_alloc
void read_volume(VolumeWork& work, const Config& config, const VolumeNetworks& networks, const RunControl& control);

}  // namespace slidestream::volume
