#include "support/host_coders/jpeg_encoder.hpp"

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace slidestream::cuda {
namespace {

constexpr std::byte marker_prefix{0xFF};

/// A band's threads and what they share.
template <class Band>
class HostBand {
 public:
  explicit HostBand(const EncodeTables& tables) : memory_() {
    memory_.tables[0] = tables.luminance;
    if constexpr (Band::table_count > 1) memory_.tables[1] = tables.chrominance;
  }

  /// Appends a tile's scan with stuffed bytes to `to`. `scratch` has room for a band.
  void encode(const EncodeTask& task, std::vector<std::uint32_t>& scratch, std::vector<std::byte>& to) {
    const TileSource source = source_of(task, 0);
    std::uint32_t bits_before = 0;
    memory_.carried = 0;
    std::memset(memory_.dc, 0, kept_dc * sizeof(memory_.dc[0]));
    for (std::uint32_t band = 0; band < task.grid.bands; ++band) {
      each_thread([&](std::uint32_t thread) { Band::fetch(thread, source, task.grid, band, pixels_[thread]); });
      if constexpr (Band::colour) {
        each_thread([&](std::uint32_t thread) { Band::convert(thread, memory_, pixels_[thread]); });
      }
      each_thread([&](std::uint32_t thread) { ends_[thread] = Band::quantise(thread, memory_, pixels_[thread]); });
      memory_.window[0] = memory_.carried;
      std::uint32_t sum = 0;
      each_thread([&](std::uint32_t thread) {
        lengths_[thread] = Band::code(thread, memory_, task.grid, band, *ends_[thread]);
        sum = (thread % 32 == 0 ? 0 : sum) + lengths_[thread];
        sums_[thread] = sum;
        Band::keep_sum(thread, memory_, sum);
      });
      std::uint32_t total = 0;
      std::uint32_t positions[Band::threads];
      each_thread([&](std::uint32_t thread) {
        positions[thread] = bits_before + Band::position(thread, memory_, sums_[thread] - lengths_[thread], total);
      });
      const BandExtent extent(bits_before + total, band + 1 == task.grid.bands);
      each_thread([&](std::uint32_t thread) { Band::keep_dc(thread, memory_); });
      for (std::uint32_t first_word = 0; first_word < extent.end(); first_word += window_words) {
        Band::fill_last_byte(memory_, extent, first_word);
        each_thread([&](std::uint32_t thread) {
          Band::place(thread, memory_, positions[thread], lengths_[thread], first_word);
        });
        each_thread([&](std::uint32_t thread) { Band::store(thread, memory_, scratch.data(), extent, first_word); });
      }
      if (!extent.part) memory_.carried = 0;
      bits_before = extent.part ? extent.bits % 32 : 0;
      append_stuffed(to, scratch, extent.bytes);
    }
  }

 private:
  template <class Step>
  static void each_thread(const Step& step) {
    for (std::uint32_t thread = 0; thread < Band::threads; ++thread) step(thread);
  }

  static void append_stuffed(std::vector<std::byte>& to, const std::vector<std::uint32_t>& scratch,
                             std::uint32_t count) {
    const auto* bytes = reinterpret_cast<const std::byte*>(scratch.data());
    for (std::uint32_t i = 0; i < count; ++i) {
      to.push_back(bytes[i]);
      if (bytes[i] == marker_prefix) to.push_back(std::byte{0});
    }
  }

  typename Band::Memory memory_;
  typename Band::Pixels pixels_[Band::threads];
  std::optional<WordPlace> ends_[Band::threads];
  std::uint32_t lengths_[Band::threads];
  std::uint32_t sums_[Band::threads];
};

EncodeTables make_tables(const JpegEncoderLimits& limits, int quality) {
  require_sound(limits);
  return {limits.format, quality, static_cast<int>(limits.side), limits.subsampling};
}

}  // namespace

struct HostJpegEncoder::Work {
  Work(const JpegEncoderLimits& limits, const EncodeTables& tables) : scratch(words_of_band(limits)) {
    encode = with_band(limits, [&](auto kind) {
      const auto band = std::make_shared<HostBand<decltype(kind)>>(tables);
      return std::function<void(const EncodeTask&, std::vector<std::byte>&)>(
          [this, band](const EncodeTask& task, std::vector<std::byte>& to) { band->encode(task, scratch, to); });
    });
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// Words of scratch for a band of a single tile.
  static std::size_t words_of_band(JpegEncoderLimits limits) {
    limits.tiles = 1;
    return most_scratch_bytes(limits) / 4 + 4;
  }

  std::vector<std::uint32_t> scratch;
  std::function<void(const EncodeTask& task, std::vector<std::byte>& to)> encode;
};

HostJpegEncoder::HostJpegEncoder(const JpegEncoderLimits& limits, int quality)
    : HostJpegEncoder(limits, make_tables(limits, quality)) {}
HostJpegEncoder::HostJpegEncoder(const JpegEncoderLimits& limits, EncodeTables tables)
    : limits_((require_sound(limits), limits)),
      tables_(std::move(tables)),
      work_(std::make_unique<Work>(limits, tables_)) {}
HostJpegEncoder::~HostJpegEncoder() = default;

std::span<const std::byte> HostJpegEncoder::tables() const noexcept { return tables_.jpeg_tables; }

std::vector<std::byte> HostJpegEncoder::encode(const ConstPixelView<MemorySpace::host>& plane, JpegTilePosition tile) {
  EncodeTask task =
      make_encode_task(limits_, {plane.data, plane.pitch, plane.rect, plane.image, plane.format}, {&tile, 1});
  task.tiles = &tile;
  std::vector<std::byte> bytes = tables_.header;
  work_->encode(task, bytes);
  bytes.push_back(marker_prefix);
  bytes.push_back(std::byte{0xD9});
  return bytes;
}

}  // namespace slidestream::cuda
