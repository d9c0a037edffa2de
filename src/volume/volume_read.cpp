#include "volume/volume_read.hpp"

#include <chrono>
#include <cmath>
#include <cstddef>
#include <memory>
#include <slidestream/error.hpp>

#include "runtime/trace.hpp"
#include "volume/volume_run.hpp"

namespace slidestream::volume {
namespace {

void warn_of_geometry(const VolumeWork& work, const Config& config, const RunControl& control) {
  const NiftiGeometry& geometry = work.header.geometry;
  if (const std::string line = geometry.doubt(); !line.empty()) warn(control, work.path + ": " + line);
  if (std::isnan(geometry.voxel_mm3())) {
    // Images have no labels whose mm^3 could be told.
    const bool image = config.volume.fusion == VolumeFusion::blend;
    warn(control, work.path + ": its header gives no volume of a voxel; " +
                      (image ? "volume.voxel_mm3 is" : "columns in mm^3 are") + " left empty");
  }
}

}  // namespace

void warn(const RunControl& control, const std::string& text) {
  const auto& say = control.on_warning ? control.on_warning : control.on_message;
  if (say) say(text);
}

void read_volume(VolumeWork& work, const Config& config, const VolumeNetworks& networks, const RunControl& control) {
  const auto begun = runtime::Clock::now();
  warn_of_geometry(work, config, control);
  work.resampling = resampling_of(config, work.header);
  work.grid = std::make_unique<FragmentGrid>(grid_of(config, work.header));
  work.fusion = make_fusion(config, *work.grid, networks.output());
  work.samples = runtime::HostArray<float>(static_cast<std::size_t>(work.header.voxels()));
  const int limit = config.input.max_seconds;
  const auto is_late = [&] { return limit > 0 && runtime::Clock::now() - begun > std::chrono::seconds(limit); };
  try {
    work.file->read(work.samples, [&] { return control.stop_requested() || is_late(); });
    work.file.reset();
  } catch (const StoppedError&) {
    if (control.stop_requested()) return;
    throw Error("reading takes longer than input.max_seconds = " + std::to_string(limit));
  }
}

}  // namespace slidestream::volume
