#include "runtime/ring.hpp"

#include <liburing.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>

namespace slidestream::runtime {
namespace {

// A ring may be mapped where another was. liburing maps it by system calls of its own, so only this number tells
// ThreadSanitizer that all uses of the other came before.
std::atomic<unsigned> rings_ended = 0;

}  // namespace

Ring::Ring() : ring_(std::make_unique<io_uring>()) {
  const int error = io_uring_queue_init(most_reads, ring_.get(), 0);
  if (error < 0) throw std::system_error(-error, std::generic_category());
  rings_ended.load(std::memory_order_acquire);
}

Ring::~Ring() {
  rings_ended.fetch_add(1, std::memory_order_release);
  io_uring_queue_exit(ring_.get());
}

void Ring::read(std::span<FileRead> reads) noexcept {
  while (!reads.empty()) {
    const auto now = reads.first(std::min<std::size_t>(reads.size(), most_reads));
    read_some(now);
    reads = reads.subspan(now.size());
  }
}

void Ring::read_some(std::span<FileRead> reads) noexcept {
  for (FileRead& read : reads) read.result = -ECANCELED;
  if (!works_) return;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    // There is always an entry: the kernel has taken all of those before.
    io_uring_sqe* const entry = io_uring_get_sqe(ring_.get());
    const FileRead& read = reads[i];
    io_uring_prep_read(entry, read.descriptor, read.to.data(), static_cast<unsigned>(read.to.size()), read.offset);
    io_uring_sqe_set_data64(entry, i);
  }
  auto to_start = static_cast<unsigned>(reads.size());
  unsigned under_way = 0;
  while (to_start + under_way > 0) {
    const int got = to_start > 0 ? io_uring_submit_and_wait(ring_.get(), to_start + under_way)
                                 : io_uring_submit_and_wait(ring_.get(), under_way);
    if (got > 0) {
      to_start -= static_cast<unsigned>(got);
      under_way += static_cast<unsigned>(got);
    } else if (got < 0 && got != -EINTR && to_start > 0 && under_way == 0) {
      // Nothing is under way, and nothing can be started: from here on others read.
      works_ = false;
      return;
    }
    unsigned head = 0;
    unsigned seen = 0;
    io_uring_cqe* done = nullptr;
    io_uring_for_each_cqe(ring_.get(), head, done) {
      reads[io_uring_cqe_get_data64(done)].result = done->res;
      ++seen;
    }
    io_uring_cq_advance(ring_.get(), seen);
    under_way -= seen;
  }
}

}  // namespace slidestream::runtime
