#pragma once

#include <atomic>
#include <cstdint>

/// \file
/// What tests ask of the libcufile that stands in for NVIDIA's where devices are made up: their memory is the host's.

namespace slidestream::test {

struct FakeCufile {
  std::atomic<int> driver_error{0};
  std::atomic<unsigned> nvidia_fs{2};  ///< its major version; 0: there is none
  std::atomic<int> register_error{0};
  std::atomic<int> failing_reads{0};     ///< from now on; they come back with `result`
  std::atomic<std::int64_t> result{-1};  ///< -1 sets errno to EIO; others as they are, with so many bytes read
  std::atomic<std::uint64_t> bytes{0};   ///< that were read, so far
  std::atomic<int> files{0};             ///< that are registered now
};

/// The one of the library, which this loads. Whoever asks the loader for libcufile.so.0 from then on gets it.
FakeCufile& fake_cufile();

}  // namespace slidestream::test
