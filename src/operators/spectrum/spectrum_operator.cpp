#include "operators/spectrum/spectrum_operator.hpp"

#include <mutex>

#include <slidestream/slide.hpp>

#include "operators/spectrum/window_classes.hpp"
#include "operators/tissue/preparation.hpp"
#include "spectrum/engine.hpp"
#include "statistics/split.hpp"

namespace slidestream::operators {
namespace {

class Kernel final : public HostKernel {
 public:
  Kernel(const SpectrumEngine& engine, const AnalysisConfig& analysis)
      : engine_(engine), workspace_(engine.make_workspace()), split_(split_of(analysis)) {}

  std::int64_t columns_per_task() const noexcept override { return engine_.columns_per_task(); }

  void run(const ConstPixelView<MemorySpace::host>& pixels, const OutputBlock& block, const OutputViews& to,
           const SlideParameters* parameters) override {
    const LuminancePlane plane = {reinterpret_cast<const std::uint8_t*>(pixels.data),
                                  pixels.pitch,
                                  pixels.rect.x,
                                  pixels.rect.y,
                                  pixels.rect.width,
                                  pixels.rect.height,
                                  pixels.image.width,
                                  pixels.image.height};
    const auto add = [&](SpectrumSums& sums, const OutputBlock& windows) {
      engine_.run(sums, {to.field.values, to.field.columns}, plane,
                  {windows.column, windows.columns, windows.row, windows.rows}, *workspace_);
    };
    if (split_.statistic == nullptr) return add(*to.sums, block);
    tissue_.reset(to.sums->histogram.size());
    blocks_.for_each(static_cast<const WindowClasses&>(*parameters), block,
                     [&](const OutputBlock& windows, bool tissue) { add(tissue ? tissue_ : *to.sums, windows); });
    *to.sums += tissue_;
    count_tissue(*to.sums, tissue_, split_);
  }

 private:
  const SpectrumEngine& engine_;
  std::unique_ptr<SpectrumEngine::Workspace> workspace_;
  PlacedStatistic split_;  ///< without a statistic: not asked for
  ClassBlocks blocks_;
  SpectrumSums tissue_;
};

}  // namespace

/// Made when the host computes first: a run on GPUs needs none.
struct SpectrumOperator::Engine {
  std::once_flag made;
  std::unique_ptr<SpectrumEngine> engine;

  const SpectrumEngine& get(const AnalysisConfig& analysis) {
    std::call_once(made, [&] { engine = make_spectrum_engine(analysis); });
    return *engine;
  }
};

SpectrumOperator::SpectrumOperator(const Config& config)
    : config_(config), analysis_(config.analysis), engine_(std::make_unique<Engine>()) {}
SpectrumOperator::~SpectrumOperator() = default;

Footprint SpectrumOperator::footprint() const {
  const std::int64_t radius = analysis_.smoothing_radius;
  return {{analysis_.window, analysis_.window}, {analysis_.stride, analysis_.stride}, {radius, radius, radius, radius}};
}

std::vector<Product> SpectrumOperator::products() const {
  return {{"distribution", Product::Kind::sums, {}}, {"map", Product::Kind::field, {SampleType::float32, 2}}};
}

bool SpectrumOperator::looks_at_small_level() const { return split_of(analysis_).statistic != nullptr; }

std::shared_ptr<const SlideParameters> SpectrumOperator::prepare(const SlideContext& context) const {
  if (!looks_at_small_level()) return nullptr;
  const SlideInfo& info = context.slide.info();
  const GridScale scale = {info.downsample_x(context.level), info.downsample_y(context.level)};
  return std::make_shared<WindowClasses>(*prepare_mask(context, config_), scale, footprint(), config_.tissue.share);
}

std::string SpectrumOperator::host_description() const { return engine_->get(analysis_).name(); }

std::unique_ptr<HostKernel> SpectrumOperator::host_kernel() const {
  return std::make_unique<Kernel>(engine_->get(analysis_), analysis_);
}

}  // namespace slidestream::operators
