#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <slidestream/config.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/results.hpp>
#include <string>
#include <vector>

#include "volume/fragments.hpp"
#include "volume/nifti_header.hpp"
#include "volume/resample.hpp"
#include "volume/schedule.hpp"

namespace slidestream::volume {

class VolumeNetworks;

/// The figure that counts a label's voxels is named by this and the label: "volume.voxels.3".
inline constexpr const char* label_figure = "volume.voxels.";
/// A figure of a volume: its voxels along z.
inline constexpr const char* depth_figure = "volume.depth";
/// A figure of a volume's image: the share of the values that it has clamped to the range, as of slides' images.
inline constexpr const char* clamped_figure = "model.clamped";

/// Finds the volumes of a list of inputs: files whose names end in .nii or .nii.gz. Folders, lists and CSV files give
/// volumes as they give slides. In folders, results of earlier runs (`is_result`) are left out, and a warning counts
/// them.
/// \param results  the run's folder of results, which needn't be there; empty: there is none
/// \throws ConfigError as `expand_inputs`
ExpandedInputs volume_inputs(const std::vector<std::string>& inputs, const std::filesystem::path& results);

/// Says that inputs have no volume; empty: they have one. \param found  of these inputs
std::string no_volume_text(const std::vector<std::string>& inputs, const ExpandedInputs& found);

/// Bytes that volumes, networks and what is computed may take together: `volume.memory_mib`, else four fifths of the
/// available memory. Where the system doesn't say what is available, 4 GiB are assumed.
std::uint64_t memory_budget(const Config& config);

/// The part of `memory_budget` that volumes may take. On the CPU it is all of it, and networks share it. On GPUs it is
/// what the fragments on their way to and from the GPUs leave.
std::uint64_t volumes_budget(const Config& config, const VolumeNetworks& networks);

/// Checks that the largest network can compute a fragment. On the CPU both must take less than `memory_budget`. On GPUs
/// both must fit into the GPU that has the least memory for networks. Fragments on their way, one for each GPU, must
/// take less than `memory_budget`. \throws ConfigError where that isn't so
void check_budget(const Config& config, const VolumeNetworks& networks);

/// The most fragments that are computed at a time. On the CPU: as many as the run has threads, or `model.sessions` if
/// that is less. On each GPU: `model.sessions`, else 5. There they are fewer, but at least one, where fragments on
/// their way would take more than half of `memory_budget`.
std::size_t fragments_at_a_time(const Config& config, const VolumeNetworks& networks);

/// Fragments of a volume by `volume.grid`.
std::size_t fragments_of(const Config& config) noexcept;

/// Resamples a volume with that header to `volume.spacing`; null if that isn't set. \throws Error as `Resampling`
std::unique_ptr<Resampling> resampling_of(const Config& config, const NiftiHeader& header);

/// The fragments of a volume with that header, as networks see it. \throws Error as `Resampling`
FragmentGrid grid_of(const Config& config, const NiftiHeader& header);

/// The schedule of a run: it decides what is in memory. \param workers  fragments that are computed at a time, on the
/// CPU or on each GPU
Schedule make_schedule(const Config& config, const VolumeNetworks& networks, std::size_t workers);

/// Bytes that a volume takes while it is computed: its samples, its fusion, and the samples of the file that is made.
/// The buffer of `write_gzip` isn't counted: it takes over 32 MiB for a large file, and 8 files may be written at once.
/// \param most  bytes that there may be: `Schedule::most_for_volume`. \throws Error where they are more, for more
/// voxels than `input.max_pixels`, where fragments leave samples out, and as `Resampling` and `check_fusion`
std::uint64_t bytes_of_volume(const Config& config, const VolumeNetworks& networks, const NiftiHeader& header,
                              std::uint64_t most);

/// Computes volumes, several at a time, and writes images/NAME.labels.nii.gz or images/NAME.image.nii.gz for each.
/// `control` and the result are as of `run_pipeline`. A volume that fails is reported and doesn't stop the others.
/// \param networks  of the same configuration. \param longest_wait  as of `make_volume_graph`. \throws ConfigError if a
/// thread can't be started; OutputError if a file can't be written; Error in a process that was forked during such
/// work. Another Error of the graph, such as a network that can't be loaded, ends the run. `RunResult::failure` has it.
RunResult run_volumes(const Config& config, const VolumeNetworks& networks, const std::vector<std::string>& volumes,
                      RunControl& control, std::chrono::milliseconds longest_wait = std::chrono::minutes(1));

}  // namespace slidestream::volume
