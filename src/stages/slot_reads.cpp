#include "stages/slot_reads.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "runtime/machine.hpp"
#include "runtime/page_cache.hpp"
#include "runtime/ring.hpp"
#include "slide/file.hpp"
#include "slide/level_coding.hpp"
#include "stages/gpu/gpu_set.hpp"
#include "stages/images/slide_images.hpp"

namespace slidestream {
namespace {

/// What one thread reads at a time: enough for storage to work at its speed, and so little that several threads share a
/// batch evenly.
constexpr std::size_t most_chunk = std::size_t{8} << 20;
/// Turns that a batch of many small chunks has at least, so that all threads have some.
constexpr std::size_t least_turns = 32;
/// What a thread that has many reads under way takes at a time, and how long each is.
constexpr std::size_t most_turn = std::size_t{16} << 20;
constexpr std::size_t most_read = std::size_t{1} << 20;
/// Such threads that a batch is worth: two keep storage busy while one of them plans.
constexpr std::size_t ring_threads = 2;

/// Batches from here on leave the processor's caches before anybody looks at them again.
constexpr std::size_t leaves_caches = std::size_t{32} << 20;
/// What is read into a thread's own buffer at a time, which stays in its cache.
constexpr std::size_t stays_in_cache = std::size_t{512} << 10;

/// A slide counts as cached from here on.
constexpr double cached_enough = 0.5;

/// Cuts what is longer than that, between blocks where blocks are read.
void split_chunks(std::vector<ReadChunk>& chunks) {
  std::vector<ReadChunk> pieces;
  pieces.reserve(chunks.size());
  for (ReadChunk rest : chunks) {
    while (rest.length > most_chunk) {
      ReadChunk head = rest;
      head.length = most_chunk;
      if (rest.whole_blocks) head.length -= static_cast<std::size_t>(rest.file_offset % File::direct_block);
      pieces.push_back(head);
      rest.file_offset += head.length;
      rest.slot_offset += head.length;
      rest.length -= head.length;
    }
    pieces.push_back(rest);
  }
  chunks = std::move(pieces);
}

#ifdef __SSE2__
constexpr bool has_streaming_stores = true;
/// Copies past the processor's caches: lines that are written whole needn't be fetched first.
void stream(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  const std::size_t before = std::min(bytes, (16 - reinterpret_cast<std::uintptr_t>(to) % 16) % 16);
  std::memcpy(to, from, before);
  std::size_t i = before;
  for (; i + 16 <= bytes; i += 16) {
    const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), part);
  }
  std::memcpy(to + i, from + i, bytes - i);
  _mm_sfence();
}
#else
constexpr bool has_streaming_stores = false;
void stream(std::byte* to, const std::byte* from, std::size_t bytes) noexcept { std::memcpy(to, from, bytes); }
#endif

}  // namespace

/// What a thread reads with.
struct SlotReads::Reader {
  /// What a read is for.
  struct Wanted {
    std::size_t chunk;
    std::uint64_t begin;  ///< bytes of its file that the chunk wants of it
    std::uint64_t end;
  };
  std::optional<runtime::Ring> ring;
  std::vector<runtime::FileRead> reads;
  std::vector<Wanted> wanted;
  std::vector<std::byte> buffer;  ///< of `stays_in_cache`; empty until it is used

  /// Plans the reads of a chunk of a file, of blocks where they are direct.
  void add(std::size_t index, const ReadChunk& chunk, std::span<std::byte> slot, const SlideFiles::Place& file,
           std::size_t block) {
    const int descriptor = block > 1 ? file.file.direct_descriptor() : file.file.descriptor();
    const std::uint64_t chunk_begin = chunk.file_offset - file.begin;
    const std::uint64_t chunk_end = chunk_begin + chunk.length;
    std::uint64_t begin = chunk_begin / block * block;
    const std::uint64_t end = (chunk_end + block - 1) / block * block;
    std::size_t place = chunk.slot_offset - static_cast<std::size_t>(chunk_begin - begin);
    while (begin < end) {
      const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(end - begin, most_read));
      reads.push_back({descriptor, begin, slot.subspan(place, bytes)});
      wanted.push_back({index, std::max(begin, chunk_begin), std::min(begin + bytes, chunk_end)});
      begin += bytes;
      place += bytes;
    }
  }

  void run() noexcept {
    if (ring) {
      ring->read(reads);
      return;
    }
    for (runtime::FileRead& read : reads) read.result = File::read_once(read.descriptor, read.offset, read.to);
  }
};

