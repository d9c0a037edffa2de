#include "stages/slot_reads.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "cuda/jpeg/jpeg_header.hpp"
#include "planning/tile_ranges.hpp"
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

/// Parts of a batch that passes through a ring are no shorter, so that a short batch is read by several threads.
constexpr std::size_t least_part = std::size_t{512} << 10;
/// Reads of whole blocks write to the rest of the first block and of the last one, too.
constexpr std::size_t beside_part = 2 * File::direct_block;

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

  /// Plans the reads of a chunk of a file, of blocks where they are direct.
  void add(std::size_t index, const ReadChunk& chunk, const Target& target, const SlideFiles::Place& file,
           std::size_t block) {
    const int descriptor = block > 1 ? file.file.direct_descriptor() : file.file.descriptor();
    const std::uint64_t chunk_begin = chunk.file_offset - file.begin;
    const std::uint64_t chunk_end = chunk_begin + chunk.length;
    std::uint64_t begin = chunk_begin / block * block;
    const std::uint64_t end = (chunk_end + block - 1) / block * block;
    std::size_t place = chunk.slot_offset - target.begin - static_cast<std::size_t>(chunk_begin - begin);
    while (begin < end) {
      const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(end - begin, most_read));
      reads.push_back({descriptor, begin, target.memory.subspan(place, bytes)});
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
  batch.next_part.store(0, std::memory_order_relaxed);
  batch.parts.clear();
  std::size_t bytes = 0;
  for (const ReadChunk& chunk : batch.chunks) bytes += chunk.length;
  const bool one_by_one = batch.slide->io == InputIo::posix || batch.slide->io == InputIo::cufile || !has_rings();
  if (batch.bytes == BytesGo::by_ring) {
    const std::size_t most = context_.gpus->staging(batch.lane).chunk_bytes() - beside_part;
    cut_parts(batch.parts, batch.chunks, batch.tile_order, batch.tiles,
              std::min(most, std::max(least_part, bytes / least_turns)));
  } else {
    split_chunks(batch.chunks);
    const std::size_t chunks = batch.chunks.size();
    const std::size_t usual = std::max<std::size_t>(chunks == 0 ? 0 : bytes / chunks, 1);
    const std::size_t most = one_by_one ? std::max<std::size_t>(chunks / least_turns, 1) : runtime::Ring::most_reads;
    const std::size_t a_part = std::clamp<std::size_t>((one_by_one ? most_chunk : most_turn) / usual, 1, most);
    for (std::size_t first = 0; first < chunks; first += a_part) {
      batch.parts.push_back({first, std::min(first + a_part, chunks), 0, 0});
    }
  }
  batch.parts_to_come.store(batch.parts.size(), std::memory_order_relaxed);
  return one_by_one ? batch.parts.size() : std::min(ring_threads, batch.parts.size());
}

std::optional<runtime::StagingRing::Chunk> SlotReads::acquire(Batch& batch) {
  auto chunk =
      context_.gpus->staging(batch.lane).acquire([&] { return batch.skip() || context_.leaves(*batch.slide); });
  if (!chunk && !batch.skip()) batch.slide->abandoned.store(true);
  return chunk;
}

SlotReads::Turn SlotReads::take(Batch& batch) {
  Turn turn;
  if (batch.next_part.load(std::memory_order_relaxed) >= batch.parts.size()) return turn;
  if (batch.bytes != BytesGo::by_ring) {
    const std::size_t part = batch.next_part.fetch_add(1, std::memory_order_relaxed);
    if (part < batch.parts.size()) turn.parts.push_back({part, {}});
    return turn;
  }
  const bool one_by_one = batch.slide->io == InputIo::posix || !has_rings();
  runtime::StagingRing& ring = context_.gpus->staging(batch.lane);
  const std::size_t most = one_by_one ? 1 : std::max<std::size_t>(1, most_turn / ring.chunk_bytes());
  // A chunk comes before its part: what was taken is read without another wait. Only the first is waited for, so that
  // threads that have some never wait for each other.
  for (auto chunk = acquire(batch); chunk; chunk = ring.try_acquire()) {
    const std::size_t part = batch.next_part.fetch_add(1, std::memory_order_relaxed);
    if (part >= batch.parts.size()) break;
    turn.parts.push_back({part, std::move(*chunk)});
    if (turn.parts.size() == most) break;
  }
  return turn;
}

SlotReads::Target SlotReads::target_of(const Batch& batch, const Turn::Taken& taken) {
  if (!taken.chunk) return {batch.slot.memory(), 0};
  const std::size_t begin = batch.chunks[batch.parts[taken.part].first].slot_offset;
  return {taken.chunk.memory(), begin / File::direct_block * File::direct_block};
}

