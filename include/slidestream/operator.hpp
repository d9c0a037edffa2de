#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <slidestream/image.hpp>
#include <slidestream/network.hpp>
#include <slidestream/results.hpp>
#include <slidestream/slide.hpp>

/// @file
/// Operators compute results from the pixels of slides. Their kernels do the work on the threads of a run.

namespace slidestream {

/// The pixels from which an operator makes its outputs. Output (x, y) is made from a window that begins at pixel
/// (x step.width, y step.height), and from a halo around that window. The kernel decides how to mirror the halo at the
/// edges of the image. An operator that makes an image has windows of one pixel.
struct Footprint {
  Size window = {1, 1};  ///< pixels
  Size step = {1, 1};    ///< pixels from one output to the next
  Border halo;           ///< pixels around the window that are read as well

  /// Counts the windows that are whole inside an image.
  /// @param image  Size of the image, in pixels.
  /// @return Number of outputs per row (width) and per column (height); 0 where the image is smaller than a window.
  constexpr Size outputs(const Size& image) const noexcept {
    return {image.width < window.width ? 0 : (image.width - window.width) / step.width + 1,
            image.height < window.height ? 0 : (image.height - window.height) / step.height + 1};
  }
};

/// One result that an operator makes per slide. A run writes the first image product of an operator.
struct Product {
  /// What a result consists of.
  enum class Kind {
    sums,   ///< exact sums that add in any order
    field,  ///< a vector of float32 per output
    image,  ///< a pixel per output
    file,   ///< a file that `prepare` returns
  };

  std::string name;
  Kind kind = Kind::sums;
  PixelFormat format;   ///< image: format of a pixel; field: one channel per entry of a vector
  bool labels = false;  ///< image: samples are numbers of classes, not quantities
  int blank_label = 0;  ///< of labels: the one that pixels have until they are written
};

/// A rectangle of outputs: columns [column, column + columns), rows [row, row + rows).
struct OutputBlock {
  std::int64_t column = 0;
  std::int64_t columns = 0;
  std::int64_t row = 0;
  std::int64_t rows = 0;
};

/// Vectors of all outputs of a slide, row by row. `values` is null if the run doesn't keep them.
struct FieldView {
  float* values = nullptr;
  std::int64_t columns = 0;  ///< outputs per row
};

/// Where a kernel writes its outputs. All of it is host memory.
struct OutputViews {
  SpectrumSums* sums = nullptr;        ///< the kernel adds to them; null except for the operator "spectrum"
  FieldView field;                     ///< the kernel writes the block's vectors; null except for "spectrum"
  PixelView<MemorySpace::host> image;  ///< the kernel writes the block's pixels; holds at least those
};

/// A small file that an operator makes before it sees the slide's pixels, such as the outlines of tissue.
struct PreparedFile {
  std::string product;  ///< name of the product
  std::string suffix;   ///< appended to the slide's name: ".tissue.geojson"
  /// Writes the whole file to a path at which nothing exists. The path has the file's name, in a temporary folder: the
  /// run moves it from there. Throws OutputError if that fails.
  std::function<void(const std::filesystem::path&)> write;
  std::string folder = "images";  ///< in the output folder
};

/// Facts that an operator found before it sees a slide's pixels, such as the stains. Immutable, so all threads may read
/// it.
class SlideParameters {
 public:
  virtual ~SlideParameters() = default;
  /// Figures of the slide for its results (`SlideResult::values`).
  /// @return The figures, in the order in which results list them; may be empty.
  virtual std::vector<NamedValue> values() const { return {}; }
  /// Files to write when the slide is done.
  /// @return The files; may be empty.
  virtual std::vector<PreparedFile> files() const { return {}; }
};

namespace operators {
class Preparation;
}

/// The slide that operators prepare for. All operators of a run share one object and use it one after the other.
struct SlideContext {
  const Slide& slide;
  std::size_t level = 0;       ///< the level that the run works on
  std::filesystem::path path;  ///< of the slide, for error messages
  std::optional<double> mpp;   ///< `SlideInfo::mean_mpp`: micrometres per pixel of level 0, if known
  /// Facts that operators share, such as the mask of tissue. The first operator that needs them creates them.
  mutable std::shared_ptr<operators::Preparation> common = nullptr;
};

/// The code of an operator on one host thread. Each thread has its own kernel. A kernel keeps its buffers between
/// calls, so that it stops allocating.
class HostKernel {
 public:
  virtual ~HostKernel() = default;

