#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cuda/colour/colour_program.hpp"
#include "cuda/jpeg2000/block_decoder.hpp"
#include "cuda/jpeg2000/jpeg2000_batch.hpp"
#include "cuda/jpeg2000/packets.hpp"

/// \file
/// What the device's kernels do, in plain sequence on the host, with the same tables, steps and arithmetic. For tests
/// where there is no GPU; OpenJPEG is faster.

namespace slidestream::cuda {

/// The arena of one lane, in the host's memory. \see BlockDecoder
class HostArena {
 public:
  HostArena();

  std::uint32_t load(std::uint32_t at) const noexcept;
  std::uint32_t load_byte(std::uint32_t at) const noexcept;
  std::uint32_t load_if(bool condition, std::uint32_t at) const noexcept { return condition ? load(at) : 0; }
  void store(std::uint32_t at, std::uint32_t value) const noexcept;
  void store_if(bool condition, std::uint32_t at, std::uint32_t value) const noexcept {
    if (condition) store(at, value);
  }
  static void fetch_if(bool condition, std::uint32_t& value, const std::uint32_t* from) noexcept {
    if (condition) value = *from;
  }
  static void keep_if(bool condition, std::uint32_t* to, std::uint32_t value) noexcept {
    if (condition) *to = value;
  }

  static constexpr std::uint32_t tables = 0;
  static constexpr std::uint32_t lane = MqTables::bytes;

 private:
  mutable std::vector<std::uint8_t> memory_;
};

/// Decodes tiles as the device does.
class HostJpeg2000Decoder {
 public:
  HostJpeg2000Decoder();

  /// Decodes a tile to `width` x `height` pixels of the demand's format. \returns why the result can't be vouched for.
  Jpeg2000Reason decode(std::span<const std::byte> bytes, const TileDemand& demand);

  /// Decodes tile `number` of a batch from what the device is told of it, into the batch's plane. \returns the
  /// tile's verdict. \param colours  what RGB is converted by, where the batch converts
  Jpeg2000Reason decode(std::uint8_t* plane, const Jpeg2000Batch& batch, std::uint32_t number,
                        std::span<const std::byte> compressed, const ColourProgram* colours = nullptr);

  std::uint32_t width() const { return coding_.width; }
  std::uint32_t height() const { return coding_.height; }
  std::span<const std::uint8_t> pixels() const { return pixels_; }

 private:
  /// A component's values as the wavelet transform leaves them; integers where it is reversible.
  struct Values {
    std::vector<float> floats;
    std::vector<int> integers;

    template <class Wavelet>
    std::vector<typename Wavelet::Value>& of() {
      if constexpr (Wavelet::reversible) {
        return integers;
      } else {
        return floats;
      }
    }
  };

  /// To the components' values.
  Jpeg2000Reason decode_tile(std::span<const std::byte> compressed, std::uint32_t offset,
                             std::span<const Jpeg2000TilePart> parts, const Jpeg2000Coding& coding);
  Jpeg2000Reason decode_block(std::span<const std::byte> compressed, const Jpeg2000Band& band, std::uint32_t number,
                              Jpeg2000Block& block);
  /// Of the bits in `stream_`.
  template <bool styled>
  void decode_bits(const BlockJob& job);
  template <class Wavelet>
  void transform(const Jpeg2000Coding& coding);
  template <class Wavelet>
  void place_band(const Jpeg2000Coding& coding, const DecodedComponent& component, std::uint32_t number,
                  std::vector<typename Wavelet::Value>& values) const;
  /// All pixels of the tile that was decoded last, rows one behind the other.
  void make_pixels(const Jpeg2000Coding& coding, const PixelFormat& format, PixelsOf pixels_of);
  /// The same of converted RGB.
  void make_converted(const Jpeg2000Coding& coding, const PixelFormat& format, PixelsOf pixels_of,
                      const ColourProgram& colours);
  template <class Wavelet>
  void make_pixels_of(const Jpeg2000Coding& coding, int channels, PixelsOf pixels_of);

  HostArena arena_;
  Jpeg2000Coding coding_{};
  std::vector<std::byte> padded_;
  std::vector<std::uint32_t> state_;
  std::vector<Jpeg2000Block> blocks_;
  std::vector<BlockPiece> pieces_;
  std::vector<std::uint32_t> stream_;
  std::vector<std::uint32_t> planes_;
  std::array<Values, most_decoded_components> values_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace slidestream::cuda
