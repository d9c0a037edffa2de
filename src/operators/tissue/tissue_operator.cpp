#include "operators/tissue/tissue_operator.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/keys.hpp"
#include "config/toml_text.hpp"
#include "networks/tissue_network.hpp"
#include "operators/tissue/components.hpp"
#include "operators/tissue/mask_files.hpp"
#include "operators/tissue/outlines.hpp"
#include "operators/tissue/preparation.hpp"

namespace slidestream::operators {
namespace {

constexpr std::string_view outlines_suffix = ".tissue.geojson";
constexpr std::string_view mask_suffix = ".tissue.ome.tif";

using Settings = std::vector<std::pair<std::string, std::string>>;

/// The slide's name among results, which stands before the suffix of a mask.
std::string name_of(const std::filesystem::path& file) {
  std::string name = file.filename().string();
  if (name.ends_with(mask_suffix)) name.resize(name.size() - mask_suffix.size());
  return name;
}

class TissueParameters final : public SlideParameters {
 public:
  TissueParameters(const Mask& mask, std::int64_t corners, const SlideInfo& info, double simplify, Settings settings,
                   Admission::Take admit)
      : mask_(std::make_shared<const PackedMask>(mask)),
        share_(tissue_share(mask)),
        bytes_(writing_bytes(mask.pixels.size(), count_runs(mask, 1), static_cast<std::uint64_t>(corners))),
        mpp_(info.mpp),
        mpp_y_(info.said_mpp_y),
        mean_mpp_(info.mean_mpp()),
        simplify_(simplify),
        settings_(std::move(settings)),
        admit_(std::move(admit)) {}

  std::vector<NamedValue> values() const override { return {{"tissue.share", share_}}; }

  std::vector<PreparedFile> files() const override {
    // Until they are written, and that is when the images are whole, the mask takes a bit a pixel.
    const auto admitted = [admit = admit_, bytes = bytes_] {
      return admit ? admit(bytes) : std::shared_ptr<const void>();
    };
    const auto outlines = [mask = mask_, mpp = mean_mpp_, simplify = simplify_, admitted](const auto& file) {
      const auto memory = admitted();
      write_outlines(mask->unpack(), file, mpp, simplify);
    };
    Settings figures;
    for (const NamedValue& value : values()) figures.emplace_back(value.name, to_toml_value(value.value));
    const auto labels = [mask = mask_, settings = settings_, figures, mpp = mpp_, mpp_y = mpp_y_,
                         admitted](const auto& file) {
      const auto memory = admitted();
      write_mask(mask->unpack(), file, name_of(file), settings, figures, mpp, mpp_y);
    };
    return {{"outlines", std::string(outlines_suffix), outlines}, {"mask", std::string(mask_suffix), labels}};
  }

 private:
  std::shared_ptr<const PackedMask> mask_;
  double share_;
  std::uint64_t bytes_;  ///< that writing takes
  std::optional<double> mpp_;
  std::optional<double> mpp_y_;
  std::optional<double> mean_mpp_;
  double simplify_;
  Settings settings_;  ///< that decide the mask
  Admission::Take admit_;
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
  bool looks_at_small_level() const override { return true; }

  std::shared_ptr<const SlideParameters> prepare(const SlideContext& context) const override {
    const std::shared_ptr<const Mask> mask = prepare_mask(context, config_);
    const std::int64_t corners = count_corners(*mask);
    if (corners > most_outline_corners) {
      throw Error("the outlines of its mask have " + std::to_string(corners) + " corners, more than " +
                  std::to_string(most_outline_corners) + "; raise tissue.min_um2 and tissue.fill_um2");
    }
    return std::make_shared<TissueParameters>(*mask, corners, context.slide.info(), config_.tissue.simplify_px,
                                              settings(), Preparation::of(context, config_).admission().write);
  }

  std::string host_description() const override { return "small level"; }
  std::unique_ptr<HostKernel> host_kernel() const override { return std::make_unique<NoKernel>(); }

 private:
  /// The network's content is read once.
  const Settings& settings() const {
    std::call_once(settings_known_, [this] {
      settings_ = settings_of_section(config_, name());
      if (config_.tissue.model.empty()) return;
      for (auto& setting : networks::tissue_network_settings(config_)) settings_.push_back(std::move(setting));
    });
    return settings_;
  }

  Config config_;
  mutable std::once_flag settings_known_;
  mutable Settings settings_;
};

}  // namespace

std::shared_ptr<const Operator> make_tissue_operator(const Config& config) {
  return std::make_shared<TissueOperator>(config);
}

}  // namespace slidestream::operators
