#pragma once

#include <memory>

#include <slidestream/config.hpp>
#include <slidestream/operator.hpp>

namespace slidestream::operators {

/// The spectral statistics of windows: a distribution of the coefficients' values as sums, and each window's mean and
/// standard deviation as field. How it is computed is src/spectrum's.
class SpectrumOperator final : public Operator {
 public:
  explicit SpectrumOperator(const Config& config);
  ~SpectrumOperator() override;

  std::string name() const override { return "spectrum"; }
  PixelFormat input() const override { return luminance_format; }
  /// Windows, and around them the pixels that smoothing reads.
  Footprint footprint() const override;
  std::vector<Product> products() const override;
  bool computes_on_gpus() const override { return true; }
  /// Where windows are split, `WindowClasses` of the slide's mask; else null.
  std::shared_ptr<const SlideParameters> prepare(const SlideContext& context) const override;
  bool looks_at_small_level() const override;
  std::string host_description() const override;
  std::unique_ptr<HostKernel> host_kernel() const override;

 private:
  struct Engine;
  Config config_;
  AnalysisConfig analysis_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace slidestream::operators
