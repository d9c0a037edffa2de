// What the kernels do, with the CPU's own code.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "cuda/encode/jpeg_encoder.hpp"
#include "cuda/jpeg/jpeg_batch_decoder.hpp"
#include "cuda/jpeg2000/decoder_memory.hpp"
#include "cuda/jpeg2000/jpeg2000_batch_decoder.hpp"
#include "cuda/networks/labels.hpp"
#include "cuda/networks/planes.hpp"
#include "cuda/operators/image_kernel.hpp"
#include "cuda/pyramid/device_pyramid.hpp"
#include "cuda/spectrum/device_statistics.hpp"
#include "cuda/spectrum/window_engine.hpp"
#include "cuda/tiles/area.hpp"
#include "cuda/tiles/stitch.hpp"
#include "networks/normalisation.hpp"
#include "operators/registry.hpp"
#include "runtime/cuda/check.hpp"
#include "spectrum/engine.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/host_coders/jpeg2000_decoder.hpp"
#include "support/host_coders/jpeg_decoder.hpp"
#include "support/host_coders/jpeg_encoder.hpp"

namespace slidestream {
namespace {

std::atomic<bool> decoding{std::getenv("MADE_UP_GPU") != nullptr};

std::atomic<std::size_t> areas{0};

}  // namespace

bool test::made_up_gpus() { return true; }
void test::fake_decoding(bool on) { decoding = on; }
std::size_t test::fake_areas() { return areas; }

}  // namespace slidestream

