#include "planning/device_sizing.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <optional>
#include <utility>

#include <slidestream/error.hpp>

#include "cuda/colour/colour_program.hpp"
#include "cuda/jpeg/decoder_memory.hpp"
#include "cuda/jpeg/jpeg_header.hpp"
#include "cuda/jpeg2000/coding.hpp"
#include "cuda/jpeg2000/decoder_memory.hpp"
#include "cuda/pyramid/band_reducer.hpp"
#include "cuda/spectrum/cufft_layout.hpp"
#include "cuda/spectrum/fused_layout.hpp"
#include "planning/device_tail.hpp"
#include "planning/tile_ranges.hpp"
#include "slide/level_coding.hpp"
#include "statistics/split.hpp"

namespace slidestream {
namespace {

/// Windows that a batch may complete at most: their moments are copied back, 16 bytes each.
constexpr std::size_t most_windows = std::size_t{4} << 20;

/// Tiles that a slot's decoder is ready for: as many as it would hold if they had so few bytes, or pixels, each, within
/// limits. What it knows of a tile is in pinned memory, for whose pinning the first batches wait.
constexpr std::size_t least_tile_bytes = 2048;
constexpr std::size_t least_tile_pixels = std::size_t{128} * 128;
constexpr std::size_t wide_row = 16384;  // tiles of any size
constexpr std::size_t least_tiles = 1024;
constexpr std::size_t most_tiles = std::size_t{3} << 15;

/// Tiles of JPEG 2000 that a slot decodes at a time: a wave. In the largest wave a tile takes about 180 KB of scratch
/// memory, in the smallest 250 KB; for RGB 370 and 510 KB. Several slots decode side by side.
constexpr std::size_t least_wave = 32;
constexpr std::size_t most_wave = 8192;
/// Pixels of a tile of the usual size, and bytes that tiles have at most on an average for waves of so many.
constexpr std::size_t usual_tile_pixels = std::size_t{256} * 256;
constexpr std::size_t wave_tile_bytes = 24 << 10;

/// Compute streams of a device, where memory allows: small slides are computed side by side.
constexpr std::size_t most_compute_streams = 4;

/// Bytes of an output slot that do for many of them: of rows that the host makes levels of; and of tiles from a device,
/// with which each slot is a write under way.
constexpr std::size_t output_slot_bytes = std::size_t{160} << 20;
constexpr std::size_t parcel_slot_bytes = std::size_t{40} << 20;

/// Memory for rows of images that fill no row of tiles yet: for a pixel's byte at least so much, which does for images
/// of 64,000 columns, but no more than a part of all.
constexpr std::size_t kept_bytes = std::size_t{64} << 20;
constexpr std::size_t kept_part = 48;
/// Pixels of JPEG tiles that are encoded at a time.
constexpr std::int64_t encoded_at_once = std::int64_t{1} << 28;

/// Tiles looked at, at most, for one that tells how the level is coded.
constexpr std::int64_t most_probed = 64;

/// Scratch for planes of up to `pixels`, whatever their shape.
std::size_t scratch_for(const DeviceSizing& sizing, std::size_t pixels, const AnalysisConfig& analysis) {
  std::size_t most = 0;
  for (const std::int64_t wide : {1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18}) {
    const std::int64_t width = std::max<std::int64_t>(wide, analysis.window);
    const std::int64_t height = std::max<std::int64_t>(static_cast<std::int64_t>(pixels) / width, analysis.window);
    most = std::max(most, sizing.windows(width, height, (width - analysis.window) / analysis.stride + 1,
                                         (height - analysis.window) / analysis.stride + 1));
  }
  return most;
}

/// The same for the kernels of images.
std::size_t image_scratch_for(const DeviceSizing& sizing, std::size_t pixels) {
  std::size_t most = 0;
  for (const std::int64_t width : {1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18}) {
    most = std::max(most, sizing.images({width, static_cast<std::int64_t>(pixels) / width + 1}));
  }
  return most;
}

/// For the levels of images with so many pixels a batch.
PyramidMemory pyramids_for(const DeviceWork& work, std::size_t pixels, std::size_t allowed) {
  PyramidMemory memory;
  const auto image_bytes = static_cast<std::size_t>(work.image_bytes);
  memory.kept = std::min(std::max(pixels * image_bytes / 8, kept_bytes * image_bytes), allowed / kept_part);
  for (const DeviceImage& image : work.images) {
    const auto tile_pixels =
        static_cast<std::size_t>(image.options.tile) * static_cast<std::size_t>(image.options.tile);
    // With those at edges, and those that earlier batches began.
    const std::size_t begun = 2 * memory.kept / (tile_pixels * image_bytes) + 64;
    memory.tiles = std::max(memory.tiles, pixels / tile_pixels * 3 / 2 + begun);
    memory.at_once =
        std::clamp<std::size_t>(encoded_at_once / tile_pixels, 1, std::min<std::size_t>(memory.tiles, 1 << 14));
  }
  std::vector<PixelFormat> formats;
  for (const DeviceImage& image : work.images) {
    if (!image.is_encoded) continue;
    memory.encoded += memory.tiles * static_cast<std::size_t>(image.encoded_tile_bytes());
    memory.places += memory.tiles * sizeof(cuda::JpegTilePosition);
    // Two words more for every run that is encoded at a time, of which each level has one more.
    memory.words +=
        (memory.tiles + 2 * (memory.tiles / memory.at_once + cuda::BandReducer::most_levels)) * sizeof(std::uint64_t);
    if (std::ranges::count(formats, image.format) > 0) continue;
    formats.push_back(image.format);
    memory.encoders += DeviceLayout::aligned(cuda::JpegEncoderMemory(image.encoder_limits(memory.at_once)).size);
  }
  return memory;
}

/// Whether a device with that layout makes the levels of a slide's images, of which the host keeps `output_bytes` at a
/// time at least.
bool makes_pyramids(const DeviceWork& work, const DeviceLayout& layout, std::size_t output_bytes, const Level& level,
                    std::int64_t most_rows) {
  if (layout.pyramids.tiles == 0) return false;
  for (std::size_t i = 0; i < work.images.size(); ++i) {
    const DeviceImage& image = work.images[i];
    const PyramidLayout pyramid({level.width, level.height}, image.options.tile, image.options.levels);
    const std::int64_t kept = share_of(work.images, i, static_cast<std::int64_t>(layout.pyramids.kept));
    const PyramidRoom room(image, level.width, most_rows);
    if (image.raw_tile_bytes() > static_cast<std::int64_t>(output_bytes) || rows_at_a_time(image, pyramid, kept) == 0 ||
        room.tiles > static_cast<std::int64_t>(layout.pyramids.tiles) ||
        room.bytes > share_of(work.images, i, static_cast<std::int64_t>(layout.band)))
      return false;
  }
  return true;
}

/// Whether `takes(bytes, index)` takes the level's first tile that is there.
template <class Takes>
bool takes_first(const Slide& slide, std::size_t level_index, const Takes& takes) {
  const Level& level = slide.info().levels[level_index];
  const TileRanges ranges{slide, level_index};
  for (std::int64_t i = 0; i < std::min(level.columns * level.rows, most_probed); ++i) {
    const TileRange range = slide.tile(level_index, i);
    if (ranges.source_of(range) != BatchTile::Source::file) continue;
    std::vector<std::byte> bytes(static_cast<std::size_t>(range.length));
    slide.read(range.offset, bytes);
    return takes(coded_piece(coding_of(slide, level_index), bytes), i);
  }
  return true;
}

bool takes_jpeg(const Slide& slide, std::size_t level_index) {
  const cuda::JpegLevelTables tables(coding_of(slide, level_index).jpeg_tables);
  if (tables.reason != cuda::JpegReason::none) return false;
  return takes_first(slide, level_index, [&tables](std::span<const std::byte> bytes, std::int64_t) {
    cuda::JpegHeader header;
    return cuda::parse_jpeg_header(bytes, tables.references, header) == cuda::JpegReason::none;
  });
}

bool takes_jpeg2000(const DeviceWork& work, const Slide& slide, std::size_t level_index) {
  const Level& level = slide.info().levels[level_index];
  return takes_first(slide, level_index, [&](std::span<const std::byte> bytes, std::int64_t index) {
    using cuda::Jpeg2000Reason;
    cuda::Jpeg2000Header header;
    if (cuda::parse_jpeg2000_header(cuda::find_jpeg2000_codestream(bytes), header) != Jpeg2000Reason::none)
      return false;
    std::uint32_t components = 1;
    for (std::size_t k = 0; k < plane_count; ++k) {
      // Colours are converted by way of RGB alone.
      if (slide.info().is_srgb ? k != rgb_plane : work.pixel_bytes[k] == 0) continue;
      PixelsOf pixels = PixelsOf::first;
      const TileDemand demand = demand_for(level, false, index, plane_formats[k]);
      if (cuda::judge_jpeg2000(header.parameters, demand, pixels) != Jpeg2000Reason::none) return false;
      components = std::max(components, cuda::components_for(pixels));
    }
    const auto coding = std::make_unique<cuda::Jpeg2000Coding>();
    return cuda::make_coding(header.parameters, components, *coding) == Jpeg2000Reason::none;
  });
}

/// Bins to a decibel at most with which the fused engine is certain to find room in shared memory, on any GPU.
constexpr double most_certain_bins = 10.0;

/// The fused engine's bins, where it takes the configuration on every GPU.
std::optional<cuda::FusedBins> certain_fused_bins(const AnalysisConfig& analysis) {
  if (analysis.bins / (analysis.range[1] - analysis.range[0]) > most_certain_bins) return {};
  return cuda::fused_bins(analysis);
}

}  // namespace

cuda::JpegBatchLimits jpeg_limits(const TileLimits& limits) {
  cuda::JpegBatchLimits jpeg;
  jpeg.tiles = static_cast<std::uint32_t>(limits.tiles);
  jpeg.compressed_bytes = limits.slot_bytes;
  jpeg.white_rectangles = jpeg.tiles;
  if (limits.planes[rgb_plane] || limits.converts) {
    jpeg.format = rgb_format;
    jpeg.component_bytes = limits.component_bytes;
    jpeg.with_luminance = limits.planes[luminance_plane];
    if (jpeg.with_luminance) jpeg.white_rectangles *= 2;
  }
  return jpeg;
}

cuda::Jpeg2000BatchLimits jpeg2000_limits(const TileLimits& limits) {
  cuda::Jpeg2000BatchLimits jpeg2000;
  jpeg2000.tiles = static_cast<std::uint32_t>(limits.tiles);
  jpeg2000.compressed_bytes = std::min<std::uint64_t>(limits.slot_bytes, UINT32_MAX);
  jpeg2000.white_rectangles = jpeg2000.tiles;
  if (limits.planes[rgb_plane] || limits.converts) {
    jpeg2000.format = rgb_format;
    jpeg2000.with_luminance = limits.planes[luminance_plane];
  }
  jpeg2000.wave_tiles = static_cast<std::uint32_t>(limits.wave);
  jpeg2000.wave_bytes = limits.wave * wave_tile_bytes;
  return jpeg2000;
}

DecoderScratch::DecoderScratch(const TileLimits& limits, std::size_t jpeg_bytes)
    : verdict_bytes(limits.tiles * sizeof(std::uint32_t)),
      colours(DeviceLayout::aligned(verdict_bytes)),
      jpeg2000(colours + (limits.converts ? DeviceLayout::aligned(cuda::ConversionMemory::device_bytes) : 0)),
      jpeg(jpeg2000),
      size(jpeg + jpeg_bytes) {
  if (limits.wave == 0) return;
  jpeg += cuda::Jpeg2000DecoderMemory::kept_bytes;
  const cuda::Jpeg2000DecoderMemory memory(cuda::Jpeg2000UploadLayout(jpeg2000_limits(limits)));
  size = std::max(jpeg + jpeg_bytes, jpeg2000 + memory.size);
}

std::size_t DeviceLayout::total() const {
  return slots * (aligned(plane[luminance_plane]) + aligned(plane[rgb_plane]) + aligned(band) + aligned(compressed) +
                  aligned(decode_scratch) + aligned(result_bytes())) +
         slots * (aligned(pyramids.encoded) + aligned(pyramids.words)) +
         (slots + 1) * (aligned(carry_bytes()) + aligned(pyramids.kept)) +
         streams * (aligned(scratch) + aligned(pyramids.encoders));
}

DeviceWork device_work(const Config& config, const Operators& operators, std::size_t slides, std::size_t devices) {
  DeviceWork work;
  work.spectrum = false;
  for (const OperatorNeeds& op : needs_of(operators)) {
    work.pixel_bytes[op.plane] = static_cast<std::int64_t>(plane_formats[op.plane].pixel_bytes());
    work.image_bytes += op.image_bytes;
    work.spectrum |= op.image_bytes == 0;
  }
  work.batch_pixels = batch_pixels_for(config.pipeline, most_batch_pixels(slides, devices));
  work.images = device_images(config, operators);
  return work;
}

std::int64_t batch_pixels_for(const PipelineConfig& pipeline, std::int64_t usual) {
  const bool as_told = pipeline.batch_strips > 0 || pipeline.residency == Residency::whole;
  return as_told ? INT64_MAX / 16 : usual;
}

HostSlots device_host_slots(const PipelineConfig& pipeline, const DeviceWork& work, std::size_t devices) {
  constexpr std::size_t page = 4096;
  const std::size_t memory = static_cast<std::size_t>(pipeline.memory_mib) << 20;
  const auto depth = static_cast<std::size_t>(pipeline.queue_depth);
  HostSlots host;
  const bool images = work.image_bytes > 0;
  host.slot_bytes = (images ? memory / 2 : memory) / (depth * devices) / page * page;
  if (!images) return host;
  // Many small ones, for many files at a time; but as large as bands want them.
  const std::size_t least = std::max<std::size_t>(2, depth / 2) * devices;
  std::size_t usual = work.images.empty() ? output_slot_bytes : parcel_slot_bytes;
  // A tile that leaves the device as pixels has to fit.
  for (const DeviceImage& image : work.images) {
    usual = std::max(usual, 2 * static_cast<std::size_t>(image.raw_tile_bytes()));
  }
  host.output_slots = std::clamp(memory / 2 / usual, least, 4 * least);
  host.output_bytes = memory / 2 / host.output_slots / page * page;
  return host;
}

DeviceLayout lay_out(const Config& config, const DeviceWork& work, const HostSlots& host, const DeviceSizing& sizing,
                     std::size_t allowed) {
  const std::size_t slot_bytes = host.slot_bytes;
  const auto plane_bytes = static_cast<std::size_t>(work.plane_bytes());
  DeviceLayout layout;
  layout.slots = static_cast<std::size_t>(config.pipeline.queue_depth);
  if (work.spectrum) {
    layout.bins = static_cast<std::size_t>(config.analysis.bins);
    layout.counters = statistic_counters(config.analysis);
    layout.classes = split_of(config.analysis).statistic != nullptr;
  }
  layout.band = host.output_bytes;
  const auto with_pixels = [&](std::size_t pixels) {
    for (std::size_t k = 0; k < plane_count; ++k) {
      if (work.pixel_bytes[k] == 0) continue;
      const std::size_t own = pixels * static_cast<std::size_t>(work.pixel_bytes[k]);
      layout.carry[k] = std::max(slot_bytes / 4, own / 16);
      layout.plane[k] = own + layout.carry[k];
    }
    if (!work.images.empty()) {
      layout.pyramids = pyramids_for(work, pixels, allowed);
      const std::size_t levels = pixels * static_cast<std::size_t>(work.image_bytes) / 3 * 4 + layout.pyramids.kept;
      layout.band = std::max(host.output_bytes, levels);
    }
    layout.scratch = 0;
    if (work.spectrum) {
      const auto stride = static_cast<std::size_t>(config.analysis.stride);
      layout.windows = std::min(pixels / (stride * stride) * 2 + 65536, most_windows);
      layout.scratch = scratch_for(sizing, pixels, config.analysis);
    }
    if (sizing.images) layout.scratch = std::max(layout.scratch, image_scratch_for(sizing, pixels));
  };
  // Rows that were decoded on the CPU, and those carried, are no more than this.
  const std::size_t least = slot_bytes / plane_bytes;
  with_pixels(least);
  // Where memory is too short for levels, the host makes them.
  const auto with_less = [&](const DeviceLayout& all) {
    if (work.images.empty() || all.total() <= allowed) return all;
    DeviceWork less = work;
    less.images.clear();
    return lay_out(config, less, host, sizing, allowed);
  };
  if (config.decode.device == DecodeDevice::cpu) return with_less(layout);
  layout.compressed = slot_bytes;
  layout.tiles.slot_bytes = slot_bytes;
  for (std::size_t k = 0; k < plane_count; ++k) layout.tiles.planes[k] = work.pixel_bytes[k] > 0;
  layout.tiles.converts = config.converts_colours();
  layout.tiles.wave = least_wave;
  // What is decoded on the device is many times larger than its compressed bytes: as much as a launch wants, if there
  // is memory for it, and no more than a band of images takes.
  const auto launch = static_cast<std::size_t>(work.batch_pixels);
  std::size_t wanted = std::min(launch + launch / 16, 64 * slot_bytes);
  if (work.image_bytes > 0 && work.images.empty()) {
    const std::size_t band = host.output_bytes / static_cast<std::size_t>(work.image_bytes);
    wanted = std::min(wanted, band + band / 4);
  }
  const auto with_tiles = [&](std::size_t pixels) {
    with_pixels(pixels);
    layout.tiles.tiles =
        std::clamp(std::min(slot_bytes / least_tile_bytes, std::max(pixels / least_tile_pixels, wide_row)), least_tiles,
                   most_tiles);
  };
  const auto with_decoder = [&] {
    // Up to three bytes a pixel, of tiles that lie partly outside what is wanted, too.
    const std::size_t rgb = layout.tiles.planes[rgb_plane] ? layout.plane[rgb_plane]
                            : layout.tiles.converts        ? 3 * layout.plane[luminance_plane]
                                                           : 0;
    layout.tiles.component_bytes = rgb * 5 / 4;
    layout.decode_scratch = sizing.decoder(layout.tiles);
    std::size_t upload = cuda::JpegBatch::upload_bytes(jpeg_limits(layout.tiles));
    if (layout.tiles.wave > 0) {
      upload = std::max(upload, cuda::Jpeg2000Batch::upload_bytes(jpeg2000_limits(layout.tiles)));
    }
    layout.decode_pinned = DeviceLayout::aligned(layout.tiles.tiles * sizeof(std::uint32_t)) +
                           DeviceLayout::aligned(upload) +
                           (layout.tiles.converts ? DeviceLayout::aligned(cuda::ConversionMemory::pinned_bytes) : 0);
  };
  const auto with_streams = [&] {
    with_decoder();
    for (layout.streams = std::min(most_compute_streams, layout.slots); layout.streams > 1; layout.streams /= 2) {
      if (layout.total() <= allowed) return true;
    }
    return layout.total() <= allowed;
  };
  // Of what memory is left then: a slot's tiles all at a time, or half of them, and so on.
  const auto with_waves = [&] {
    if (layout.tiles.wave == 0) return;
    const std::size_t plane = std::max(layout.plane[luminance_plane], layout.plane[rgb_plane] / 3);
    const std::size_t tiles = std::min(plane / usual_tile_pixels, layout.tiles.tiles);
    for (layout.tiles.wave = std::clamp(tiles, least_wave, most_wave);; layout.tiles.wave /= 2) {
      layout.tiles.wave = std::max(layout.tiles.wave, least_wave);
      with_decoder();
      if (layout.tiles.wave == least_wave || layout.total() <= allowed) return;
    }
  };
  for (std::size_t pixels = std::max(least, wanted); pixels > least; pixels -= pixels / 8) {
    with_tiles(pixels);
    if (!with_streams()) continue;
    with_waves();
    return layout;
  }
  with_tiles(least);
  const bool fits = with_streams();
  with_waves();
  return fits ? layout : with_less(layout);
}

SlotLimits device_slot_limits(const DeviceWork& work, const HostSlots& host, const DeviceLayout& layout,
                              const DeviceSizing& sizing) {
  SlotLimits limits;
  limits.slot_bytes = host.slot_bytes;
  limits.carry_bytes = layout.carry[luminance_plane] + layout.carry[rgb_plane];
  limits.output_slots = host.output_slots;
  limits.output_bytes = host.output_bytes;
  limits.makes_levels = [work, layout, output_bytes = host.output_bytes](const Level& level, std::int64_t most_rows) {
    return makes_pyramids(work, layout, output_bytes, level, most_rows);
  };
  limits.fits = [host, layout, spectrum = work.spectrum, images = work.images, sizing](const BatchNeeds& needs) {
    const auto bytes = [](std::int64_t count) { return static_cast<std::size_t>(count); };
    std::int64_t own_bytes = 0;
    for (std::size_t k = 0; k < plane_count; ++k) {
      if (bytes(needs.carried_rows[k] * needs.pitch[k]) > layout.carry[k]) return false;
      const std::int64_t rows = needs.carried_rows[k] + needs.rows;
      if (bytes(rows * needs.pitch[k]) > layout.plane[k]) return false;
      own_bytes += needs.rows * needs.pitch[k];
    }
    if (needs.decoded_on_device) {
      if (bytes(needs.tiles) > layout.tiles.tiles) return false;
      if (layout.tiles.component_bytes > 0 && bytes(needs.tiles * needs.tile_pixels * 3) > layout.tiles.component_bytes)
        return false;
      const DeviceTail tail = device_tail(host.slot_bytes, bytes(needs.tiles), needs.patch_bytes());
      if (bytes(needs.compressed_bytes + slot_slack) > tail.descriptors_offset) return false;
    } else if (bytes(own_bytes + needs.compressed_bytes + slot_slack) > host.slot_bytes) {
      return false;
    }
    if (needs.levels_on_device) {
      for (std::size_t i = 0; i < images.size(); ++i) {
        const PyramidRoom room(images[i], needs.width, needs.outputs[images[i].op].rows);
        if (bytes(room.tiles) > layout.pyramids.tiles ||
            room.bytes > share_of(images, i, static_cast<std::int64_t>(layout.band)))
          return false;
      }
    } else if (bytes(needs.image_bytes) > std::min(layout.band, host.output_bytes)) {
      return false;
    }
    std::int64_t image_rows = 0;
    for (const OutputCount& completed : needs.outputs) image_rows = std::max(image_rows, completed.rows);
    if (sizing.images && sizing.images({needs.width, image_rows}) > layout.scratch) return false;
    if (!spectrum) return true;
    const OutputCount& completed = needs.outputs[needs.windows];
    if (bytes(completed.columns) * bytes(completed.rows) > layout.windows) return false;
    const std::int64_t rows = needs.carried_rows[luminance_plane] + needs.rows;
    return sizing.windows(needs.width, rows, completed.columns, completed.rows) <= layout.scratch;
  };
  return limits;
}

std::span<const GpuModel> known_gpus() {
  // Memory as CUDA reports it free on an idle card.
  static const std::array<GpuModel, 4> models = {{{"a40", std::size_t{44} << 30, 84},
                                                  {"a100", std::size_t{78} << 30, 108},
                                                  {"h100", std::size_t{78} << 30, 132},
                                                  {"h200", std::size_t{139} << 30, 132}}};
  return models;
}

GpuModel gpu_model(const std::string& name) {
  std::string lower = name;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string names;
  for (const GpuModel& model : known_gpus()) {
    if (model.name == lower) return model;
    names += (names.empty() ? "" : ", ") + model.name;
  }
  throw ConfigError("the GPU to assume must be one of " + names);
}

DeviceFacts facts_of(const Config& config, const DeviceWork& work, const GpuModel& model) {
  DeviceFacts facts;
  facts.name = model.name;
  facts.free = model.memory;
  const std::optional<cuda::FusedBins> bins = certain_fused_bins(config.analysis);
  if (work.spectrum) facts.engine = bins ? "fused-256" : "cufft-" + std::to_string(config.analysis.window);
  if (work.spectrum && !bins)
    facts.unknown = "the work area of cuFFT's plans, which only the library on that GPU can tell";
  facts.sizing.windows = [analysis = config.analysis, bins](std::int64_t, std::int64_t, std::int64_t columns,
                                                            std::int64_t rows) -> std::size_t {
    const WindowBlock block = {0, columns, 0, rows};
    if (bins) return cuda::FusedScratch(block, *bins).bytes;
    return cuda::CufftScratch(block, analysis.window, analysis.stride, {}).bytes;
  };
  facts.sizing.decoder = [multiprocessors =
                              static_cast<std::uint32_t>(model.multiprocessors)](const TileLimits& limits) {
    const cuda::JpegUploadLayout upload(jpeg_limits(limits));
    return DecoderScratch(limits, cuda::JpegDecoderMemory(upload, multiprocessors).size).size;
  };
  return facts;
}

bool device_decodes(const Config& config, const DeviceWork& work, const Slide& slide, std::size_t level) {
  if (config.decode.device == DecodeDevice::cpu) return false;
  const std::shared_ptr<const ColourConversion> conversion = conversion_of(slide);
  if (conversion != nullptr && !cuda::is_for_devices(*conversion)) return false;
  switch (slide.info().levels[level].codec) {
    case Codec::none:
      return true;
    case Codec::jpeg:
      return takes_jpeg(slide, level);
    case Codec::jpeg2000:
      return takes_jpeg2000(work, slide, level);
    default:
      return false;
  }
}

}  // namespace slidestream