std::uint64_t SlotReads::read(Batch& batch, Turn& turn, std::size_t& at) {
  at = turn.first_chunk(batch);
  if (batch.bytes == BytesGo::to_device) {
    read_to_device(batch, turn, at);
  } else if (batch.slide->io == InputIo::posix) {
    read_plainly(batch, turn, at);
  } else {
    read_at_once(batch, turn, at);
  }
  std::uint64_t bytes = 0;
  for (Turn::Taken& taken : turn.parts) {
    const ReadPart& part = batch.parts[taken.part];
    at = part.first;
    for (std::size_t i = part.first; i < part.end; ++i) bytes += batch.chunks[i].length;
    if (taken.chunk) send(batch, taken);
  }
  return bytes;
}

void SlotReads::read_plainly(Batch& batch, const Turn& turn, std::size_t& at) {
  for (const Turn::Taken& taken : turn.parts) {
    const Target target = target_of(batch, taken);
    const ReadPart& part = batch.parts[taken.part];
    for (at = part.first; at < part.end; ++at) {
      const ReadChunk& chunk = batch.chunks[at];
      batch.slide->slide->read(chunk.file_offset, target.of(chunk));
    }
  }
}

void SlotReads::read_at_once(Batch& batch, const Turn& turn, std::size_t& at) {
  const Slide& slide = *batch.slide->slide;
  const InputIo io = batch.slide->io;
  const SlideFiles& files = files_of(slide);
  std::unique_ptr<Reader> reader = take();
  reader->reads.clear();
  reader->wanted.clear();
  for (const Turn::Taken& taken : turn.parts) {
    const Target target = target_of(batch, taken);
    const ReadPart& part = batch.parts[taken.part];
    for (std::size_t i = part.first; i < part.end; ++i) {
      const ReadChunk& chunk = batch.chunks[i];
      const bool direct = io == InputIo::direct && chunk.whole_blocks;
      reader->add(i, chunk, target, files.at(chunk.file_offset), direct ? block(io) : 1);
    }
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

void SlotReads::send(Batch& batch, Turn::Taken& taken) {
  const Target target = target_of(batch, taken);
  const ReadPart& part = batch.parts[taken.part];
  const std::size_t begin = batch.chunks[part.first].slot_offset;
  const ReadChunk& last = batch.chunks[part.end - 1];
  const std::size_t end = last.slot_offset + last.length;
  if (batch.slide->slide->info().levels[batch.slide->level].codec == Codec::jpeg) {
    const LevelCoding& coding = coding_of(*batch.slide->slide, batch.slide->level);
    for (std::size_t i = part.first_tile; i < part.end_tile; ++i) {
      BatchTile& tile = batch.tiles[batch.tile_order[i]];
      const auto bytes = target.memory.subspan(tile.offset - target.begin, std::min(tile.length, end - tile.offset));
      const auto coded = coded_front(coding, bytes, tile.length);
      if (coded.empty()) continue;
      tile.front_length = bytes.size() - coded.size() + cuda::jpeg_header_length(coded);
      tile.front_offset = batch.fronts_end.fetch_add(tile.front_length, std::memory_order_relaxed);
      std::memcpy(batch.slot.memory().subspan(tile.front_offset, tile.front_length).data(), bytes.data(),
                  tile.front_length);
    }
  }
  context_.gpus->send(batch, std::move(taken.chunk), begin - target.begin, begin, end - begin);
}

void SlotReads::read_to_device(Batch& batch, const Turn& turn, std::size_t& at) {
  for (const Turn::Taken& taken : turn.parts) {
    const ReadPart& part = batch.parts[taken.part];
    for (at = part.first; at < part.end; ++at) {
      if (!context_.gpus->read(batch, batch.chunks[at])) send_by_ring(batch, batch.chunks[at]);
    }
    if (batch.parts_to_come.fetch_sub(1, std::memory_order_acq_rel) == 1) context_.gpus->fetch_headers(batch);
  }
}

void SlotReads::send_by_ring(Batch& batch, const ReadChunk& read) {
  for (std::size_t done = 0; done < read.length;) {
    auto chunk = acquire(batch);
    if (!chunk) return;
    const std::size_t bytes = std::min(chunk->memory().size(), read.length - done);
    batch.slide->slide->read(read.file_offset + done, chunk->memory().first(bytes));
    context_.gpus->send(batch, std::move(*chunk), 0, read.slot_offset + done, bytes);
    done += bytes;
  }
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
