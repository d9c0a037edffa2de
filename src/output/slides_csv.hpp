#pragma once

#include <string>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

namespace slidestream {

/// The text of slides.csv: a header and one record a slide, RFC 4180.
std::string slides_csv(const Config& config, const RunResult& result);

}  // namespace slidestream