namespace slidestream::cuda {

namespace {

/// By the definition: a weight for each pixel of an area, and a division.
std::uint8_t mean_of_area(const std::uint8_t* source, std::int64_t pitch, std::int64_t source_x, std::int64_t source_y,
                          std::int64_t x, std::int64_t y, std::int64_t factor) {
  const auto weight = [factor](std::int64_t at, std::int64_t pixel) {
    return std::min((at + 1) * factor, (pixel + 1) * 65536) - std::max(at * factor, pixel * 65536);
  };
  std::int64_t sum = 0;
  for (std::int64_t j = y * factor / 65536; j * 65536 < (y + 1) * factor; ++j) {
    std::int64_t of_row = 0;
    for (std::int64_t i = x * factor / 65536; i * 65536 < (x + 1) * factor; ++i) {
      of_row += weight(x, i) * source[(j - source_y) * pitch + (i - source_x) * 3];
    }
    sum += weight(y, j) * of_row;
  }
  return static_cast<std::uint8_t>((2 * sum + factor * factor) / (2 * factor * factor));
}

}  // namespace

void make_areas(const AreaPiece* pieces, std::size_t count, std::int64_t factor, cudaStream_t stream) {
  const auto work = [=] {
    for (const AreaPiece* piece = pieces; piece != pieces + count; ++piece) {
      const auto* const source = reinterpret_cast<const std::uint8_t*>(piece->source);
      for (std::int64_t i = 0; i < std::int64_t{3} * piece->width * piece->height; ++i) {
        const std::int64_t x = i / 3 % piece->width, y = i / 3 / piece->width, channel = i % 3;
        reinterpret_cast<std::uint8_t*>(
            piece->out)[y * piece->out_pitch + (piece->plane == 0 ? 3 * x + channel : channel * piece->plane + x)] =
            source == nullptr ? static_cast<std::uint8_t>(piece->fill)
                              : mean_of_area(source + channel, piece->pitch, piece->source_x, piece->source_y,
                                             piece->x + x, piece->y + y, factor);
      }
    }
  };
  SLIDESTREAM_CUDA(test::fake_launch(stream, work));
}

void make_areas(const PixelView<MemorySpace::device>& out, const ConstPixelView<MemorySpace::device>& in,
                std::int64_t factor, cudaStream_t stream) {
  areas += static_cast<std::size_t>(out.rect.width * out.rect.height);
  const auto work = [=] {
    for (std::int64_t y = out.rect.y; y < out.rect.bottom(); ++y) {
      auto* to = reinterpret_cast<std::uint8_t*>(out.data) + (y - out.rect.y) * out.pitch;
      for (std::int64_t i = 0; i < 3 * out.rect.width; ++i) {
        to[i] = mean_of_area(reinterpret_cast<const std::uint8_t*>(in.data) + i % 3, in.pitch, in.rect.x, in.rect.y,
                             out.rect.x + i / 3, y, factor);
      }
    }
  };
  SLIDESTREAM_CUDA(test::fake_launch(stream, work));
}

void map_tile(const TileValues& tile, cudaStream_t stream) {
  const auto work = [=] {
    const MappedValues mapped =
        tile.sample == SampleType::uint8
            ? map_values(static_cast<std::uint8_t*>(tile.to), tile.values, tile.pixels, tile.output)
            : map_values(static_cast<std::uint16_t*>(tile.to), tile.values, tile.pixels, tile.output);
    if (mapped.sound(tile.output)) return;
    *tile.absent = 1;
    *tile.wrong = std::max(*tile.wrong, UINT32_MAX - tile.number);
  };
  SLIDESTREAM_CUDA(test::fake_launch(stream, work));
}

namespace {

/// What tile `i` of an axis weighs at a sample.
std::int64_t weight_at(const KeptTiles& kept, const StitchAxis& axis, std::int64_t i, std::int64_t at) {
  const std::int64_t last = axis.tile_at(at);
  const std::int64_t t = axis.blend_at(at, last);
  const std::int64_t of_last = t < 0 ? 256 : kept.ramp[t];
  return i == last ? of_last : i + 1 == last ? 256 - of_last : 0;
}

/// By the definition: all tiles are asked what they weigh. Less than 0: none is there.
template <class Sample>
std::int64_t stitched_sample(const KeptTiles& kept, std::int64_t x, std::int64_t y, std::int64_t channel) {
  std::int64_t sum = 0, weights = 0;
  for (std::int64_t row = 0; row < kept.y.count; ++row) {
    for (std::int64_t column = 0; column < kept.x.count; ++column) {
      const std::int64_t weight = weight_at(kept, kept.y, row, y) * weight_at(kept, kept.x, column, x);
      const std::int64_t place = row % 2 * kept.x.count + column;
      if (weight == 0 || kept.absent[place] != 0) continue;
      const std::int64_t pixel = (place * kept.y.tile + y - kept.y.begin(row)) * kept.x.tile + x - kept.x.begin(column);
      sum += weight * static_cast<const Sample*>(kept.tiles)[pixel * kept.channels + channel];
      weights += weight;
    }
  }
  return weights == 0 ? -1 : (2 * sum + weights) / (2 * weights);
}

template <class Sample>
void gather_made_up(const KeptTiles& kept, const PixelView<MemorySpace::device>& out) {
  for (std::int64_t y = out.rect.y; y < out.rect.bottom(); ++y) {
    for (std::int64_t x = out.rect.x; x < out.rect.right(); ++x) {
      std::int64_t best = -1, label = kept.ignore;
      for (std::int64_t channel = 0; channel < kept.channels; ++channel) {
        const std::int64_t value = stitched_sample<Sample>(kept, x, y, channel);
        if (!kept.labels) {
          out.row<Sample>(y)[(x - out.rect.x) * kept.channels + channel] =
              static_cast<Sample>(value < 0 ? kept.fill : value);
        } else if (value > best) {
          best = value;
          label = channel;
        }
      }
      if (kept.labels) out.row<std::uint8_t>(y)[x - out.rect.x] = static_cast<std::uint8_t>(label);
    }
  }
}

}  // namespace

void gather_tiles(const KeptTiles& kept, const PixelView<MemorySpace::device>& out, cudaStream_t stream) {
  const auto work = [=] {
    if (kept.sample == SampleType::uint8) {
      gather_made_up<std::uint8_t>(kept, out);
    } else {
      gather_made_up<std::uint16_t>(kept, out);
    }
  };
  SLIDESTREAM_CUDA(test::fake_launch(stream, work));
}

void cut_mirrored(std::uint8_t* tile, const ConstPixelView<MemorySpace::device>& rows, const Rect& rect,
                  cudaStream_t stream) {
  const auto work = [=] {
    const ConstPixelView<MemorySpace::host> host = {rows.data, rows.pitch, rows.rect, rows.image, rows.format};
    cut_tile(std::span(tile, static_cast<std::size_t>(3 * rect.width * rect.height)), host, rect);
  };
  SLIDESTREAM_CUDA(test::fake_launch(stream, work));
}

namespace {

template <class Sample>
void enqueue_made_up(Sample* planes, const std::uint8_t* pixels, const Sample* table, std::size_t area,
                     std::size_t tiles, cudaStream_t stream) {
  const auto work = [=] {
    for (std::size_t i = 0; i < tiles * area * 3; ++i) {
      const std::size_t channel = i / area % 3;
      planes[i] = table[256 * channel + pixels[(i / (area * 3) * area + i % area) * 3 + channel]];
    }
  };
  SLIDESTREAM_CUDA(test::fake_launch(stream, work));
}

}  // namespace

void enqueue_planes(float* planes, const std::uint8_t* pixels, const float* table, std::size_t area, std::size_t tiles,
                    cudaStream_t stream) {
  enqueue_made_up(planes, pixels, table, area, tiles, stream);
}
void enqueue_planes(std::uint16_t* planes, const std::uint8_t* pixels, const std::uint16_t* table, std::size_t area,
                    std::size_t tiles, cudaStream_t stream) {
  enqueue_made_up(planes, pixels, table, area, tiles, stream);
}
void enqueue_widened(float* values, const std::uint16_t* halves, std::size_t count, cudaStream_t stream) {
  SLIDESTREAM_CUDA(
      test::fake_launch(stream, [=] { std::transform(halves, halves + count, values, networks::from_half); }));
}

namespace {

template <class Score, class Widen>
void enqueue_made_up_labels(std::uint16_t* labels, const Score* scores, std::size_t channels, std::size_t voxels,
                            cudaStream_t stream, const Widen& widen) {
  const auto work = [=] {
    for (std::size_t i = 0; i < voxels; ++i) {
      std::vector<float> own(channels);
      for (std::size_t channel = 0; channel < channels; ++channel) own[channel] = widen(scores[channel * voxels + i]);
      const bool finite = std::ranges::all_of(own, [](float score) { return std::isfinite(score); });
      labels[i] = finite ? static_cast<std::uint16_t>(std::ranges::max_element(own) - own.begin()) : no_label;
    }
  };
  SLIDESTREAM_CUDA(test::fake_launch(stream, work));
}

}  // namespace

void enqueue_labels(std::uint16_t* labels, const float* scores, std::size_t channels, std::size_t voxels,
                    cudaStream_t stream) {
  enqueue_made_up_labels(labels, scores, channels, voxels, stream, [](float score) { return score; });
}
void enqueue_labels(std::uint16_t* labels, const std::uint16_t* scores, std::size_t channels, std::size_t voxels,
                    cudaStream_t stream) {
  enqueue_made_up_labels(labels, scores, channels, voxels, stream, networks::from_half);
}

namespace {

/// Missing tiles of a batch of either codec.
template <class Described>
void fill_white(std::uint8_t* plane, const Described& batch) {
  const auto* rectangles =
      reinterpret_cast<const JpegDeviceRectangle*>(batch.upload().data() + batch.layout().rectangles);
  for (std::uint32_t i = 0; i < batch.white_rectangles(); ++i) {
    for (std::uint32_t y = 0; y < rectangles[i].height; ++y) {
      std::memset(plane + rectangles[i].offset + std::size_t{y} * rectangles[i].pitch, 255, rectangles[i].width);
    }
  }
}

}  // namespace

// Where decoding is off it vouches for no tile and writes none: the CPU's decoder gets them all, as many at a time as
// there is room for.
std::size_t JpegBatchDecoder::device_bytes(const JpegBatchLimits&) { return 256; }
JpegBatchDecoder::JpegBatchDecoder(const JpegBatchLimits& limits, std::span<std::byte> device)
    : layout_(limits), device_limits_(), upload_(device.data()) {}
std::uint32_t JpegBatchDecoder::lanes() const noexcept { return 1024; }
void JpegBatchDecoder::enqueue(std::uint8_t* plane, std::uint32_t* verdicts, const JpegBatch& batch,
                               std::span<const std::byte> compressed, cudaStream_t stream,
                               const DeviceColours& colours) {
  if (const test::FakeTimes* const times = test::fake_times()) {
    const std::uint32_t tiles = batch.tiles();
    SLIDESTREAM_CUDA(test::fake_timed_launch(stream, times->decoded_tile * tiles, [verdicts, tiles] {
      std::fill_n(verdicts, tiles, static_cast<std::uint32_t>(JpegReason::none));
    }));
    return;
  }
  const auto work = [plane, verdicts, &batch, compressed, program = colours.program] {
    std::fill_n(verdicts, batch.tiles(), static_cast<std::uint32_t>(JpegReason::wrong_length));
    HostJpegDecoder decoder;
    for (std::uint32_t i = 0; decoding && i < batch.tiles(); ++i) {
      verdicts[i] = static_cast<std::uint32_t>(decoder.decode(plane, batch, i, compressed, program));
    }
    fill_white(plane, batch);
  };
  SLIDESTREAM_CUDA(test::fake_launch(stream, work));
}

std::size_t Jpeg2000BatchDecoder::device_bytes(const Jpeg2000BatchLimits& limits) {
  return Jpeg2000DecoderMemory(Jpeg2000UploadLayout(limits)).size;
}
Jpeg2000BatchDecoder::Jpeg2000BatchDecoder(const Jpeg2000BatchLimits& limits, std::span<std::byte> device)
    : layout_(limits), upload_(device.data()) {
  if (device.size() < device_bytes(limits)) throw std::length_error("too little device memory for a JPEG 2000 decoder");
}
void Jpeg2000BatchDecoder::enqueue(std::uint8_t* plane, std::uint32_t* verdicts, const Jpeg2000Batch& batch,
                                   std::span<const std::byte> compressed, cudaStream_t stream,
                                   const DeviceColours& colours) {
  if (batch.converts() && colours.every == nullptr)
    throw std::invalid_argument("what colours are converted to wasn't made");
  if (compressed.size() % 16 != 0 || compressed.size() < batch.compressed_end())
    throw std::length_error("the compressed buffer ends before its tiles");
  const auto work = [plane, verdicts, &batch, compressed, program = colours.program] {
    std::fill_n(verdicts, batch.tiles(), static_cast<std::uint32_t>(Jpeg2000Reason::bad_packet));
    HostJpeg2000Decoder decoder;
    for (const Jpeg2000Wave& wave : batch.waves()) {
      for (std::uint32_t i = wave.first_tile; decoding && i < wave.first_tile + wave.tiles; ++i) {
        verdicts[i] = static_cast<std::uint32_t>(decoder.decode(plane, batch, i, compressed, program));
      }
    }
    fill_white(plane, batch);
  };
  SLIDESTREAM_CUDA(test::fake_launch(stream, work));
}

JpegEncoder::JpegEncoder(const JpegEncoderLimits& limits, int quality, std::span<std::byte> device)
    : limits_((require_sound(limits), limits)),
      tables_(limits.format, quality, static_cast<int>(limits.side), limits.subsampling),
      memory_(limits),
      device_(device.data()) {
  if (device.size() < memory_.size) throw std::length_error("too little device memory for a JPEG encoder");
}
void JpegEncoder::enqueue(const ConstPixelView<MemorySpace::device>& plane, std::span<const JpegTilePosition> tiles,
                          const JpegEncoderOutput& out, cudaStream_t stream) {
  make_encode_task(limits_, plane, tiles);  // throws what the device's would
  if (out.offsets.size() <= tiles.size()) throw std::length_error("too few offsets for a batch of JPEG tiles");
  const auto work = [plane, tiles, out, encoder = std::make_shared<HostJpegEncoder>(limits_, tables_),
                     most_units = limits_.scratch_bytes / BandRecord::unit_bytes] {
    std::uint64_t at = 0;
    std::uint64_t units = 0;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const std::vector<std::byte> tile =
          encoder->encode({plane.data, plane.pitch, plane.rect, plane.image, plane.format}, tiles[i]);
      out.offsets[i] = at;
      units += tile.size() / BandRecord::unit_bytes + 1;
      if (at + tile.size() <= out.bytes.size() && units <= most_units) {
        std::memcpy(out.bytes.data() + at, tile.data(), tile.size());
      }
      at += tile.size();
    }
    out.offsets[tiles.size()] = at;
    *out.scratch_units = static_cast<std::uint32_t>(units);
  };
  SLIDESTREAM_CUDA(test::fake_launch(stream, work));
}

