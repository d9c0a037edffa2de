#include "operators/model/model_operator.hpp"

#include <slidestream/network.hpp>
#include <string>
#include <utility>

#include "networks/onnx_network.hpp"
#include "operators/image_operator.hpp"

namespace slidestream::operators {
namespace {

Product product_of(const NetworkOutput& output) {
  switch (output.kind) {
    case NetworkOutput::Kind::vector:
      return {"features", Product::Kind::field, {SampleType::float32, output.channels}};
    case NetworkOutput::Kind::classes:
      return {"classes", Product::Kind::image, {SampleType::uint8, 1}};
    case NetworkOutput::Kind::image:
      break;
  }
  return {"image", Product::Kind::image, {output.sample, output.channels}};
}

class ModelOperator final : public Operator {
 public:
  explicit ModelOperator(std::shared_ptr<const Network> network) : network_(std::move(network)) {}

  std::string name() const override { return "model"; }
  PixelFormat input() const override { return rgb_format; }
  Footprint footprint() const override { return {}; }
  std::vector<Product> products() const override { return {product_of(network_->output())}; }
  std::string host_description() const override { return network_->description(); }
  std::unique_ptr<HostKernel> host_kernel() const override {
    return make_image_kernel([](const HostView& out, const ConstHostView& in, const SlideParameters*) {
      require_input(out, in, {}, out.format);
      copy_pixels(out, in);
    });
  }
  const Network* network() const override { return network_.get(); }

 private:
  std::shared_ptr<const Network> network_;
};

}  // namespace

std::shared_ptr<const Operator> make_model_operator(const Config& config) {
  Config whole = config;
  read_model_file(whole);
  return std::make_shared<ModelOperator>(networks::open_network(whole));
}

}  // namespace slidestream::operators
