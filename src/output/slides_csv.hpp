#pragma once

#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

namespace slidestream {

/// slides.csv is the header and one record a slide, failures.csv one for each that failed, artifacts.csv one for each
/// file that was made; RFC 4180. What is said of windows and their values stands only there where the run has the
/// spectrum. Values of operators have columns of their own at the end, by name; one that a slide hasn't is empty.
std::string slides_csv_header(const Config& config, const std::vector<std::string>& value_names = {});
std::string slides_csv_record(const Config& config, const SlideResult& slide,
                              const std::vector<std::string>& value_names = {});
std::string failures_csv_header();
std::string failures_csv_record(const SlideResult& slide, CsvCells cells = CsvCells::plain);
std::string artifacts_csv_header();
std::string artifacts_csv_records(const SlideResult& slide, CsvCells cells = CsvCells::plain);

}  // namespace slidestream
