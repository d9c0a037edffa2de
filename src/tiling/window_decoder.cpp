#include "tiling/window_decoder.hpp"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "codec/tile_rule.hpp"
#include "cuda/colour/loaded_colours.hpp"
#include "cuda/jpeg/jpeg_batch_decoder.hpp"
#include "cuda/jpeg2000/jpeg2000_batch_decoder.hpp"
#include "cuda/tiles/windows.hpp"
#include "planning/device_sizing.hpp"
#include "planning/tile_ranges.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/resources.hpp"
#include "runtime/host_memory.hpp"
#include "slide/level_coding.hpp"
#include "slide/tile_reader.hpp"
#include "tiling/window_areas.hpp"
#include "tiling/window_cut.hpp"

namespace slidestream {

namespace {

using runtime::HostMemory;
using runtime::cuda::DeviceArena;
using runtime::cuda::PinnedRange;

constexpr std::size_t samples = 3;
constexpr std::size_t usual_tile_pixels = std::size_t{256} * 256;
constexpr std::size_t usual_tile_bytes = std::size_t{24} << 10;
/// Rectangles of windows that are described at a time.
constexpr std::size_t most_pieces = 16384;
/// Host memory that the CPU decodes to on the way to the device.
constexpr std::size_t patch_bytes = std::size_t{16} << 20;
/// Tiles of JPEG 2000 that are decoded side by side, at most: about 480 KB each.
constexpr std::size_t most_wave = 1024;

std::size_t aligned(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

/// Host memory that the device can copy from and to.
struct Pinned {
  explicit Pinned(std::size_t bytes) : memory(bytes), range(memory.bytes()) {}
  std::span<std::byte> take(std::size_t bytes) {
    const std::size_t begin = std::exchange(used, used + DeviceArena::aligned(bytes));
    return memory.bytes().subspan(begin, bytes);
  }

  HostMemory memory;
  PinnedRange range;
  std::size_t used = 0;
};

TileLimits tile_limits(const WindowDecoderLimits& limits) {
  TileLimits tiles;
  tiles.slot_bytes = aligned(limits.compressed_bytes, DeviceArena::alignment);
  tiles.tiles = limits.tiles;
  tiles.planes = {};
  tiles.planes[rgb_plane] = true;
  tiles.component_bytes = limits.pixels * samples;
  tiles.wave = std::min(limits.tiles, most_wave);
  return tiles;
}

}  // namespace

WindowDecoderLimits WindowDecoderLimits::of_tiles(std::size_t tiles) {
  WindowDecoderLimits limits;
  limits.tiles = tiles;
  limits.pixels = tiles * usual_tile_pixels;
  limits.compressed_bytes = tiles * usual_tile_bytes;
  return limits;
}

struct WindowDecoder::Impl {
  explicit Impl(const WindowDecoderLimits& given) : limits(given), tiles(tile_limits(given)) {}

  std::size_t run(const WindowTask& given);
  std::size_t fill_step(std::size_t begin);
  void read();
  void decode_on_device();
  cuda::DeviceColours load_colours();
  std::size_t check_verdicts();
  void decode_on_cpu();
  void place();
  void wait();

  void take_memory();
  const Level& level() const { return task.slide->info().levels[task.resolution.level]; }

  const WindowDecoderLimits limits;
  const TileLimits tiles;
  runtime::cuda::Stream stream;
  runtime::cuda::Event done;

  // Taken when they are first needed.
  std::optional<DeviceArena> device;
  std::optional<Pinned> host;
  std::span<std::byte> compressed;
  std::span<std::byte> decoded;
  std::span<std::byte> pieces_there;
  std::span<std::byte> verdicts;
  std::span<std::byte> host_compressed;
  std::span<std::byte> host_pieces;
  std::span<std::byte> host_verdicts;
  std::optional<cuda::JpegBatch> jpeg;
  std::optional<cuda::JpegBatchDecoder> jpeg_decoder;
  std::optional<DeviceArena> jpeg2000_device;
  std::optional<Pinned> jpeg2000_host;
  std::optional<cuda::Jpeg2000Batch> jpeg2000;
  std::optional<cuda::Jpeg2000BatchDecoder> jpeg2000_decoder;
  std::optional<DeviceArena> colours_device;
  std::optional<Pinned> colours_host;
  std::optional<cuda::LoadedColours> colours;
  std::optional<Pinned> patches;
  TileReader reader;

