#include "operators/model/model_operator.hpp"

#include "networks/onnx_network.hpp"
#include "operators/network_operator.hpp"

namespace slidestream::operators {
namespace {

class ModelOperator final : public NetworkOperator {
 public:
  explicit ModelOperator(const Config& config) : NetworkOperator("model", networks::open_network(config)) {}
};

}  // namespace

std::shared_ptr<const Operator> make_model_operator(const Config& config) {
  Config whole = config;
  read_model_file(whole);
  return std::make_shared<ModelOperator>(whole);
}

}  // namespace slidestream::operators
