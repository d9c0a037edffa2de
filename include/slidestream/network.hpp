#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <slidestream/image.hpp>

/// \file
/// Networks that run over overlapping tiles of slides. What they compute is theirs; which tiles they get, how those are
/// put together and written is the engine's.

namespace slidestream {

/// Which tiles of a slide a network gets.
struct NetworkTiles {
  int side = 0;               ///< T: pixels of a tile's sides
  int overlap = 0;            ///< O: pixels that neighbours share, 0 to T / 2
  int batch = 1;              ///< tiles that it gets at a time
  std::optional<double> mpp;  ///< micrometres a pixel of its tiles; nullopt: the level's own pixels
  bool tissue_only = false;   ///< tiles without tissue aren't given to it
  bool mixed = false;         ///< a batch may hold tiles of several slides
};

/// What it gives for a tile.
struct NetworkOutput {
  enum class Kind {
    image,    ///< channels of pixels, blended where tiles overlap
    classes,  ///< a channel for each class: blended, then the largest is the pixel's label
    vector,   ///< entries that describe the whole tile
  };

  Kind kind = Kind::image;
  int channels = 1;                       ///< C: 1 to 16 of an image or classes; entries D of a vector
  int scale = 1;                          ///< s: an image of a tile has sides of T / s samples
  SampleType sample = SampleType::uint8;  ///< of an image: uint8 or uint16
  float low = 0.0F;                       ///< value that becomes 0
  float high = 1.0F;                      ///< value that becomes the largest of `sample`
};

/// What a network of vectors gave for a slide: those of the tiles that it got, row by row.
struct TileVectors {
  std::string name;                                  ///< the slide's among results
  Size level0;                                       ///< of the slide
  std::size_t level = 0;                             ///< that tiles were cut from
  double downsample = 1.0;                           ///< pixels of level 0 along one of that level
  double reduction = 1.0;                            ///< pixels of that level along one of a tile
  std::optional<double> magnification;               ///< of level 0, such as 40
  std::vector<std::array<std::int64_t, 2>> corners;  ///< x, y of a tile's top left corner, in pixels of level 0
  std::span<const float> values;                     ///< D for each
};

/// A file that is made of them.
struct VectorsFile {
  std::string product;  ///< of the operator
  std::string folder;   ///< in the output folder: "features"
  std::string suffix;   ///< of its name, behind the slide's: ".h5"
  /// Writes it, whole, to a path where nothing is. \throws OutputError. Empty: there is no such file.
  std::function<void(const std::filesystem::path&, const TileVectors&)> write;
};

/// A network that is ready on one device. Used by one thread at a time.
class NetworkSession {
 public:
  virtual ~NetworkSession() = default;

  /// Computes one batch.
  /// \param pixels  host memory: batch x T x T x 3 samples, red, green, blue side by side; tiles that only fill the
  ///   last batch up are zeros.
  /// \param values  host memory, written: batch x C x (T / s) x (T / s), or batch x D for vectors.
  /// \throws SlideError: the slide fails with it.
  virtual void run(std::span<const std::uint8_t> pixels, std::span<float> values) = 0;

  /// With true: has `run`, which another thread may be in, and the next ones throw as soon as they can, as nobody wants
  /// what they give. With false: they compute again. Any thread.
  virtual void interrupt(bool /*now*/) noexcept {}
};

/// Memory that a network takes for itself, as far as it is known before it runs: the host's, but for the last.
struct NetworkMemory {
  std::uint64_t weights = 0;  ///< bytes, once
  std::uint64_t session =
      0;  ///< bytes of each session: batches as the network takes and gives them, and what it works in
  std::uint64_t device = 0;  ///< bytes of each GPU's memory that it takes at most, with all of its sessions there
};

/// Immutable, shared by all threads of a run.
class Network {
 public:
  virtual ~Network() = default;

  virtual NetworkTiles tiles() const = 0;
  virtual NetworkOutput output() const = 0;
  /// For logs: "ONNX Runtime 1.31, CPU".
  virtual std::string description() const = 0;
  /// What decides what it gives, each as it is in effect, by name: the settings whose keys are named so, and what the
  /// network and its runtime are. Values are as in TOML. For what is written with results.
  virtual std::vector<std::pair<std::string, std::string>> settings() const { return {}; }
  /// Sessions that are made for each GPU, or for the host: 1 or more, each of which has a thread.
  virtual int sessions() const { return 1; }
  /// For forecasts. It may compute a batch to find it. \throws Error.
  virtual NetworkMemory memory() const { return {}; }
  /// \param gpu  index of the GPU to use, -1 for the host. \throws Error.
  virtual std::unique_ptr<NetworkSession> session(int gpu) const = 0;
  /// Memory for the pixels or the values of batches that its sessions run, which they reach fastest: on GPUs it is
  /// pinned. Nothing is written to it. Thread-safe. \param bytes  more than 0. \throws Error.
  virtual std::shared_ptr<std::byte[]> allocate(std::size_t bytes) const {
    return std::shared_ptr<std::byte[]>(new std::byte[bytes]);
  }
};

}  // namespace slidestream
