#pragma once

#include <array>
#include <optional>
#include <slidestream/config.hpp>

namespace slidestream::volume {

/// Refuses settings of slides, as they would change nothing. \throws ConfigError that names one
void refuse_settings_of_slides(const Config& config);

/// What becomes of the values that are given for fragments. What isn't set is left empty.
struct ScoreSettings {
  VolumeFusion fusion = VolumeFusion::vote;
  ModelActivation activation = ModelActivation::automatic;
  std::optional<std::array<double, 2>> range;
  std::optional<int> ignore;
  bool has_sample = false;            ///< the type of labels is set
  const char* model_part = "model.";  ///< in front of names in messages
  const char* volume_part = "volume.";
};

/// The settings of a run. \throws ConfigError as below
void check_scores(const Config& config);

/// Refuses settings that the fusion has no use for, as they would change nothing. \throws ConfigError that names one
void check_scores(const ScoreSettings& settings);

}  // namespace slidestream::volume
