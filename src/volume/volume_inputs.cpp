#include "inputs/inputs.hpp"
#include "volume/nifti_file.hpp"
#include "volume/volume_run.hpp"

namespace slidestream::volume {

ExpandedInputs volume_inputs(const std::vector<std::string>& inputs, const std::filesystem::path& results) {
  return expand_inputs(inputs, results, InputKind::volume, is_result);
}

std::string no_volume_text(const std::vector<std::string>& inputs, const ExpandedInputs& found) {
  if (!found.slides.empty()) return {};
  if (inputs.empty()) return "no volume: the argument volumes names none";
  return "no volume in " + inputs.front() + (inputs.size() > 1 ? " and the other inputs" : "");
}

}  // namespace slidestream::volume
