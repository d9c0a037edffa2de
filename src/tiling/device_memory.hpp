#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/cuda/resources.hpp"
#include "tiling/device_tiles.hpp"

namespace slidestream {

/// Blocks of device memory of equal size, as `BatchMemory` has of the host's. Thread-safe; leases outlive it, and
/// whoever holds one in a forked child gives nothing back.
class DeviceBatchMemory : public std::enable_shared_from_this<DeviceBatchMemory> {
 public:
  class Lease;

  /// \param most_kept  blocks that are kept while nobody holds them
  DeviceBatchMemory(int device, std::size_t bytes, std::size_t most_kept)
      : device_(device), bytes_(bytes), most_kept_(most_kept) {}

  std::size_t bytes() const noexcept { return bytes_; }
  void keep(std::size_t most);
  /// \throws CudaError when the device has no memory left
  std::shared_ptr<Lease> take();

 private:
  struct Block;
  using BlockOwner = std::shared_ptr<Block>;
  BlockOwner make_block() const;

  const int device_;
  const std::size_t bytes_;
  const pid_t process_ = ::getpid();
  std::mutex mutex_;
  std::size_t most_kept_;         // guarded by mutex_
  std::vector<BlockOwner> free_;  // guarded by mutex_
};

class DeviceBatchMemory::Lease final : public DeviceLease {
 public:
  Lease(std::shared_ptr<DeviceBatchMemory> from, BlockOwner block);
  ~Lease() override { Lease::hand_back(); }

  std::uint8_t* data() const noexcept override;
  int device() const noexcept override { return device_; }
  void used_on(void* stream) override;
  void hand_back() noexcept override;
  void copy_to_host(std::uint8_t* to, std::size_t bytes) const override;

  /// Has `stream` wait for all that those who had the memory before may have left there. \throws CudaError
  void wait_for_former_users(cudaStream_t stream) const;

 private:
  const int device_;
  const pid_t process_;
  std::mutex mutex_;
  std::shared_ptr<DeviceBatchMemory> from_;  ///< null once it was handed back; guarded by mutex_
  std::vector<cudaStream_t> streams_;        ///< guarded by mutex_
  BlockOwner block_;
};

}  // namespace slidestream
