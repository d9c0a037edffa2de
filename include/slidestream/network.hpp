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

/// @file
/// Networks that compute overlapping tiles of slides. A network only computes batches. The run cuts the tiles, stitches
/// the values and writes the results.

namespace slidestream {

/// The tiles that a network gets.
struct NetworkTiles {
  int side = 0;                 ///< T: side of a tile in pixels, 1 to 16,384
  int overlap = 0;              ///< pixels that neighbours share, 0 to T / 2
  int batch = 1;                ///< tiles per batch, from 1
  std::optional<double> mpp;    ///< micrometres per pixel of its tiles; nullopt: the level's own pixels
  bool tissue_only = false;     ///< it doesn't get tiles without tissue
  double tissue_share = 0.0;    ///< with `tissue_only`: share of a tile that must be tissue; 0: any tissue
  bool mixed = false;           ///< a batch may hold tiles of several slides
  double mpp_tolerance = 0.02;  ///< part by which a level's pixels may differ from `mpp` and are used unchanged
};

/// A function that is applied to a network's values before they are mapped to samples.
enum class NetworkActivation {
  none,
  softmax,  ///< over the channels of a pixel: exp(v_c) / sum of exp(v_k)
  sigmoid,  ///< of each value: 1 / (1 + exp(-v))
};

/// What a network computes per tile.
struct NetworkOutput {
  /// What the values mean.
  enum class Kind {
    image,    ///< channels of pixels, blended where tiles overlap
    classes,  ///< one channel per class; after blending, the largest channel is the pixel's label
    labels,   ///< one channel of whole numbers, each of the tile whose centre is nearest; never blended
    vector,   ///< entries that describe the whole tile
  };

  Kind kind = Kind::image;
  int channels = 1;                       ///< C: 1 to 16 (image), 2 to 16 (classes), 1 (labels), entries of a vector
  int scale = 1;                          ///< s: the values of a tile have sides of T / s
  SampleType sample = SampleType::uint8;  ///< image or labels: uint8 or uint16
  NetworkActivation activation = NetworkActivation::none;  ///< image or classes
  float low = 0.0F;                                        ///< value that becomes 0; labels: 0
  float high = 1.0F;  ///< value that becomes the largest of `sample`; labels: that number
  /// Label of pixels without a computed tile. For classes it is `channels` to 255, for labels any value of `sample`. A
  /// network that gives it as a label fails the slide.
  int ignore = 255;

  /// Tells whether a value outside [low, high] is an error. Values of an image are clamped. Scores of classes aren't,
  /// because clamped scores can be equal. Labels aren't, because a clamped label is another label.
  /// @return True for labels, and for classes without an activation.
  bool refuses_outside() const noexcept {
    return kind == Kind::labels || (kind == Kind::classes && activation == NetworkActivation::none);
  }
};

/// The vectors that a network computed for a slide, one per tile that the network got, in row order. Host memory.
struct TileVectors {
  std::string name;                                  ///< the slide's name in results
  Size level0;                                       ///< size of level 0, in pixels
  std::size_t level = 0;                             ///< the level from which tiles were cut
  double downsample = 1.0;                           ///< level-0 pixels per pixel of that level
  double reduction = 1.0;                            ///< pixels of that level per pixel of a tile
  std::optional<double> magnification;               ///< of level 0, such as 40
  std::vector<std::array<std::int64_t, 2>> corners;  ///< x, y of each tile's top left corner, in level-0 pixels
  std::span<const float> values;                     ///< tiles x C
};

/// A file that is made from the vectors of a slide.
struct VectorsFile {
  std::string product;  ///< name of the operator's product
  std::string folder;   ///< within the output folder: "features"
  std::string suffix;   ///< appended to the slide's name: ".h5"
  /// Writes the whole file to a path at which nothing exists. The path has the file's name, in a temporary folder: the
  /// run moves it from there. Throws OutputError if that fails.
  std::function<void(const std::filesystem::path&, const TileVectors&)> write;
};

/// A network that is loaded on one device. One thread at a time calls `run`.
class NetworkSession {
 public:
  virtual ~NetworkSession() = default;

  /// Computes one batch. An exception fails the tiles of the batch. If they are tiles of several slides, parts of the
  /// batch are computed again to find the slide at fault.
  /// @param pixels  Host memory: batch x T x T x 3 samples in the order red, green, blue. Places without a tile are
  ///   zeros.
  /// @param values  Host memory, written: batch x C x (T / s) x (T / s), or batch x C for vectors.
  virtual void run(std::span<const std::uint8_t> pixels, std::span<float> values) = 0;

  /// Interrupts `run`, or allows it again. After true, the current call and later calls throw as soon as they can.
  /// After false, calls compute again. Any thread may call this while `run` works.
  /// @param now  Whether to interrupt.
  virtual void interrupt(bool /*now*/) noexcept {}
};

/// Memory that a network needs, as far as this is known before it runs.
struct NetworkMemory {
  std::uint64_t weights = 0;  ///< bytes of host memory, once
  std::uint64_t session = 0;  ///< bytes of host memory per session: its input, output and working memory
  std::uint64_t device = 0;   ///< bytes of each GPU's memory that all sessions there take at most
};

/// Describes a network and makes its sessions. All threads of a run share one object. All functions must be
/// thread-safe.
class Network {
 public:
  virtual ~Network() = default;

  /// The tiles that it gets.
  /// @return The same at every call.
  virtual NetworkTiles tiles() const = 0;
  /// What it computes per tile.
  /// @return The same at every call.
  virtual NetworkOutput output() const = 0;
  /// Names runtime and device, for messages.
  /// @return One line, such as "ONNX Runtime 1.32.0, CPU".
  virtual std::string description() const = 0;
  /// What its user calls it, for messages.
  /// @return A phrase within a sentence, such as "the network".
  virtual std::string called() const { return "the network"; }
  /// What its user calls a setting, for messages.
  /// @param key  A key of `[model]`, such as "range", or one of another section by its full name: "input.mpp".
  /// @return The name; empty if the user can't set it.
  virtual std::string setting_name(const std::string& key) const {
    return key.find('.') == std::string::npos ? "model." + key : key;
  }
  /// Settings that decide its results: keys in effect, network and runtime. They are written with results.
  /// @return Names and TOML values. If there are none, its `description` is written.
  virtual std::vector<std::pair<std::string, std::string>> settings() const { return {}; }
  /// Number of sessions per GPU, or on the CPU. A run has one thread per session, and fewer sessions where the system
  /// lets too few threads be started.
  /// @return 1 or more.
  virtual int sessions() const { return 1; }
  /// Estimates its memory, for forecasts. It may compute a batch for that.
  /// @return Sizes in bytes, as far as they are known.
  /// @throws Error  The memory can't be found.
  virtual NetworkMemory memory() const { return {}; }
  /// Makes a session.
  /// @param gpu  CUDA's number of the GPU that the run uses; -1 if the run computes on the CPU. With -1 the network
  ///   chooses its device.
  /// @return A session for one thread.
  /// @throws Error  The session can't be made.
  virtual std::unique_ptr<NetworkSession> session(int gpu) const = 0;
  /// Allocates host memory for pixels or values of batches. The content is undefined. Networks on GPUs give pinned
  /// memory.
  /// @param bytes  More than 0.
  /// @return The memory. Its last owner frees it.
  /// @throws Error  A GPU's driver refuses the memory.
  /// @throws std::bad_alloc  There isn't enough memory.
  virtual std::shared_ptr<std::byte[]> allocate(std::size_t bytes) const {
    return std::shared_ptr<std::byte[]>(new std::byte[bytes]);
  }
};

}  // namespace slidestream
