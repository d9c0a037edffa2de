#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>

/// \file
/// Of NVIDIA's cufile.h, which is in few installations, as much as is used here. It has been the same since 1.0.

namespace slidestream::runtime::cuda::cufile {

struct Status {
  int error;   ///< 0: none
  int driver;  ///< of CUDA's driver, where `error` says so
};
inline constexpr int already_open = 5026;

struct Descriptor {
  int type;
  union {
    int descriptor;
    void* other;
  } handle;
  const void* operations;
};
inline constexpr int type_of_descriptors = 1;

struct Properties {
  struct {
    unsigned major_version;
    unsigned minor_version;
    std::size_t poll_threshold;
    std::size_t most_direct;
    unsigned status_flags;
    unsigned control_flags;
  } nvidia_fs;
  unsigned features;
  unsigned most_device_cache;
  unsigned per_buffer_cache;
  unsigned most_pinned;
  unsigned most_batch;
  unsigned batch_timeout;
  std::array<std::byte, 256> later;  ///< what newer versions may have behind it
};
inline constexpr unsigned feature_peer_to_peer = 1U << 4;

using OpenDriver = Status();
using GetProperties = Status(Properties*);
using RegisterFile = Status(void** handle, Descriptor*);
using DeregisterFile = void(void* handle);
using Read = ssize_t(void* handle, void* memory, std::size_t bytes, off_t offset, off_t at);

}  // namespace slidestream::runtime::cuda::cufile
