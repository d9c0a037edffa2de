#pragma once

#include <slidestream/pipeline.hpp>

namespace slidestream::cli {

/// From now on a file beyond the process's limit (`ulimit -f`) is an error of its write, not the process's end.
void ignore_file_size_signal();

/// Notes beside the ledger that the process ends as memory or threads lack, while a `StopNoteScope` lives: that is no
/// death, and counts of the slides under way. Takes no memory.
void note_shortage() noexcept;

/// While it lives, signals of a `SignalScope` are noted beside the ledger (`stop_note`), so that one that
/// ends the process counts as no slide's fault. One at a time.
class StopNoteScope {
 public:
  /// \param descriptor  of the notes, open while it lives
  explicit StopNoteScope(int descriptor) noexcept;
  ~StopNoteScope();
  StopNoteScope(const StopNoteScope&) = delete;
  StopNoteScope& operator=(const StopNoteScope&) = delete;
};

/// While it lives, the first SIGINT, SIGTERM or, unless it is ignored, SIGHUP asks the run to stop, and the second ends
/// the process at once with status 128 + its number; SIGPIPE is ignored from then on, so that a reader that goes away
/// doesn't cost the results. One at a time; one without a control may be around it.
class SignalScope {
 public:
  explicit SignalScope(RunControl& control);
  /// The first signal ends the process, with a line: nothing was begun that it would lose. A process that is the first
  /// of a container ends only so.
  SignalScope();
  ~SignalScope();
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

  /// The first signal's number; 0: none came.
  static int received() noexcept;
};

}  // namespace slidestream::cli