SlotReads::SlotReads(RunContext& context)
    : context_(context), free_memory_(runtime::available_memory().value_or(std::numeric_limits<std::uint64_t>::max())) {
  if (context.config.input.io == InputIo::posix || context.config.input.io == InputIo::cufile) return;
  try {
    auto reader = std::make_unique<Reader>();
    reader->ring.emplace();
    free_.push_back(std::move(reader));
  } catch (const std::system_error& error) {
    why_no_ring_ = error.code().message();
    if (context.config.input.io == InputIo::uring && context.on_message) {
      context.on_message("input.io = \"uring\": the kernel refuses io_uring (" + why_no_ring_ +
                         "): tiles are read as with \"posix\"");
    }
  }
}

SlotReads::~SlotReads() = default;

InputIo SlotReads::choose(const Slide& slide) {
  const SlideFiles& files = files_of(slide);
  const File& file = files[0];
  switch (context_.config.input.io) {
    case InputIo::posix:
    case InputIo::cufile:
      return InputIo::posix;
    case InputIo::uring:
      return has_rings() ? InputIo::uring : InputIo::posix;
    case InputIo::direct:
      if (file.direct_descriptor() >= 0) return InputIo::direct;
      say_no_direct(slide);
      return InputIo::posix;
    case InputIo::automatic:
      break;
  }
  // The first file has the largest level, and nearly all bytes.
  const std::optional<double> cached = runtime::cached_share(file.descriptor(), file.size());
  if (!cached || *cached >= cached_enough) return InputIo::posix;
  if (is_larger_than_memory(slide) && file.direct_descriptor() >= 0) return InputIo::direct;
  return has_rings() ? InputIo::uring : InputIo::posix;
}

void SlotReads::choose(SlideRun& slide) {
  slide.io = choose(*slide.slide);
  if (context_.config.input.io != InputIo::cufile) return;
  const std::string why_not = why_not_to_device(slide);
  if (why_not.empty()) {
    slide.io = InputIo::cufile;
    if (!device_files_note_.empty()) say_of_cufile(device_files_note_, said_cufile_detour_);
  } else {
    say_of_cufile(why_not + ": tiles are read as with \"posix\"", said_no_cufile_);
  }
}

std::string SlotReads::why_not_to_device(SlideRun& slide) {
  if (context_.gpus == nullptr) return "no GPU is used";
  std::call_once(device_files_asked_, [&] {
    const runtime::cuda::DeviceFileSupport support = context_.gpus->device_files();
    has_device_files_ = support.there;
    device_files_note_ = support.note;
  });
  if (!has_device_files_) return device_files_note_;
  const std::string& path = slide.slide->info().path.string();
  if (!slide.decode_on_device) return path + " is decoded by the processors";
  if (slide.slide->info().levels[slide.level].codec == Codec::jpeg2000) return path + " is JPEG 2000";
  if (slide.images != nullptr && slide.images->copied != nullptr)
    return "tiles of " + path + " are copied to its image";
  const SlideFiles& files = files_of(*slide.slide);
  if (files.count() > 1) return path + " is several files";
  if (coding_of(*slide.slide, slide.level).in_items) return path + " has its tiles in items";
  try {
    slide.device_file = context_.gpus->device_file(files[0]);
  } catch (const CudaError& error) {
    return path + ": " + error.what();
  }
  return "";
}

void SlotReads::say_of_cufile(const std::string& note, bool& said) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(said, true)) return;
  }
  if (context_.on_message) context_.on_message("input.io = \"cufile\": " + note);
}

/// Whether slides like it would push each other out of the cache before anybody reads one again.
bool SlotReads::is_larger_than_memory(const Slide& slide) const noexcept {
  const auto bytes = static_cast<double>(slide.info().file_size) * static_cast<double>(context_.slides);
  return bytes > 0.5 * static_cast<double>(free_memory_);
}

void SlotReads::say_no_direct(const Slide& slide) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(said_no_direct_, true)) return;
  }
  if (!context_.on_message) return;
  context_.on_message(
      "input.io = \"direct\": the file system of " + slide.info().path.string() +
      " has no reads past the system's cache (O_DIRECT): its tiles, and others' there, are read as with "
      "\"posix\"");
}

std::size_t SlotReads::block(InputIo io) noexcept {
  return io == InputIo::direct || io == InputIo::cufile ? File::direct_block : 1;
}

