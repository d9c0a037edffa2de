#pragma once

#include <cstddef>
#include <memory>
#include <slidestream/config.hpp>
#include <slidestream/operator.hpp>
#include <string>
#include <utility>
#include <vector>

#include "image/views.hpp"

/// \file
/// What operators have in common that make one image, a pixel for each pixel of the level.

namespace slidestream::operators {

constexpr PixelFormat format_of(PixelColour colour) noexcept {
  return colour == PixelColour::rgb ? rgb_format : luminance_format;
}

class ImageOperator : public Operator {
 public:
  std::string name() const override { return name_; }
  PixelFormat input() const override { return input_; }
  Footprint footprint() const override { return {{1, 1}, {1, 1}, halo_}; }
  std::vector<Product> products() const override { return {{"image", Product::Kind::image, output_}}; }

 protected:
  /// \param halo pixels around each one that are read as well
  ImageOperator(std::string name, PixelFormat input, PixelFormat output, Border halo)
      : name_(std::move(name)), input_(input), output_(output), halo_(halo) {}

 private:
  std::string name_;
  PixelFormat input_;
  PixelFormat output_;
  Border halo_;
};

/// The kernel of such an operator: `run(out, pixels, parameters)` makes `out.rect`, all of a block. It may keep
/// buffers between calls.
template <class Run>
class ImageKernel final : public HostKernel {
 public:
  explicit ImageKernel(Run run) : run_(std::move(run)) {}

  /// Half a million pixels of a strip of 1,024 rows.
  std::int64_t columns_per_task() const noexcept override { return 512; }

  void run(const ConstHostView& pixels, const OutputBlock& block, const OutputViews& to,
           const SlideParameters* parameters) override {
    run_(part_of(to.image, {block.column, block.row, block.columns, block.rows}), pixels, parameters);
  }

 private:
  Run run_;
};

template <class Run>
std::unique_ptr<HostKernel> make_image_kernel(Run run) {
  return std::make_unique<ImageKernel<Run>>(std::move(run));
}

}  // namespace slidestream::operators
