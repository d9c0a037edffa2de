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

/// \file
/// What is computed from the pixels of slides: operators, and the kernels that they give to whoever runs them.

namespace slidestream {

/// The pixels that an operator's outputs are made from, and all that the planner knows of it. Output (x, y) is made
/// from the window that begins at pixel (x step.width, y step.height) and from a halo around it, which is mirrored in
/// some way where the image ends. An operator that makes an image has windows of one pixel.
struct Footprint {
  Size window = {1, 1};  ///< pixels
  Size step = {1, 1};    ///< pixels from an output to the next
  Border halo;           ///< pixels around the window that are read as well

  /// Outputs of an image: as many windows as lie inside it.
  constexpr Size outputs(const Size& image) const noexcept {
    return {image.width < window.width ? 0 : (image.width - window.width) / step.width + 1,
            image.height < window.height ? 0 : (image.height - window.height) / step.height + 1};
  }
};

/// One thing that an operator makes of a slide.
struct Product {
  enum class Kind {
    sums,   ///< exact, order-free, small
    field,  ///< a vector of float32 for each output
    image,  ///< a pixel for each output
    file,   ///< a file that `prepare` gives
  };

  std::string name;
  Kind kind = Kind::sums;
  PixelFormat format;   ///< of an image: a pixel; of a field: as many channels as a vector has entries
  bool labels = false;  ///< of an image: samples are names of classes, not quantities
};

/// A rectangle of outputs: columns [column, column + columns), rows [row, row + rows).
struct OutputBlock {
  std::int64_t column = 0;
  std::int64_t columns = 0;
  std::int64_t row = 0;
  std::int64_t rows = 0;
};

/// Vectors of a whole slide's outputs, row by row; `values` is null where nobody wants them.
struct FieldView {
  float* values = nullptr;
  std::int64_t columns = 0;  ///< outputs in a row
};

/// Where a kernel puts what it makes. Host memory.
struct OutputViews {
  SpectrumSums* sums = nullptr;        ///< adds to them; the caller's own. Null without a product of sums
  FieldView field;                     ///< writes the block's vectors
  PixelView<MemorySpace::host> image;  ///< writes the block's pixels; holds at least those
};

/// A small file about a slide that is there before its pixels pass by, such as the outlines of tissue.
struct PreparedFile {
  std::string product;  ///< of the operator
  std::string suffix;   ///< of its name, behind the slide's: ".tissue.geojson"
  /// Writes it, whole, to a path where nothing is. \throws OutputError.
  std::function<void(const std::filesystem::path&)> write;
};

/// What an operator found out about a slide before its pixels pass by, such as how it is stained. Immutable.
class SlideParameters {
 public:
  virtual ~SlideParameters() = default;
  /// Figures of the slide that belong into its results.
  virtual std::vector<NamedValue> values() const { return {}; }
  virtual std::vector<PreparedFile> files() const { return {}; }
};

namespace operators {
class Preparation;
}

/// What a slide is prepared with: one for all operators of a run, which are asked one after the other.
struct SlideContext {
  const Slide& slide;
  std::size_t level = 0;       ///< that the run works on
  std::filesystem::path path;  ///< of the slide, as errors name it
  std::optional<double> mpp;   ///< micrometres a pixel of level 0, where known
  /// What operators find out together, such as the mask of tissue: the first that wants it puts it here.
  mutable std::shared_ptr<operators::Preparation> common = nullptr;
};

/// An operator at work on one thread of the host. Keeps its buffers between calls and doesn't allocate once warm.
class HostKernel {
 public:
  virtual ~HostKernel() = default;

  /// Columns of outputs that a task takes best.
  virtual std::int64_t columns_per_task() const noexcept = 0;

  /// Makes a block of outputs; what it gives depends on the image's pixels alone, never on how the work is cut.
  /// \param pixels  in the operator's input format, host memory: the windows of the block with their halos, as far as
  ///   they lie inside the image.
  /// \param parameters  what `prepare` gave for the slide.
  virtual void run(const ConstPixelView<MemorySpace::host>& pixels, const OutputBlock& block, const OutputViews& to,
                   const SlideParameters* parameters) = 0;
};

/// Something that is computed from the pixels of slides. Immutable, shared by all threads of a run.
class Operator {
 public:
  virtual ~Operator() = default;

  /// As it stands in `operators.run`.
  virtual std::string name() const = 0;
  /// `luminance_format` or `rgb_format`.
  virtual PixelFormat input() const = 0;
  virtual Footprint footprint() const = 0;
  virtual std::vector<Product> products() const = 0;
  /// Whether pixels of the level pass by it. If not, all that it makes comes from `prepare`.
  virtual bool reads_pixels() const { return true; }
  /// What the slide's pixels are computed with; null where nothing is. Called once a slide, on a thread that may wait.
  /// \throws Error, SlideError: the slide fails with it.
  virtual std::shared_ptr<const SlideParameters> prepare(const SlideContext&) const { return nullptr; }
  /// Whether a GPU can compute it; a run that has one which can't computes on the CPU.
  virtual bool computes_on_gpus() const { return false; }
  /// How it computes on the host, for logs: "highway-256 AVX3".
  virtual std::string host_description() const = 0;
  virtual std::unique_ptr<HostKernel> host_kernel() const = 0;
  /// The network whose tiles are cut from what the kernel makes, which is the slide's RGB then; the image among its
  /// products is put together from what the network gives. Null where the kernel makes the image itself. The same
  /// object at every call.
  virtual const Network* network() const { return nullptr; }
  /// What is made of the vectors that the network gives, where it gives vectors.
  virtual VectorsFile vectors_file() const { return {}; }
};

}  // namespace slidestream
