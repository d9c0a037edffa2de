#include "operators/model/model_operator.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "networks/onnx_network.hpp"
#include "operators/common/network_operator.hpp"
#include "operators/model/coordinates_operator.hpp"
#include "sink/feature_file.hpp"
#include "sink/tensor_file.hpp"

namespace slidestream::operators {
namespace {

class ModelOperator final : public NetworkOperator {
 public:
  explicit ModelOperator(const Config& config)
      : NetworkOperator("model", config.model.network ? config.model.network : networks::open_network(config)),
        encoder_(config.model.network ? config.model.network->description()
                                      : std::filesystem::path(config.model.file).filename().string()),
        format_(config.features.format) {}

  std::vector<VectorsFile> vectors_files() const override {
    if (network()->output().kind != NetworkOutput::Kind::vector) return {};
    FeatureDescription about;
    about.encoder = encoder_;
    about.length = network()->output().channels;
    about.patch = network()->tiles().side;
    about.overlap = network()->tiles().overlap;
    about.settings = network()->settings();
    std::vector<VectorsFile> files;
    if (format_ != FeatureFormat::pt) {
      files.push_back({"features", "features", ".h5", [about](const auto& file, const TileVectors& vectors) {
                         FeatureDescription all = about;
                         all.name = vectors.name;
                         all.level0 = vectors.level0;
                         all.level = static_cast<std::int64_t>(vectors.level);
                         all.downsample = vectors.downsample;
                         all.reduction = vectors.reduction;
                         all.magnification = vectors.magnification;
                         write_features(file, all, vectors.corners, vectors.values);
                       }});
    }
    if (format_ != FeatureFormat::h5) {
      files.push_back({"tensor", "features", ".pt", [length = about.length](const auto& file, const auto& vectors) {
                         write_tensor(file, length, vectors.values);
                       }});
    }
    return files;
  }

 private:
  std::string encoder_;
  FeatureFormat format_;
};

}  // namespace

std::shared_ptr<const Operator> make_model_operator(const Config& config) {
  Config whole = config;
  read_model_file(whole);
  if (whole.features.coords_only && !whole.model.network) return make_coordinates_operator(whole);
  return std::make_shared<ModelOperator>(whole);
}

}  // namespace slidestream::operators
