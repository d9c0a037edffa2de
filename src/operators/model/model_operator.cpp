#include "operators/model/model_operator.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

#include "networks/onnx_network.hpp"
#include "operators/network_operator.hpp"
#include "sink/feature_file.hpp"

namespace slidestream::operators {
namespace {

class ModelOperator final : public NetworkOperator {
 public:
  explicit ModelOperator(const Config& config)
      : NetworkOperator("model", config.model.network ? config.model.network : networks::open_network(config)),
        encoder_(config.model.network ? config.model.network->description()
                                      : std::filesystem::path(config.model.file).filename().string()) {}

  VectorsFile vectors_file() const override {
    if (network()->output().kind != NetworkOutput::Kind::vector) return {};
    FeatureDescription about;
    about.encoder = encoder_;
    about.length = network()->output().channels;
    about.patch = network()->tiles().side;
    about.overlap = network()->tiles().overlap;
    about.settings = network()->settings();
    return {"features", "features", ".h5", [about](const std::filesystem::path& file, const TileVectors& vectors) {
              FeatureDescription all = about;
              all.name = vectors.name;
              all.level0 = vectors.level0;
              all.level = static_cast<std::int64_t>(vectors.level);
              all.downsample = vectors.downsample;
              all.reduction = vectors.reduction;
              all.magnification = vectors.magnification;
              write_features(file, all, vectors.corners, vectors.values);
            }};
  }

 private:
  std::string encoder_;
};

}  // namespace

std::shared_ptr<const Operator> make_model_operator(const Config& config) {
  Config whole = config;
  read_model_file(whole);
  return std::make_shared<ModelOperator>(whole);
}

}  // namespace slidestream::operators
