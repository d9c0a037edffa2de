#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/operator.hpp>
#include <slidestream/slide.hpp>
#include <slidestream/statistic.hpp>

#include "planning/strip_plan.hpp"

/// \file
/// What the planner knows of operators. No state: every function is thread-safe.

namespace slidestream {

using Operators = std::vector<std::shared_ptr<const Operator>>;

/// What the planner has to know of them.
std::vector<OperatorNeeds> needs_of(const Operators& operators);

/// Those that the level's pixels pass by.
Operators readers_of(const Operators& operators);

/// The image that an operator makes; null where it makes none.
std::optional<Product> image_of(const Operator& op);

/// What an operator's kernel makes a pixel of: of its image, or of the rows that its network's tiles are cut from. Null
/// where it makes neither.
std::optional<PixelFormat> band_format_of(const Operator& op);

/// The place of the spectrum among operators; none where it doesn't run.
std::optional<std::size_t> place_of_spectrum(const Operators& operators);

/// Labels are no quantities. Sums of them may be asked for, and functions and operators of the caller get a level as it
/// is; all others take them for colours. \throws SlideError where the slide holds labels and `op` takes them for that
void check_labels(const Operator& op, const SlideInfo& info, const Config& config);

/// As `check_labels` of the first operator, where it refuses the slide and so do all others.
void check_labels(const Operators& operators, const SlideInfo& info, const Config& config);

/// One clause naming an operator, statistic or setting that keeps a run off GPUs; empty: GPUs compute all of it.
std::string why_not_on_gpus(const Config& config, const Operators& operators);

/// The same of the spectrum's statistics alone.
std::string why_not_on_gpus(std::span<const PlacedStatistic> statistics);

}  // namespace slidestream
