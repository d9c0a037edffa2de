#pragma once

#include <memory>
#include <slidestream/config.hpp>
#include <slidestream/network.hpp>
#include <slidestream/operator.hpp>
#include <slidestream/stitch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "image/label_names.hpp"
#include "operators/common/image_operator.hpp"

namespace slidestream::operators {

/// Rows above its own from which a GPU makes larger pixels, for a network that wants its tiles at a resolution. Where
/// a pixel's area is higher, the host makes them.
constexpr std::int64_t network_halo = 16;

/// An operator whose image, or vectors, a network makes: all that it does itself is to pass RGB on.
class NetworkOperator : public Operator {
 public:
  std::string name() const override { return name_; }
  PixelFormat input() const override { return rgb_format; }
  Footprint footprint() const override {
    Footprint footprint;
    if (network_->tiles().mpp) footprint.halo.top = network_halo;
    return footprint;
  }
  std::vector<Product> products() const override {
    if (network_->output().kind == NetworkOutput::Kind::vector) {
      return {{"features", Product::Kind::field, {SampleType::float32, network_->output().channels}}};
    }
    const NetworkOutput output = network_->output();
    const bool classes = output.kind == NetworkOutput::Kind::classes;
    const bool labels = classes || output.kind == NetworkOutput::Kind::labels;
    return {{classes  ? channel_of_classes
             : labels ? channel_of_labels
                      : "image",
             Product::Kind::image, StitchBand::format(output), labels, labels ? output.ignore : 0}};
  }
  bool computes_on_gpus() const override { return true; }
  std::string host_description() const override { return network_->description(); }
  std::unique_ptr<HostKernel> host_kernel() const override {
    return make_image_kernel([](const HostView& out, const ConstHostView& in, const SlideParameters*) {
      require_input(out, in, {}, rgb_format);
      copy_pixels(out, in);
    });
  }
  const Network* network() const override { return network_.get(); }

 protected:
  NetworkOperator(std::string name, std::shared_ptr<const Network> network)
      : name_(std::move(name)), network_(std::move(network)) {}

 private:
  std::string name_;
  std::shared_ptr<const Network> network_;
};

}  // namespace slidestream::operators
