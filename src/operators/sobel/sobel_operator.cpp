#include "operators/sobel/sobel_operator.hpp"

#include "operators/common/image_operator.hpp"
#include "operators/sobel/sobel.hpp"

namespace slidestream::operators {
namespace {

class SobelOperator final : public ImageOperator {
 public:
  explicit SobelOperator(SampleType output) : ImageOperator("sobel", luminance_format, {output, 1}, sobel_border) {}

  bool computes_on_gpus() const override { return true; }
  std::string host_description() const override { return "highway"; }
  std::unique_ptr<HostKernel> host_kernel() const override {
    return make_image_kernel(
        [](const HostView& out, const ConstHostView& in, const SlideParameters*) { sobel(out, in); });
  }
};

}  // namespace

std::shared_ptr<const Operator> make_sobel_operator(const Config& config) {
  return std::make_shared<SobelOperator>(config.sobel.output == SobelOutput::uint8 ? SampleType::uint8
                                                                                   : SampleType::float32);
}

}  // namespace slidestream::operators
