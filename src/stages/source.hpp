#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <slidestream/pipeline.hpp>

#include "runtime/io_threads.hpp"
#include "stages/run/batch.hpp"
#include "stages/run/run_context.hpp"

namespace slidestream {

/// The next strip to be admitted.
struct StripMessage {
  std::shared_ptr<SlideRun> slide;
  Chain* chain = nullptr;
  std::size_t strip_index = 0;
  bool empty = false;  ///< no work: the slide failed or was abandoned
  bool last = false;
  std::uint64_t number = 0;  ///< of those that went to the lane before it: the lane's to set
  std::exception_ptr error;  ///< in place of a strip: what the source failed with
};

/// Slides in input order, each as chains of strips in row order. A lane that has sent its chain takes the next one:
/// work goes to the lane that is free first, and a slide's fragments to several lanes. Slides are opened ahead.
class SourceStage {
 public:
  virtual ~SourceStage() = default;
  /// The lane's next strip; false when there is none, or a stop was asked for. One caller a lane at a time.
  virtual bool next(StripMessage& message, std::size_t lane) = 0;
};

/// Into how many fragments a slide is cut, so that no lane stands idle while another has a whole slide to do: the last
/// slides of a run are cut, one fragment for each lane. `slides_left`: with this one.
std::int64_t fragments_of_slide(SplitSlides split, std::size_t slides_left, std::size_t lanes) noexcept;

/// Whether a lane leaves a slide's next fragment to the lanes that have none of it. `taken`: by lane, the fragment of
/// the slide that it took last; null: none. With one of its strips to do, or none, the lane takes the next one itself,
/// as the others may be busy for long.
bool is_left_to_others(const std::vector<const Chain*>& taken, std::size_t lane) noexcept;

/// Slides that lanes of GPUs open at most to find one that is decoded elsewhere than those before it.
constexpr std::size_t most_opened = 16;

/// Slides that take long to open, at most, before the next has to wait for one of them.
constexpr std::size_t most_slow = 4;

/// Slides that are open at a time, at most: with batches in slots, being sent, and opened ahead.
constexpr std::size_t most_open_slides(std::size_t slots, std::size_t lanes, bool on_gpus) noexcept {
  return slots + (on_gpus ? 2 * lanes + most_opened : lanes) + lanes + most_slow;
}

std::unique_ptr<SourceStage> make_source_stage(RunContext& context, const std::vector<std::string>& slides,
                                               const RunControl& control, runtime::IoThreads& io);

}  // namespace slidestream
