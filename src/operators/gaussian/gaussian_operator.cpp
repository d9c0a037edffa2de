#include "operators/gaussian/gaussian_operator.hpp"

#include "operators/common/image_operator.hpp"
#include "operators/gaussian/gaussian.hpp"

namespace slidestream::operators {
namespace {

class GaussianOperator final : public ImageOperator {
 public:
  GaussianOperator(const GaussianConfig& config, PixelFormat format)
      : ImageOperator("gaussian", format, format, border_of(config.radius)), config_(config) {}

  bool computes_on_gpus() const override { return true; }
  std::string host_description() const override { return "highway"; }
  std::unique_ptr<HostKernel> host_kernel() const override {
    return make_image_kernel(
        [gaussian = Gaussian(config_.radius, config_.sigma)](
            const HostView& out, const ConstHostView& in, const SlideParameters*) mutable { gaussian.run(out, in); });
  }

 private:
  GaussianConfig config_;
};

}  // namespace

std::shared_ptr<const Operator> make_gaussian_operator(const Config& config) {
  return std::make_shared<GaussianOperator>(config.gaussian, format_of(config.gaussian.colour));
}

}  // namespace slidestream::operators
