#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/host_memory.hpp"

namespace slidestream {

/// Memory for batches of equal size. What nobody holds any more is used again, so that its pages needn't be taken from
/// the system again. What a pool doesn't keep is kept for others, `most_spare` bytes at most: programs walk slides many
/// times. Thread-safe; blocks outlive the pool.
class BatchMemory : public std::enable_shared_from_this<BatchMemory> {
 public:
  using Block = std::shared_ptr<runtime::HostMemory>;

  /// Where batches begin in their blocks. libjpeg-turbo writes rows that lie at multiples of 32 bytes past the caches,
  /// which takes longer: so they don't.
  static constexpr std::size_t offset = 16;
  /// Bytes that this process keeps for pools to come.
  static constexpr std::size_t most_spare = std::size_t{128} << 20;

  /// A block that goes back when its last holder lets it go, or when it is handed back before.
  class Lease {
   public:
    Lease(std::shared_ptr<BatchMemory> from, Block block) : from_(std::move(from)), block_(std::move(block)) {}
    ~Lease() { hand_back(); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    std::uint8_t* data() const noexcept { return reinterpret_cast<std::uint8_t*>(block_->bytes().data()) + offset; }
    /// Others may write to it from now on; it stays readable as long as this lease lives.
    void hand_back() noexcept;

   private:
    std::shared_ptr<BatchMemory> from_;  ///< null once it was handed back
    Block block_;
  };

  /// \param most_kept  blocks that are kept while nobody holds them
  BatchMemory(std::size_t bytes, std::size_t most_kept) : bytes_(bytes), most_kept_(most_kept) {}
  ~BatchMemory();
  BatchMemory(const BatchMemory&) = delete;
  BatchMemory& operator=(const BatchMemory&) = delete;

  std::size_t bytes() const noexcept { return bytes_; }
  void keep(std::size_t most);
  /// \throws std::bad_alloc
  std::shared_ptr<Lease> take();

 private:
  const std::size_t bytes_;
  const pid_t process_ = ::getpid();
  std::mutex mutex_;
  std::size_t most_kept_;    // guarded by mutex_
  std::vector<Block> free_;  // guarded by mutex_
};

}  // namespace slidestream
