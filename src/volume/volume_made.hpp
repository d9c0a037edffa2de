#pragma once

#include <slidestream/config.hpp>
#include <slidestream/pipeline.hpp>

#include "runtime/stage_meter.hpp"
#include "volume/nifti_header.hpp"
#include "volume/volume_work.hpp"

/// \file
/// What a volume's file holds, made of its fused fragments. Called in an arena of the run's threads, which share the
/// work.

namespace slidestream::volume {

/// Fills `made` with labels on the scan's grid, and adds the count of each to the results. \param sample  uint8 or
/// uint16
void make_labels(VolumeWork& work, ScalarType sample);

/// Fills `made` with an image of float32.
void make_image(VolumeWork& work);

/// Says where the volume's file is to be.
void name_made(VolumeWork& work, const Config& config, const RunControl& control);

/// Writes `made` to its file, and adds that to the results. \param sample  of `made`; float32 for an image
/// \throws OutputError
void write_made(VolumeWork& work, ScalarType sample, runtime::StageMeter::Busy& busy);

}  // namespace slidestream::volume