std::size_t SlotReads::share_out(Batch& batch) const {
  split_chunks(batch.chunks);
  batch.chunks_a_turn = 1;
  const std::size_t chunks = batch.chunks.size();
  batch.chunks_to_come.store(chunks, std::memory_order_relaxed);
  if (chunks == 0) return 0;
  std::size_t bytes = 0;
  for (const ReadChunk& chunk : batch.chunks) bytes += chunk.length;
  const std::size_t usual = std::max<std::size_t>(bytes / chunks, 1);
  const bool one_by_one = batch.slide->io == InputIo::posix || batch.slide->io == InputIo::cufile;
  if (one_by_one || !has_rings()) {
    batch.chunks_a_turn =
        std::clamp<std::size_t>(most_chunk / usual, 1, std::max<std::size_t>(chunks / least_turns, 1));
    return (chunks + batch.chunks_a_turn - 1) / batch.chunks_a_turn;
  }
  batch.chunks_a_turn = std::clamp<std::size_t>(most_turn / usual, 1, runtime::Ring::most_reads);
  return std::min(ring_threads, (chunks + batch.chunks_a_turn - 1) / batch.chunks_a_turn);
}

void SlotReads::read(Batch& batch, std::size_t first, std::size_t last, std::size_t& at) {
  const Slide& slide = *batch.slide->slide;
  const std::span<std::byte> slot = batch.slot.memory();
  const InputIo io = batch.slide->io;
  at = first;
  if (io == InputIo::posix) {
    read_plainly(batch, first, last, at);
    return;
  }
  if (io == InputIo::cufile) {
    read_to_device(batch, first, last, at);
    return;
  }
  const SlideFiles& files = files_of(slide);
  std::unique_ptr<Reader> reader = take();
  reader->reads.clear();
  reader->wanted.clear();
  for (std::size_t i = first; i < last; ++i) {
    const ReadChunk& chunk = batch.chunks[i];
    const bool direct = io == InputIo::direct && chunk.whole_blocks;
    reader->add(i, chunk, slot, files.at(chunk.file_offset), direct ? block(io) : 1);
  }
  reader->run();
  for (std::size_t i = 0; i < reader->reads.size(); ++i) {
    const runtime::FileRead& read = reader->reads[i];
    const Reader::Wanted& wanted = reader->wanted[i];
    at = wanted.chunk;
    const auto before = static_cast<std::size_t>(wanted.begin - read.offset);
    const auto bytes = static_cast<std::size_t>(wanted.end - wanted.begin);
    if (read.result >= static_cast<std::int64_t>(before + bytes)) continue;
    const SlideFiles::Place place = files.at(batch.chunks[wanted.chunk].file_offset);
    if (read.descriptor != place.file.descriptor() && read.result == -EINVAL) say_no_direct(slide);
    place.file.read(wanted.begin, read.to.subspan(before, bytes));
  }
  give_back(std::move(reader));
}

void SlotReads::read_plainly(Batch& batch, std::size_t first, std::size_t last, std::size_t& at) {
  const Slide& slide = *batch.slide->slide;
  // What a device fetches from memory the processor only writes. A long batch would take all of its caches along.
  const bool past_caches = has_streaming_stores && batch.decode_on_device && batch.compressed_end >= leaves_caches;
  std::unique_ptr<Reader> reader = past_caches ? take() : nullptr;
  if (past_caches) reader->buffer.resize(stays_in_cache);
  for (at = first; at < last; ++at) {
    const ReadChunk& chunk = batch.chunks[at];
    const std::span<std::byte> to = batch.slot.memory().subspan(chunk.slot_offset, chunk.length);
    if (!past_caches) {
      slide.read(chunk.file_offset, to);
      continue;
    }
    for (std::size_t done = 0; done < to.size(); done += stays_in_cache) {
      const auto part = std::span(reader->buffer).first(std::min(stays_in_cache, to.size() - done));
      slide.read(chunk.file_offset + done, part);
      stream(to.data() + done, part.data(), part.size());
    }
  }
  if (past_caches) give_back(std::move(reader));
}

void SlotReads::read_to_device(Batch& batch, std::size_t first, std::size_t last, std::size_t& at) {
  for (at = first; at < last; ++at) {
    const ReadChunk& chunk = batch.chunks[at];
    if (context_.gpus->read(batch, chunk)) continue;
    batch.slide->slide->read(chunk.file_offset, batch.slot.memory().subspan(chunk.slot_offset, chunk.length));
    context_.gpus->put(batch, chunk);
  }
  const std::size_t read = last - first;
  if (batch.chunks_to_come.fetch_sub(read, std::memory_order_acq_rel) == read) context_.gpus->fetch_headers(batch);
}

std::unique_ptr<SlotReads::Reader> SlotReads::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      std::unique_ptr<Reader> reader = std::move(free_.back());
      free_.pop_back();
      return reader;
    }
  }
  auto reader = std::make_unique<Reader>();
  if (!has_rings()) return reader;
  try {
    reader->ring.emplace();
  } catch (const std::system_error&) {
    // No more of them: this thread has one read under way at a time.
  }
  return reader;
}

void SlotReads::give_back(std::unique_ptr<Reader> reader) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(reader));
}

}  // namespace slidestream
