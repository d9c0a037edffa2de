#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

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

  /// Cuts a batch's chunks into pieces for a thread, and sets how many of them one reads at a time. \returns how many
  /// threads have something to read.
  std::size_t share_out(Batch& batch) const;

  /// Reads chunks [`first`, `last`) of a batch; `at` is the one that is due, or has failed. Thread-safe for different
  /// chunks. \throws SlideError as `Slide::read`.
  void read(Batch& batch, std::size_t first, std::size_t last, std::size_t& at);

 private:
  struct Reader;
  void read_plainly(Batch& batch, std::size_t first, std::size_t last, std::size_t& at);
  std::unique_ptr<Reader> take();
  void give_back(std::unique_ptr<Reader> reader);
  void read_to_device(Batch& batch, std::size_t first, std::size_t last, std::size_t& at);
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
