#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <slidestream/results.hpp>
#include <span>
#include <string>
#include <utility>

#include "config/suggest.hpp"
#include "runtime/host_array.hpp"
#include "runtime/trace.hpp"
#include "volume/fragments.hpp"
#include "volume/fusion.hpp"
#include "volume/nifti_file.hpp"
#include "volume/resample.hpp"

namespace slidestream::volume {

/// A volume on its way through the run.
struct VolumeWork {
  VolumeWork(std::size_t place, std::string from) : number(place), path(std::move(from)) {}

  std::size_t number;
  std::string path;
  runtime::Clock::time_point begun = runtime::Clock::now();
  std::unique_ptr<NiftiFile> file;  ///< until it was read
  NiftiHeader header;
  std::unique_ptr<Resampling> resampling;  ///< null: networks see the volume's own samples
  std::unique_ptr<FragmentGrid> grid;
  std::unique_ptr<Fusion> fusion;
  std::uint64_t bytes = 0;  ///< of memory
  bool admitted = false;    ///< to memory; guarded by the graph's mutex
  std::filesystem::path made_at;
  std::string made_name;  ///< within the folder for results
  runtime::HostArray<float> samples;
  runtime::HostArray<std::byte> made;
  SlideResult result;
  std::mutex mutex;
  bool failed = false;  ///< guarded by mutex

  void cut(std::span<float> to, std::size_t fragment, float fill) const {
    if (resampling != nullptr) return resampling->cut(to, samples, *grid, fragment, fill);
    grid->cut(to, samples, fragment, fill);
  }

  /// A fragment's part of the voxels: that of all is all of them.
  std::uint64_t voxels_of(std::size_t fragment) const {
    const auto voxels = static_cast<std::uint64_t>(header.voxels());
    return voxels * (fragment + 1) / grid->count() - voxels * fragment / grid->count();
  }

  bool has_failed() {
    const std::lock_guard lock(mutex);
    return failed;
  }
  /// The first failure is kept. \return whether this was it
  bool fail(const char* stage, std::string cause) {
    const std::lock_guard lock(mutex);
    if (std::exchange(failed, true)) return false;
    if (cause.starts_with(path + ": ")) cause.erase(0, path.size() + 2);
    result.fail({stage, {}, one_line(cause)});
    return true;
  }
};

}  // namespace slidestream::volume
