#pragma once

#include <string>

#include "synth/pyramid.hpp"

/// \file
/// What Aperio's scanners write into ImageDescription.

namespace slidestream::synth {

std::string describe_slide(const SynthOptions& options);
std::string describe_level(const SynthOptions& options, const LevelSize& size);
std::string describe_thumbnail(const SynthOptions& options, const Picture& thumbnail);

/// `name` is "label" or "macro": readers find these images by it.
std::string describe_associated(const std::string& name, const Picture& picture);

}  // namespace slidestream::synth
