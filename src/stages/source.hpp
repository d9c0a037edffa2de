#pragma once

#include <memory>
#include <string>
#include <vector>

#include <slidestream/pipeline.hpp>

#include "runtime/io_threads.hpp"
#include "runtime/stage_contract.hpp"
#include "stages/batch.hpp"

namespace slidestream {

/// The next strip to be admitted.
struct StripMessage {
  std::shared_ptr<SlideRun> slide;
  std::size_t strip_index = 0;
  bool empty = false;  ///< no work: the slide failed or was abandoned
  bool last = false;
};

/// Slides in input order, each as strips in row order. The next slide is opened while the present one is sent.
class SourceStage {
 public:
  virtual ~SourceStage() = default;
  /// The next strip; false when there is none, or a stop was asked for. One caller at a time.
  virtual bool next(StripMessage& message) = 0;
};

extern const runtime::StageContract source_contract;

std::unique_ptr<SourceStage> make_source_stage(RunContext& context, const std::vector<std::string>& slides,
                                               const RunControl& control, runtime::IoThreads& io);

}  // namespace slidestream