void DevicePyramid::enqueue(const ConstPixelView<MemorySpace::device>& band,
                            std::span<const PixelView<MemorySpace::device>> levels, cudaStream_t stream) {
  for (const BandWork::Step& step : reducer_.add(band, levels).steps) {
    const auto work = [step, channels = channels_] {
      with_value_types(step.reduce.level, [&]<class Above, class Sum>() {
        for (std::int64_t row = 0; row < step.reduce.rows; ++row) {
          for (std::int64_t column = 0; column < step.reduce.columns; column += columns_together) {
            if (channels == 1) {
              reduce_columns<Above, Sum, 1>(step.reduce, column, row, is_aligned(step.reduce));
            } else {
              reduce_columns<Above, Sum, 3>(step.reduce, column, row, is_aligned(step.reduce));
            }
          }
        }
      });
    };
    if (step.reduce.rows > 0) SLIDESTREAM_CUDA(test::fake_launch(stream, work));
    if (step.carry.bytes == 0) continue;
    SLIDESTREAM_CUDA(
        cudaMemcpyAsync(step.carry.to, step.carry.from, step.carry.bytes, cudaMemcpyDeviceToDevice, stream));
  }
}

namespace {

/// The plain engine, a window at a time, so that each window's moments are known.
class FakeEngine final : public WindowEngine {
 public:
  explicit FakeEngine(const AnalysisConfig& config)
      : bins_(static_cast<std::size_t>(config.bins)),
        statistics_(config),
        engine_(make_spectrum_engine(config)),
        workspace_(engine_->make_workspace()) {}

