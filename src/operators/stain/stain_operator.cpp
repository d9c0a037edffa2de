#include "operators/stain/stain_operator.hpp"

#include <mutex>
#include <optional>
#include <slidestream/error.hpp>
#include <string>

#include "operators/image_operator.hpp"
#include "operators/tissue/preparation.hpp"

namespace slidestream::operators {
namespace {

StainBasis stains_of(const SlideContext& context, const Config& config) {
  Preparation& preparation = Preparation::of(context, config);
  const auto mask = preparation.mask();
  return fit_stains(preparation.image().view(), *mask);
}

/// What slides are normalised to. A slide is looked at once a run: all slides fail with the one cause.
class Reference {
 public:
  explicit Reference(const Config& config) : config_(config) {}

  /// \throws Error naming the reference's file
  const StainBasis& stains() {
    if (config_.stain.reference.empty()) return published_stains();
    const std::lock_guard lock(mutex_);
    if (!stains_ && failure_.empty()) look();
    if (!stains_) throw Error("stain.reference: " + failure_);
    return *stains_;
  }

 private:
  void look() {
    const std::string& path = config_.stain.reference;
    try {
      const auto slide = Slide::open(path, {.max_pixels = config_.input.max_pixels, .retries = config_.input.retries});
      stains_ = stains_of({*slide, 0, path, slide->info().mpp}, config_);
    } catch (const SlideError& error) {
      failure_ = error.what();
    } catch (const Error& error) {
      failure_ = path + ": " + error.what();
    }
  }

  const Config& config_;
  std::mutex mutex_;
  std::optional<StainBasis> stains_;  ///< guarded by mutex_, as what follows
  std::string failure_;
};

class StainOperator final : public ImageOperator {
 public:
  explicit StainOperator(const Config& config)
      : ImageOperator("stain", rgb_format, rgb_format, {}),
        config_(config),
        reference_(std::make_unique<Reference>(config_)) {}

  std::shared_ptr<const SlideParameters> prepare(const SlideContext& context) const override {
    const StainBasis& reference = reference_->stains();
    return std::make_shared<StainParameters>(
        stain_matrix(stains_of(context, config_), reference, config_.stain.output));
  }

  bool computes_on_gpus() const override { return true; }
  std::string host_description() const override { return "tables"; }
  std::unique_ptr<HostKernel> host_kernel() const override {
    return make_image_kernel([](const HostView& out, const ConstHostView& in, const SlideParameters* parameters) {
      static_cast<const StainParameters&>(*parameters).stain().run(out, in);
    });
  }

 private:
  Config config_;
  std::unique_ptr<Reference> reference_;
};

}  // namespace

std::shared_ptr<const Operator> make_stain_operator(const Config& config) {
  return std::make_shared<StainOperator>(config);
}

}  // namespace slidestream::operators