  /// Preferred number of output columns per task.
  /// @return 1 or more.
  virtual std::int64_t columns_per_task() const noexcept = 0;

  /// Makes a block of outputs. The outputs must depend on the image's pixels alone, not on the size of the block. An
  /// exception fails the slide.
  /// @param pixels  Host memory, in the operator's input format: at least the windows of the block with their halos, as
  ///   far as they are inside the image.
  /// @param block  The outputs to make.
  /// @param to  Written.
  /// @param parameters  The result of `prepare` for the slide; may be null.
  virtual void run(const ConstPixelView<MemorySpace::host>& pixels, const OutputBlock& block, const OutputViews& to,
                   const SlideParameters* parameters) = 0;
};

/// Describes a computation on the pixels of slides. All threads of a run share one object. All functions must be
/// thread-safe.
class Operator {
 public:
  virtual ~Operator() = default;

  /// Its name in `operators.run`, in messages and in names of files.
  /// @return A name that is unique within a run.
  virtual std::string name() const = 0;
  /// Format of its input.
  /// @return `luminance_format` or `rgb_format`.
  virtual PixelFormat input() const = 0;
  /// The windows that its outputs are made from.
  /// @return Window, step and halo, in pixels of the run's level.
  virtual Footprint footprint() const = 0;
  /// Its results.
  /// @return The products, with at most one image.
  virtual std::vector<Product> products() const = 0;
  /// Tells whether kernels read the level's pixels.
  /// @return False: all its results come from `prepare`.
  virtual bool reads_pixels() const { return true; }
  /// Prepares for a slide. The run calls it when it opens the slide, on a thread that may block. It calls it again if
  /// it has to open the slide again, after a `StorageError` or `std::bad_alloc`.
  /// @param context  The slide, its level and its pixel size; only valid during the call.
  /// @return Parameters for the kernels; may be null.
  /// @throws Error  This operator gives no results of the slide. The slide fails only if no operator gives any. Any
  ///   other exception fails the slide.
  virtual std::shared_ptr<const SlideParameters> prepare(const SlideContext& /*context*/) const { return nullptr; }
  /// Tells whether `prepare` reads the slide's small level, whose memory the run counts then.
  /// @return The same at every call.
  virtual bool looks_at_small_level() const { return false; }
  /// Tells whether GPUs can compute it.
  /// @return False: if it reads pixels, `pipeline.backend = "auto"` takes the CPU, and "cuda" is an error.
  virtual bool computes_on_gpus() const { return false; }
  /// How it computes on the host, for messages.
  /// @return One line, such as "highway-256 AVX3".
  virtual std::string host_description() const = 0;
  /// Makes a kernel for one host thread.
  /// @return A new kernel; not null.
  virtual std::unique_ptr<HostKernel> host_kernel() const = 0;
  /// The network of an operator that has one. Its tiles are cut from the RGB pixels that the kernel writes. The run
  /// stitches the operator's image from the network's values.
  /// @return The same object at every call; null if the kernel makes the image itself.
  virtual const Network* network() const { return nullptr; }
  /// Files to make from the vectors of a network that gives vectors.
  /// @return The files, all with the same `VectorsFile::folder`; may be empty.
  virtual std::vector<VectorsFile> vectors_files() const { return {}; }
};

}  // namespace slidestream
