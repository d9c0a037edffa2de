#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

/// @file
/// Errors by cause. A message has no line breaks of its own. Messages about files name the file, except those of
/// `TileError`. The library throws these errors and never prints or exits.

namespace slidestream {

/// Base of the errors that depend on files, settings or the machine. Wrong calls throw `std::invalid_argument`,
/// `std::out_of_range` or `std::logic_error` instead.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The configuration, the command line or an input list is wrong, or this machine can't run it. The program exits with
/// status 2.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// One slide can't be used. A run continues with the other slides. The message begins with the path of the file at
/// fault.
class SlideError : public Error {
 public:
  using Error::Error;
};

/// Reading a slide failed with an error that may be temporary, such as EIO or ESTALE, and the allowed retries failed,
/// too.
class StorageError : public SlideError {
 public:
  using SlideError::SlideError;
};

/// Work on a slide ended because its caller asked for that (`OpenOptions::give_up`).
class StoppedError : public SlideError {
 public:
  using SlideError::SlideError;
};

/// One tile can't be decoded. `decode.on_bad_tile` says what happens then. The message has the cause alone; the caller
/// adds the path of the slide.
class TileError : public Error {
 public:
  using Error::Error;
};

/// A CUDA call or work on a GPU failed. The run ends, because the process may have lost the device. Finished slides are
/// kept.
class CudaError : public Error {
 public:
  using Error::Error;
};

/// A run ended before its end, for example because too many slides failed or a GPU was lost. Finished slides are kept,
/// and the same run resumes. The program exits with status 3.
class EndedEarlyError : public Error {
 public:
  using Error::Error;
};

/// An output file or folder can't be written. The message names the path and the cause.
class OutputError : public Error {
 public:
  using Error::Error;
};

}  // namespace slidestream
