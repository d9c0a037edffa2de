#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <slidestream/config.hpp>
#include <slidestream/operator.hpp>
#include <slidestream/slide.hpp>
#include <string>

#include "operators/tissue/preparation.hpp"
#include "planning/operator_needs.hpp"

/// \file
/// Memory of the small levels that operators look at before pixels pass by.

namespace slidestream {

/// What small levels of slides may take together while masks and stains are found on them, and masks are written. A
/// slide that needs more has all of it, and is alone.
std::uint64_t small_levels_bytes(const Config& config) noexcept;

/// What preparing a slide takes beside its small level and mask.
std::uint64_t stains_bytes(const Config& config, const SlideInfo& info);

/// The network of `tissue.model`, where an operator looks at small levels; else null. \throws ConfigError
std::shared_ptr<const Network> tissue_network_of(const Config& config, const Operators& operators);

/// The most that preparing a slide takes; 0 where no operator looks at its small level. \param tissue  of
/// `tissue_network_of` \throws Error where that can't look at the slide
std::uint64_t small_level_bytes(const Config& config, const Operators& operators, const SlideInfo& info,
                                const Network* tissue);

/// The most that writing a mask of so many pixels takes, with its outlines.
std::uint64_t most_writing_bytes(std::uint64_t pixels) noexcept;

/// How a slide's small level is let into memory. \param give_up  asked while it waits. \param waited  gets the
/// nanoseconds that it waited for: these aren't the slide's own time. Both are used while the slide is prepared only.
operators::Admission admission_of(const std::shared_ptr<DecodeMemory>& memory, const std::string& path,
                                  const std::function<bool()>& give_up, std::atomic<std::int64_t>& waited);

}  // namespace slidestream
