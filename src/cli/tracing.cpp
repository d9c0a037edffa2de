#include "cli/tracing.hpp"

#include <spdlog/spdlog.h>

#include <cstdint>
#include <utility>

namespace slidestream::cli {

Tracing::Tracing(const Config& config, std::string file) : file_(std::move(file)) {
  if (file_.empty()) return;
  final_.emplace(file_);
  TraceRecording::Options options;
  options.devices = config.pipeline.backend != Backend::cpu;
  recording_.emplace(options);
}

void Tracing::finish(RunResult& result) {
  if (!recording_) return;
  trace_ = recording_->finish();
  recording_.reset();
  result.overlap = find_overlap(trace_);
  // Where no GPU was used nobody misses its records.
  if (result.backend == "cuda" && !trace_.device_warning.empty()) spdlog::warn("{}", trace_.device_warning);
  if (const std::uint64_t dropped = trace_.dropped_ranges + trace_.dropped_device_records; dropped > 0) {
    spdlog::warn("the trace is incomplete: {} ranges and {} GPU records found no room in it", trace_.dropped_ranges,
                 trace_.dropped_device_records);
  }
}

void Tracing::write(const std::vector<std::string>& slides) const {
  if (file_.empty()) return;
  final_->check();
  write_trace(file_, trace_, slides);
  spdlog::info("{}: {} ranges and {} GPU records; ui.perfetto.dev shows them", file_, trace_.ranges.size(),
               trace_.device_records.size());
}

}  // namespace slidestream::cli
