#pragma once

#include <optional>
#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>
#include <slidestream/trace.hpp>

#include "sink/final_name.hpp"

namespace slidestream::cli {

/// Records the run when that is asked for.
class Tracing {
 public:
  /// `file`: to be written; empty: nothing is recorded.
  Tracing(const Config& config, std::string file);

  /// Ends the recording; what it says of GPUs goes into the result.
  void finish(RunResult& result);

  /// \throws OutputError.
  void write(const std::vector<std::string>& slides) const;

 private:
  std::string file_;
  std::optional<FinalName> final_;
  std::optional<TraceRecording> recording_;
  Trace trace_;
};

}  // namespace slidestream::cli
