#include "operators/tissue/tissue_operator.hpp"

#include <filesystem>
#include <optional>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operators/tissue/mask_files.hpp"
#include "operators/tissue/preparation.hpp"

namespace slidestream::operators {
namespace {

constexpr std::string_view outlines_suffix = ".tissue.geojson";
constexpr std::string_view mask_suffix = ".tissue.ome.tif";

/// The slide's name among results, which stands before the suffix.
std::string name_of(const std::filesystem::path& file) {
  std::string name = file.filename().string();
  if (name.ends_with(mask_suffix)) name.resize(name.size() - mask_suffix.size());
  return name;
}

class TissueParameters final : public SlideParameters {
 public:
  TissueParameters(std::shared_ptr<const Mask> mask, std::optional<double> mpp) : mask_(std::move(mask)), mpp_(mpp) {}

  std::vector<NamedValue> values() const override { return {{"tissue.share", tissue_share(*mask_)}}; }

  std::vector<PreparedFile> files() const override {
    const auto outlines = [mask = mask_](const std::filesystem::path& file) { write_outlines(*mask, file); };
    const auto labels = [mask = mask_, mpp = mpp_](const std::filesystem::path& file) {
      write_mask(*mask, file, name_of(file), mpp);
    };
    return {{"outlines", std::string(outlines_suffix), outlines}, {"mask", std::string(mask_suffix), labels}};
  }

 private:
  std::shared_ptr<const Mask> mask_;
  std::optional<double> mpp_;
};

/// There are no pixels for it.
class NoKernel final : public HostKernel {
 public:
  std::int64_t columns_per_task() const noexcept override { return 1; }
  void run(const ConstPixelView<MemorySpace::host>&, const OutputBlock&, const OutputViews&,
           const SlideParameters*) override {
    throw Error("internal: no pixels pass by tissue");
  }
};

class TissueOperator final : public Operator {
 public:
  explicit TissueOperator(const Config& config) : config_(config) {}

  std::string name() const override { return "tissue"; }
  PixelFormat input() const override { return rgb_format; }
  Footprint footprint() const override { return {}; }
  std::vector<Product> products() const override {
    return {{"outlines", Product::Kind::file, {}}, {"mask", Product::Kind::file, luminance_format}};
  }
  bool reads_pixels() const override { return false; }

  std::shared_ptr<const SlideParameters> prepare(const SlideContext& context) const override {
    return std::make_shared<TissueParameters>(prepare_mask(context, config_), context.mpp);
  }

  std::string host_description() const override { return "small level"; }
  std::unique_ptr<HostKernel> host_kernel() const override { return std::make_unique<NoKernel>(); }

 private:
  Config config_;
};

}  // namespace

std::shared_ptr<const Operator> make_tissue_operator(const Config& config) {
  return std::make_shared<TissueOperator>(config);
}

}  // namespace slidestream::operators
