#include "inputs/inputs.hpp"
#include "volume/nifti_file.hpp"
#include "volume/volume_run.hpp"

namespace slidestream::volume {

ExpandedInputs volume_inputs(const std::vector<std::string>& inputs, const std::filesystem::path& results) {
  return expand_inputs(inputs, results, InputKind::volume, is_result);
}

}  // namespace slidestream::volume