  const char* name() const noexcept override { return "fake"; }
  std::size_t scratch_bytes(std::int64_t width, std::int64_t height, const WindowBlock&) const override {
    return static_cast<std::size_t>(width * height);
  }
  void enqueue(const DeviceSums& sums, const DevicePlane& plane, const WindowBlock& block, std::span<std::byte> scratch,
               cudaStream_t stream) override {
    if (const test::FakeTimes* const times = test::fake_times()) {
      const auto windows = static_cast<std::size_t>(block.rows * block.columns);
      SLIDESTREAM_CUDA(test::fake_timed_launch(stream, times->window * static_cast<double>(windows), [=, this] {
        std::fill_n(sums.histogram, bins_, 0);
        *sums.clipped = 0;
        std::fill_n(sums.moments, 2 * windows, 0.0);
        std::fill_n(sums.counters, statistics_.counters, 0);
      }));
      return;
    }
    const auto work = [=, this] {
      std::memset(scratch.data(), 0xAA, std::min<std::size_t>(scratch.size(), 4096));
      const LuminancePlane view = {plane.data,  plane.pitch,  plane.x0,          plane.y0,
                                   plane.width, plane.height, plane.image_width, plane.image_height};
      std::fill_n(sums.histogram, bins_, 0);
      *sums.clipped = 0;
      double* moments = sums.moments;
      std::fill_n(sums.counters, statistics_.counters, 0);
      const std::uint8_t* tissue = sums.tissue;
      for (std::int64_t row = 0; row < block.rows; ++row) {
        for (std::int64_t column = 0; column < block.columns; ++column, moments += 2) {
          SpectrumSums one;
          one.histogram.assign(bins_, 0);
          engine_->run(one, {}, view, {block.first_column + column, 1, block.first_row + row, 1}, *workspace_);
          for (std::size_t bin = 0; bin < bins_; ++bin) sums.histogram[bin] += one.histogram[bin];
          *sums.clipped += one.clipped;
          for (std::size_t i = 0; i < one.counters.size(); ++i)
            sums.counters[i] += static_cast<std::int64_t>(one.counters[i]);
          if (statistics_.split && *tissue++ != 0) {
            sums.counters[statistics_.tissue_clipped] += static_cast<std::int64_t>(one.clipped);
            std::int64_t* const of_tissue = sums.counters + statistics_.tissue_histogram;
            for (std::size_t bin = 0; bin < bins_; ++bin)
              of_tissue[bin] += static_cast<std::int64_t>(one.histogram[bin]);
          }
          moments[0] = std::ldexp(static_cast<double>(one.sum), -SpectrumSums::sum_fraction_bits);
          moments[1] = std::ldexp(static_cast<double>(one.sum_of_squares), -SpectrumSums::square_fraction_bits);
        }
      }
    };
    SLIDESTREAM_CUDA(test::fake_launch(stream, work));
  }

