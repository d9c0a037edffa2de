#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

/// \file
/// Reads of files straight into a device's memory: GPUDirect Storage, by NVIDIA's library libcufile, which is loaded
/// when it is asked for.

namespace slidestream::runtime::cuda {

/// What libcufile can do on this machine.
struct DeviceFileSupport {
  bool there = false;  ///< files can be read so
  std::string note;    ///< one clause: why they can't be, or by which detour they are; empty: straight
};

/// Loads the library and has it look at the machine. The library stays for the life of the process. Thread-safe.
DeviceFileSupport device_file_support();

/// A file that libcufile knows, as long as this lives. Any number of threads may read at the same time.
class DeviceFile {
 public:
  /// `descriptor` must stay open as long as this lives; best one that reads past the system's cache. \throws CudaError
  /// when the library refuses it.
  explicit DeviceFile(int descriptor);
  ~DeviceFile();
  DeviceFile(const DeviceFile&) = delete;
  DeviceFile& operator=(const DeviceFile&) = delete;

  /// Reads `bytes` at byte `offset` of the file to byte `at` of `memory`, which is the current device's. Blocks until
  /// they are there. \returns how many came, fewer at the file's end; less than 0: none, by an error of the system's
  /// (minus errno, -1 where it isn't told) or of the library's.
  std::int64_t read(std::span<std::byte> memory, std::size_t at, std::size_t bytes,
                    std::uint64_t offset) const noexcept;

 private:
  void* handle_ = nullptr;
};

}  // namespace slidestream::runtime::cuda
