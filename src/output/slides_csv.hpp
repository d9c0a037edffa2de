#pragma once

#include <string>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

namespace slidestream {

/// slides.csv is the header and one record a slide, failures.csv one for each that failed; RFC 4180.
std::string slides_csv_header(const Config& config);
std::string slides_csv_record(const Config& config, const SlideResult& slide);
std::string failures_csv_header();
std::string failures_csv_record(const SlideResult& slide);

}  // namespace slidestream
