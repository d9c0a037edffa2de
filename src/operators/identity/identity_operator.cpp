#include "operators/identity/identity_operator.hpp"

#include "operators/common/image_operator.hpp"

namespace slidestream::operators {
namespace {

class IdentityOperator final : public ImageOperator {
 public:
  explicit IdentityOperator(PixelFormat format) : ImageOperator("identity", format, format, {}) {}

  bool computes_on_gpus() const override { return true; }
  std::string host_description() const override { return "copy"; }
  std::unique_ptr<HostKernel> host_kernel() const override {
    return make_image_kernel([](const HostView& out, const ConstHostView& in, const SlideParameters*) {
      require_input(out, in, {}, out.format);
      copy_pixels(out, in);
    });
  }
};

}  // namespace

std::shared_ptr<const Operator> make_identity_operator(const Config& config) {
  return std::make_shared<IdentityOperator>(format_of(config.identity.colour));
}

}  // namespace slidestream::operators
