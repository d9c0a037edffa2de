#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/staging_ring.hpp"
#include "stages/run/batch.hpp"
#include "stages/run/run_context.hpp"

namespace slidestream {

/// How the bytes of tiles come from a file into a slot (`input.io`). Whatever is chosen, the bytes are the same, and so
/// is what is said when they can't be had: what a fast way can't read, or reads in part, `Slide::read` reads.
class SlotReads {
 public:
  explicit SlotReads(RunContext& context);
  ~SlotReads();
  SlotReads(const SlotReads&) = delete;
  SlotReads& operator=(const SlotReads&) = delete;

  /// How a slide is to be read into the host's memory: never `automatic`, nor `cufile`. Thread-safe.
  InputIo choose(const Slide& slide);

  /// Sets how a slide of the run is read, into a device's memory where that is wanted and possible. Thread-safe for
  /// different slides.
  void choose(SlideRun& slide);

  /// Bytes that places in the file and in the slot are to be the same multiples of, for a slide that is read this way.
  static std::size_t block(InputIo io) noexcept;

  /// Parts of a batch that a thread reads in one go.
  struct Turn {
    struct Taken {
      std::size_t part;
      runtime::StagingRing::Chunk chunk;  ///< of the device's ring that it passes through; none: it goes elsewhere
    };
    std::vector<Taken> parts;

    bool empty() const noexcept { return parts.empty(); }
    std::size_t first_chunk(const Batch& batch) const { return batch.parts[parts.front().part].first; }
  };

  /// Cuts a batch's chunks into parts for a thread each. \returns how many threads have something to read.
  std::size_t share_out(Batch& batch) const;

  /// Takes what nobody else has taken; waits for room in the device's ring where bytes pass through it. None: there is
  /// none, or nobody wants it any more. Thread-safe. \throws CudaError.
  Turn take(Batch& batch);

  /// Reads what was taken, and has it copied to the device where it passed through a ring; `at` is the chunk that is
  /// due, or has failed. Thread-safe for different turns. \returns bytes. \throws SlideError as `Slide::read`;
  /// CudaError.
  std::uint64_t read(Batch& batch, Turn& turn, std::size_t& at);

 private:
  struct Reader;
  /// Memory that a part is read to, and the byte of the slot that it begins with.
  struct Target {
    std::span<std::byte> memory;
    std::size_t begin;

    std::span<std::byte> of(const ReadChunk& chunk) const {
      return memory.subspan(chunk.slot_offset - begin, chunk.length);
    }
  };
  static Target target_of(const Batch& batch, const Turn::Taken& taken);
  void read_plainly(Batch& batch, const Turn& turn, std::size_t& at);
  void read_at_once(Batch& batch, const Turn& turn, std::size_t& at);
  /// Has a part that is in a chunk of the ring copied to the device, and keeps what describing its tiles takes.
  void send(Batch& batch, Turn::Taken& taken);
  /// A chunk of the ring of a batch's device; none: nobody wants the batch any more.
  std::optional<runtime::StagingRing::Chunk> acquire(Batch& batch);
  std::unique_ptr<Reader> take();
  void give_back(std::unique_ptr<Reader> reader);
  void read_to_device(Batch& batch, const Turn& turn, std::size_t& at);
  /// The detour of a chunk that cuFile didn't read.
  void send_by_ring(Batch& batch, const ReadChunk& read);
  /// Why tiles of a slide aren't read straight into a device's memory, one clause; empty: they are.
  std::string why_not_to_device(SlideRun& slide);
  /// "input.io = "cufile": NOTE", unless `said`, which is true from then on.
  void say_of_cufile(const std::string& note, bool& said);
  bool has_rings() const noexcept { return why_no_ring_.empty(); }
  bool is_larger_than_memory(const Slide& slide) const noexcept;
  void say_no_direct(const Slide& slide);

  RunContext& context_;
  std::string why_no_ring_;    ///< empty: there are some
  std::uint64_t free_memory_;  ///< bytes at the beginning; UINT64_MAX where nobody says
  std::mutex mutex_;           ///< of what follows
  std::vector<std::unique_ptr<Reader>> free_;
  bool said_no_direct_ = false;
  bool said_cufile_detour_ = false;
  bool said_no_cufile_ = false;
  std::once_flag device_files_asked_;
  bool has_device_files_ = false;  ///< known behind `device_files_asked_`, and so is what follows
  std::string device_files_note_;
};

}  // namespace slidestream