  // Of a task.
  WindowTask task;
  WindowCut cut;

  // Of a step.
  std::span<WantedPart> step;
  std::vector<BatchTile> to_read;  ///< one for each of the step, as those who plan reads want them
  std::vector<ReadChunk> chunks;
  std::vector<std::size_t> described;  ///< of the step, by the device's numbers
  std::vector<cuda::WindowPiece> pieces;

  std::optional<WindowAreas> areas;  ///< where larger pixels are made
};

void WindowDecoder::Impl::take_memory() {
  if (device) return;
  const cuda::JpegBatchLimits jpegs = jpeg_limits(tiles);
  const std::size_t decoder_bytes = cuda::JpegBatchDecoder::device_bytes(jpegs);
  const std::size_t decoded_bytes = limits.pixels * samples;
  const std::size_t piece_bytes = most_pieces * sizeof(cuda::WindowPiece);
  const std::size_t verdict_bytes = tiles.tiles * sizeof(std::uint32_t);
  const std::size_t upload_bytes = cuda::JpegBatch::upload_bytes(jpegs);
  const auto sum = [](std::initializer_list<std::size_t> parts) {
    std::size_t all = 0;
    for (const std::size_t part : parts) all += DeviceArena::aligned(part);
    return all;
  };
  host.emplace(sum({tiles.slot_bytes, piece_bytes, verdict_bytes, upload_bytes}));
  host_compressed = host->take(tiles.slot_bytes);
  host_pieces = host->take(piece_bytes);
  host_verdicts = host->take(verdict_bytes);
  DeviceArena arena(sum({tiles.slot_bytes, decoded_bytes, piece_bytes, verdict_bytes, decoder_bytes}));
  compressed = arena.take(tiles.slot_bytes);
  decoded = arena.take(decoded_bytes);
  pieces_there = arena.take(piece_bytes);
  verdicts = arena.take(verdict_bytes);
  jpeg.emplace(jpegs, host->take(upload_bytes));
  jpeg_decoder.emplace(jpegs, arena.take(decoder_bytes));
  device = std::move(arena);
}

/// Takes as many of the rectangles from `begin` on as there is room for. \returns the first that isn't among them.
std::size_t WindowDecoder::Impl::fill_step(std::size_t begin) {
  const Level& of = level();
  const TileRanges ranges{*task.slide, task.resolution.level};
  // What the decoder keeps of a tile before it is upsampled: whole blocks, of all of it.
  const std::size_t components = aligned(static_cast<std::size_t>(of.tile_width), 16) *
                                 aligned(static_cast<std::size_t>(of.tile_height), 16) * samples;
  std::size_t room = decoded.size();
  std::size_t component_room = tiles.component_bytes;
  std::size_t compressed_room = tiles.slot_bytes - slot_slack;
  std::size_t end = begin;
  for (; end < cut.parts().size() && end - begin < tiles.tiles; ++end) {
    WantedPart& next = cut.parts()[end];
    next.at = decoded.size() - room;
    const std::size_t bytes = DeviceArena::aligned(next.bytes());
    const TileRange range = task.slide->tile(task.resolution.level, next.tile);
    next.is_white = range.length == 0;
    const std::size_t with_gap = aligned(range.length, 64) + 64;
    const bool from_file = ranges.source_of(range) == BatchTile::Source::file;
    next.by_cpu = !next.is_white && (!task.on_device || !from_file || components > tiles.component_bytes ||
                                     with_gap > tiles.slot_bytes - slot_slack);
    const bool by_device = !next.is_white && !next.by_cpu;
    const bool fits = next.is_white || (next.bytes() <= room &&
                                        (!by_device || (components <= component_room && with_gap <= compressed_room)));
    if (!fits) break;
    if (next.is_white && task.white != nullptr) task.white->add(task.place, next.tile, TileFate::missing);
    if (next.is_white) continue;
    room -= std::min(bytes, room);
    if (!by_device) continue;
    component_room -= components;
    compressed_room -= with_gap;
  }
  step = std::span(cut.parts()).subspan(begin, end - begin);
  return end;
}

/// The compressed bytes of what the device is to decode.
void WindowDecoder::Impl::read() {
  to_read.clear();
  described.clear();
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < step.size(); ++i) {
    if (step[i].is_white || step[i].by_cpu) continue;
    to_read.emplace_back().index = step[i].tile;
    places.push_back(i);
  }
  plan_reads(chunks, to_read, {*task.slide, task.resolution.level}, 0, tiles.slot_bytes - slot_slack);
  for (const ReadChunk& chunk : chunks) {
    task.slide->read(chunk.file_offset, host_compressed.subspan(chunk.slot_offset, chunk.length));
  }
  const LevelCoding& coding = coding_of(*task.slide, task.resolution.level);
  const auto finish = [&](const auto& add) {
    for (std::size_t i = 0; i < to_read.size(); ++i) {
      WantedPart& tile = step[places[i]];
      const std::int64_t column = tile.tile % level().columns;
      const std::int64_t row = tile.tile / level().columns;
      cuda::JpegPlacement placement;
      placement.offset = tile.at;
      placement.pitch = static_cast<std::uint32_t>(tile.pitch);
      placement.from_x = static_cast<std::uint32_t>(tile.part.x - column * level().tile_width);
      placement.from_y = static_cast<std::uint32_t>(tile.part.y - row * level().tile_height);
      placement.width = static_cast<std::uint32_t>(tile.part.width);
      placement.height = static_cast<std::uint32_t>(tile.part.height);
      const std::span<const std::byte> bytes =
          coded_piece(coding, host_compressed.subspan(to_read[i].offset, to_read[i].length));
      if (!bytes.empty() &&
          add(bytes, static_cast<std::size_t>(bytes.data() - host_compressed.data()), to_read[i].index, placement)) {
        described.push_back(places[i]);
      } else {
        tile.by_cpu = true;
      }
    }
  };
  if (level().codec == Codec::jpeg) {
    const cuda::JpegLevelTables tables(coding.jpeg_tables);
    jpeg->clear();
    finish([&](std::span<const std::byte> bytes, std::size_t offset, std::int64_t index,
               const cuda::JpegPlacement& placement) {
      return jpeg->add(bytes, offset, tables, demand_for(level(), coding.tiles_say_colour, index), placement) ==
             cuda::JpegReason::none;
    });
    jpeg->finish(jpeg_decoder->lanes());
    return;
  }
  if (!jpeg2000) {
    const cuda::Jpeg2000BatchLimits of = jpeg2000_limits(tiles);
    jpeg2000_device.emplace(DeviceArena::aligned(cuda::Jpeg2000BatchDecoder::device_bytes(of)));
    jpeg2000_host.emplace(cuda::Jpeg2000Batch::upload_bytes(of));
    jpeg2000_decoder.emplace(of, jpeg2000_device->take(cuda::Jpeg2000BatchDecoder::device_bytes(of)));
    jpeg2000.emplace(of, jpeg2000_host->take(cuda::Jpeg2000Batch::upload_bytes(of)));
  }
  jpeg2000->clear(conversion_of(*task.slide) != nullptr);
  finish([&](std::span<const std::byte> bytes, std::size_t offset, std::int64_t index,
             const cuda::JpegPlacement& placement) {
    return jpeg2000->add(bytes, offset, demand_for(level(), false, index), placement) == cuda::Jpeg2000Reason::none;
  });
}

/// What the slide's colours are converted by.
cuda::DeviceColours WindowDecoder::Impl::load_colours() {
  std::shared_ptr<const ColourConversion> conversion = conversion_of(*task.slide);
  if (conversion == nullptr) return {};
  if (!colours) {
    colours_device.emplace(DeviceArena::aligned(cuda::ConversionMemory::device_bytes));
    colours_host.emplace(cuda::ConversionMemory::pinned_bytes);
    colours.emplace(colours_device->take(cuda::ConversionMemory::device_bytes),
                    colours_host->take(cuda::ConversionMemory::pinned_bytes));
  }
  return colours->load(std::move(conversion), level().codec == Codec::jpeg2000, stream.get());
}

void WindowDecoder::Impl::decode_on_device() {
  if (described.empty()) return;
  const cuda::DeviceColours converted_by = load_colours();
  auto* const plane = reinterpret_cast<std::uint8_t*>(decoded.data());
  auto* const verdict = reinterpret_cast<std::uint32_t*>(verdicts.data());
  const bool is_jpeg = level().codec == Codec::jpeg;
  const ReadChunk& last = chunks.back();
  const std::size_t bytes = aligned(last.slot_offset + last.length, 64);
  SLIDESTREAM_CUDA(
      cudaMemcpyAsync(compressed.data(), host_compressed.data(), bytes, cudaMemcpyHostToDevice, stream.get()));
  if (is_jpeg) {
    jpeg_decoder->enqueue(plane, verdict, *jpeg, compressed.first(bytes), stream.get(), converted_by);
  } else {
    jpeg2000_decoder->enqueue(plane, verdict, *jpeg2000, compressed.first(bytes), stream.get(), converted_by);
  }
  SLIDESTREAM_CUDA(cudaMemcpyAsync(host_verdicts.data(), verdicts.data(), described.size() * sizeof(std::uint32_t),
                                   cudaMemcpyDeviceToHost, stream.get()));
}

/// Leaves to the CPU what the device doesn't vouch for. \returns how many rectangles that are.
std::size_t WindowDecoder::Impl::check_verdicts() {
  static_assert(static_cast<int>(cuda::JpegReason::none) == 0 && static_cast<int>(cuda::Jpeg2000Reason::none) == 0);
  for (WantedPart& tile : step) tile.by_cpu = false;
  std::size_t doubtful = 0;
  const auto* verdict = reinterpret_cast<const std::uint32_t*>(host_verdicts.data());
  for (std::size_t i = 0; i < described.size(); ++i) {
    if (verdict[i] == 0) continue;
    step[described[i]].by_cpu = true;
    ++doubtful;
  }
  return doubtful;
}

/// Neighbours travel together.
void WindowDecoder::Impl::decode_on_cpu() {
  std::size_t filled = 0;
  std::size_t begins_at = 0;
  const auto flush = [&] {
    if (filled == 0) return;
    SLIDESTREAM_CUDA(cudaMemcpyAsync(decoded.data() + begins_at, patches->memory.bytes().data(), filled,
                                     cudaMemcpyHostToDevice, stream.get()));
    // The host writes there again.
    wait();
    filled = 0;
  };
  for (const WantedPart& tile : step) {
    if (!tile.by_cpu) continue;
    if (!patches) patches.emplace(std::max(patch_bytes, aligned(tile.pitch, 4096)));
    if (patches->memory.bytes().size() < tile.pitch) patches.emplace(aligned(tile.pitch, 4096));
    std::uint8_t* const to = reinterpret_cast<std::uint8_t*>(patches->memory.bytes().data());
    const std::int64_t left = tile.tile % level().columns * level().tile_width;
    const std::int64_t top = tile.tile / level().columns * level().tile_height;
    const std::int64_t most_rows = static_cast<std::int64_t>(patches->memory.bytes().size() / tile.pitch);
    for (std::int64_t y = 0; y < tile.part.height; y += most_rows) {
      const std::int64_t rows = std::min(most_rows, tile.part.height - y);
      const std::size_t at = tile.at + static_cast<std::size_t>(y) * tile.pitch;
      const std::size_t bytes = static_cast<std::size_t>(rows) * tile.pitch;
      const bool follows = at >= begins_at + filled && at - begins_at - filled < DeviceArena::alignment;
      if (filled > 0 && (!follows || at + bytes - begins_at > patches->memory.bytes().size())) flush();
      if (filled == 0) begins_at = at;
      const TileFate fate = reader.read(
          *task.slide, task.resolution.level, tile.tile, tile.part.x - left, tile.part.y + y - top,
          {to + (at - begins_at), static_cast<std::ptrdiff_t>(tile.pitch), tile.part.width, rows, rgb_format},
          task.on_bad_tile);
      if (task.white != nullptr) task.white->add(task.place, tile.tile, fate);
      filled = at + bytes - begins_at;
    }
  }
  flush();
}

void WindowDecoder::Impl::place() {
  const Rect& window = task.windows.front().window;
  const cuda::WindowShape shape = {static_cast<std::uint32_t>(window.width), static_cast<std::uint32_t>(window.height),
                                   task.layout == WindowLayout::planar};
  for (std::size_t first = 0; first < pieces.size(); first += most_pieces) {
    const std::span<const cuda::WindowPiece> some =
        std::span(pieces).subspan(first, std::min(most_pieces, pieces.size() - first));
    if (first > 0) wait();
    std::memcpy(host_pieces.data(), some.data(), some.size_bytes());
    SLIDESTREAM_CUDA(cudaMemcpyAsync(pieces_there.data(), host_pieces.data(), some.size_bytes(), cudaMemcpyHostToDevice,
                                     stream.get()));
    cuda::place_windows(reinterpret_cast<const std::uint8_t*>(decoded.data()),
                        reinterpret_cast<const cuda::WindowPiece*>(pieces_there.data()), some.size(), shape,
                        stream.get());
  }
}

void WindowDecoder::Impl::wait() {
  if (limits.waits_actively) {
    SLIDESTREAM_CUDA(cudaStreamSynchronize(stream.get()));
    return;
  }
  SLIDESTREAM_CUDA(cudaEventRecord(done.get(), stream.get()));
  SLIDESTREAM_CUDA(cudaEventSynchronize(done.get()));
}

std::size_t WindowDecoder::Impl::run(const WindowTask& given) {
  task = given;
  if (task.windows.empty()) return 0;
  take_memory();
  if (!task.resolution.is_level()) {
    if (!areas) areas.emplace(limits.pixels * samples, stream.get());
    return areas->run(
        given, [this](const WindowTask& of_level) { return run(of_level); }, [this] { wait(); });
  }
  cut.cut(level(), task.windows, decoded.size());
  std::size_t patched = 0;
  std::size_t begin = 0;
  do {
    const std::size_t end = fill_step(begin);
    pieces.clear();
    if (end == cut.parts().size()) cut.describe_beyond(task.fill, pieces);
    cut.describe(begin, end, pieces);
    begin = end;
    if (task.on_device) read();
    // The device is at work while the CPU decodes the rest.
    if (task.on_device) decode_on_device();
    decode_on_cpu();
    place();
    wait();
    if (!task.on_device) continue;
    patched += static_cast<std::size_t>(std::ranges::count_if(step, &WantedPart::by_cpu));
    const std::size_t doubtful = check_verdicts();
    if (doubtful == 0) continue;
    patched += doubtful;
    decode_on_cpu();
    place();
    wait();
  } while (begin < cut.parts().size());
  return patched;
}

WindowDecoder::WindowDecoder(const WindowDecoderLimits& limits) : impl_(std::make_unique<Impl>(limits)) {}
WindowDecoder::~WindowDecoder() = default;

std::size_t WindowDecoder::run(const WindowTask& task) {
  try {
    return impl_->run(task);
  } catch (...) {
    // Nothing writes to the windows any more, whoever gets their memory next.
    cudaStreamSynchronize(impl_->stream.get());
    throw;
  }
}

cudaStream_t WindowDecoder::stream() const noexcept { return impl_->stream.get(); }

std::size_t WindowDecoder::device_bytes(const WindowDecoderLimits& limits) {
  const TileLimits tiles = tile_limits(limits);
  const std::size_t sources = limits.resamples ? WindowAreas::device_bytes(limits.pixels * samples) : 0;
  return tiles.slot_bytes + limits.pixels * samples + most_pieces * sizeof(cuda::WindowPiece) + sources +
         cuda::JpegBatchDecoder::device_bytes(jpeg_limits(tiles));
}

bool WindowDecoder::takes(const Slide& slide, std::size_t level) {
  const Codec codec = slide.info().levels[level].codec;
  if (codec != Codec::jpeg && codec != Codec::jpeg2000) return false;
  DeviceWork work;
  work.pixel_bytes[rgb_plane] = samples;
  return device_decodes({}, work, slide, level);
}

std::string WindowDecoder::note(const Slide& slide, std::size_t level, bool on_device) {
  const std::string codec = name(slide.info().levels[level].codec);
  return slide.info().path.string() + ": the GPU's decoder doesn't take " + (on_device ? "all" : "its") + " tiles (" +
         codec + "); the CPU decodes them, and their pixels are copied to the GPU";
}

}  // namespace slidestream