 private:
  std::size_t bins_;
  DeviceStatistics statistics_;
  std::unique_ptr<SpectrumEngine> engine_;
  std::unique_ptr<SpectrumEngine::Workspace> workspace_;
};

}  // namespace

std::unique_ptr<WindowEngine> make_window_engine(const AnalysisConfig& config, WindowEngineKind) {
  return std::make_unique<FakeEngine>(config);
}

namespace {

template <class Byte>
BasicPixelView<MemorySpace::host, Byte> on_host(const BasicPixelView<MemorySpace::device, Byte>& view) {
  return {view.data, view.pitch, view.rect, view.image, view.format};
}

/// The operator's host kernel, on memory that only the stream may touch. Wants scratch, and spoils it.
class FakeImageKernel final : public DeviceImageKernel {
 public:
  explicit FakeImageKernel(std::shared_ptr<const Operator> op)
      : operator_(std::move(op)), kernel_(operator_->host_kernel()) {}

  std::size_t scratch_bytes(const Size& out) const override { return static_cast<std::size_t>(out.width); }
  void enqueue(const PixelView<MemorySpace::device>& out, const ConstPixelView<MemorySpace::device>& in,
               std::span<std::byte> scratch, const SlideParameters* parameters, cudaStream_t stream) override {
    const auto work = [=, this] {
      std::memset(scratch.data(), 0xAA, scratch_bytes({out.rect.width, out.rect.height}));
      OutputViews to;
      to.image = on_host(out);
      kernel_->run(on_host(in), {out.rect.x, out.rect.width, out.rect.y, out.rect.height}, to, parameters);
    };
    SLIDESTREAM_CUDA(test::fake_launch(stream, work));
  }

 private:
  std::shared_ptr<const Operator> operator_;
  std::unique_ptr<HostKernel> kernel_;
};

}  // namespace

std::unique_ptr<DeviceImageKernel> make_device_image_kernel(const std::string& name, const Config& config) {
  Config of_one = config;
  of_one.operators.run = {name};
  std::shared_ptr<const Operator> op = operators::make_operators(of_one).at(0);
  const bool makes_image = op->reads_pixels() && op->products().at(0).kind == Product::Kind::image;
  return makes_image ? std::make_unique<FakeImageKernel>(std::move(op)) : nullptr;
}

}  // namespace slidestream::cuda
