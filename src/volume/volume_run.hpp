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

/// Figures of results that count the voxels of a label: this and the label.
inline constexpr const char* label_figure = "volume.voxels.";
/// A figure of a volume: its voxels along z.
inline constexpr const char* depth_figure = "volume.depth";
/// A figure of a volume's image: the share of the values that it has clamped to the range, as of slides' images.
inline constexpr const char* clamped_figure = "model.clamped";

/// Files of volumes end in .nii or .nii.gz. Folders, lists and CSV files give them as they give slides.
/// Folders give no results of earlier runs and calls (`is_result`), and a warning counts them.
/// \param results  the run's folder of results, which needn't be there; empty: there is none
/// \throws ConfigError as `expand_inputs`
ExpandedInputs volume_inputs(const std::vector<std::string>& inputs, const std::filesystem::path& results);

/// Says that inputs have no volume; empty: they have one. \param found  of these inputs
std::string no_volume_text(const std::vector<std::string>& inputs, const ExpandedInputs& found);

/// Bytes that volumes, networks and what is computed may take together: `volume.memory_mib`, else four fifths of what
/// is available.
std::uint64_t memory_budget(const Config& config);

/// The part of it that volumes may take; on the CPU all of it, for networks too. On GPUs without that of fragments on
/// their way.
std::uint64_t volumes_budget(const Config& config, const VolumeNetworks& networks);

/// \throws ConfigError where no fragment fits into that, or no network into the memory of a GPU
void check_budget(const Config& config, const VolumeNetworks& networks);

/// Fragments that are computed at a time, at most. On the CPU: `model.sessions`, else the threads of the run. On each
/// GPU: `model.sessions`, else 5, and fewer where they would take more than half of the host's memory.
std::size_t fragments_at_a_time(const Config& config, const VolumeNetworks& networks);

/// Fragments of a volume by `volume.grid`.
std::size_t fragments_of(const Config& config) noexcept;

/// Between a volume with that header and `volume.spacing`; null where that isn't set. \throws Error as `Resampling`
std::unique_ptr<Resampling> resampling_of(const Config& config, const NiftiHeader& header);

/// The fragments of a volume with that header, as networks see it. \throws Error as `Resampling`
FragmentGrid grid_of(const Config& config, const NiftiHeader& header);

/// What decides over the memory of a run. \param workers  fragments that are computed at a time
Schedule make_schedule(const Config& config, const VolumeNetworks& networks, std::size_t workers);

/// Bytes of a volume while it is computed: its samples, its fragments, and the file that is made.
/// \param most  bytes that there may be: `Schedule::most_for_volume`. \throws Error where they are more, where
/// fragments leave samples out, and as `Resampling` and `check_fusion`
std::uint64_t bytes_of_volume(const Config& config, const VolumeNetworks& networks, const NiftiHeader& header,
                              std::uint64_t most);

/// Computes volumes, several at a time, and writes images/NAME.labels.nii.gz or images/NAME.image.nii.gz for each.
/// `control` and the result are as of `run_pipeline`. A volume that fails is reported and doesn't stop the others.
/// \param networks  of the same configuration. \param longest_wait  as of `make_volume_graph`. \throws ConfigError,
/// OutputError, Error as `run_pipeline`
RunResult run_volumes(const Config& config, const VolumeNetworks& networks, const std::vector<std::string>& volumes,
                      RunControl& control, std::chrono::milliseconds longest_wait = std::chrono::minutes(1));

}  // namespace slidestream::volume
