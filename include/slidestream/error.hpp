#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

/// \file
/// Errors by cause. Every message is one line that says what was found, what was expected, and names
/// the file. Library code throws these and never prints or exits.

namespace slidestream {

/// Root of every error that the library throws on purpose.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The configuration or the command line is wrong: nothing was started (exit status 2).
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// One slide can't be used: the message begins with the slide's path. Other slides go on.
class SlideError : public Error {
 public:
  using Error::Error;
};

/// The storage of a slide failed in a way that may pass, and still did after all retries.
class StorageError : public SlideError {
 public:
  using SlideError::SlideError;
};

/// One tile can't be decoded: what `decode.on_bad_tile` applies to. The message names the cause only; whoever
/// knows the slide adds its path.
class TileError : public Error {
 public:
  using Error::Error;
};

/// A call to the CUDA runtime, or work that was handed to a GPU, failed. After some errors the device is lost for the
/// process: the run ends, and slides that were finished are kept.
class CudaError : public Error {
 public:
  using Error::Error;
};

/// The output folder or a file in it can't be written: the message names the path and the system's reason.
class OutputError : public Error {
 public:
  using Error::Error;
};

}  // namespace slidestream
