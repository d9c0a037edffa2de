#pragma once

#include <cstddef>
#include <slidestream/slide.hpp>
#include <string>

namespace slidestream {

/// What OpenSlide says of a slide that is read without it.
struct SecondOpinion {
  enum class Verdict { agrees, differs, not_compared } verdict = Verdict::not_compared;
  std::string text;  ///< one line, without the path: what agrees, the first difference with both values, or why not
};

/// Compares a slide with what OpenSlide makes of the same file: levels, pixel size, and `regions` of up to 256 x 256
/// pixels at random, the same ones in every call. Decoders round differently: a region differs where more than 1 % of
/// its pixels do by more than 8 of 255. In the calling thread.
/// \param library  as `OpenOptions::openslide`. \throws ConfigError where OpenSlide isn't there
SecondOpinion second_opinion(const Slide& slide, const std::string& library, std::size_t regions = 100);

}  // namespace slidestream
