#include "operators/spectrum/spectrum_operator.hpp"

#include <mutex>

#include "spectrum/engine.hpp"

namespace slidestream::operators {
namespace {

class Kernel final : public HostKernel {
 public:
  explicit Kernel(const SpectrumEngine& engine) : engine_(engine), workspace_(engine.make_workspace()) {}

  std::int64_t columns_per_task() const noexcept override { return engine_.columns_per_task(); }

  void run(const ConstPixelView<MemorySpace::host>& pixels, const OutputBlock& block, const OutputViews& to,
           const SlideParameters*) override {
    const LuminancePlane plane = {reinterpret_cast<const std::uint8_t*>(pixels.data),
                                  pixels.pitch,
                                  pixels.rect.x,
                                  pixels.rect.y,
                                  pixels.rect.width,
                                  pixels.rect.height,
                                  pixels.image.width,
                                  pixels.image.height};
    engine_.run(*to.sums, {to.field.values, to.field.columns}, plane,
                {block.column, block.columns, block.row, block.rows}, *workspace_);
  }

 private:
  const SpectrumEngine& engine_;
  std::unique_ptr<SpectrumEngine::Workspace> workspace_;
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

SpectrumOperator::SpectrumOperator(const AnalysisConfig& analysis)
    : analysis_(analysis), engine_(std::make_unique<Engine>()) {}
SpectrumOperator::~SpectrumOperator() = default;

Footprint SpectrumOperator::footprint() const {
  const std::int64_t radius = analysis_.smoothing_radius;
  return {{analysis_.window, analysis_.window}, {analysis_.stride, analysis_.stride}, {radius, radius, radius, radius}};
}

std::vector<Product> SpectrumOperator::products() const {
  return {{"distribution", Product::Kind::sums, {}}, {"map", Product::Kind::field, {SampleType::float32, 2}}};
}

std::string SpectrumOperator::host_description() const { return engine_->get(analysis_).name(); }

std::unique_ptr<HostKernel> SpectrumOperator::host_kernel() const {
  return std::make_unique<Kernel>(engine_->get(analysis_));
}

}  // namespace slidestream::operators
