#include "cli/run_warnings.hpp"

#include <spdlog/spdlog.h>

#include <slidestream/network.hpp>

namespace slidestream::cli {

void warn_of_clipped(const SpectrumSums& sums) {
  if (sums.clipped == 0) return;
  spdlog::warn(
      "{} of {} values lie outside analysis.range and were counted in the end bins; percentiles among them aren't "
      "given",
      sums.clipped, sums.values);
}

void warn_of_clamped(const Config& config, std::size_t slides, double most, const std::string& input) {
  if (slides == 0) return;
  const Network* const network = config.model.network.get();
  spdlog::warn("{} gave values outside {} on {}; the image has them clamped: {:.3g} % of its values{}",
               network != nullptr ? network->called() : "the network",
               network != nullptr ? network->setting_name("range") : "model.range",
               slides == 1 ? "a " + input : std::to_string(slides) + " " + input + "s", most * 100.0,
               slides == 1 ? "" : " at most (model.clamped in slides.csv)");
}

void warn_of_saturated(const Config& config, std::size_t slides, double most) {
  if (slides == 0) return;
  const Network* const network = config.model.network.get();
  spdlog::warn(
      "{} gave scores that a sigmoid makes equal on {}: at {:.3g} % of the pixels{} several classes have the largest "
      "value, and the lowest is the label; set {} to \"softmax\"",
      network != nullptr ? network->called() : "the network",
      slides == 1 ? "a slide" : std::to_string(slides) + " slides", most * 100.0,
      slides == 1 ? "" : " at most (model.saturated in slides.csv)",
      network != nullptr ? network->setting_name("activation") : "model.activation");
}

}  // namespace slidestream::cli
