#pragma once

#include <filesystem>
#include <fstream>
#include <ios>
#include <slidestream/pipeline.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/temporary_folder.hpp"

/// \file
/// A folder with files that inputs name, and what they expand to.

namespace slidestream::test {

using Paths = std::vector<std::string>;

/// The slides of an expansion, without the folder's name.
inline Paths below(const std::filesystem::path& folder, const Paths& slides) {
  Paths names;
  for (const std::string& slide : slides) {
    const std::string prefix = folder.string() + "/";
    names.push_back(slide.starts_with(prefix) ? slide.substr(prefix.size()) : slide);
  }
  return names;
}

/// A folder whose files are made by their names in it.
class Scene {
 public:
  std::string operator/(const std::string& name) const { return (folder_ / name).string(); }
  const std::filesystem::path& path() const { return folder_.path(); }
  void file(const std::string& name, std::string_view content = "") const {
    const std::filesystem::path to = folder_ / name;
    std::filesystem::create_directories(to.parent_path());
    std::ofstream(to, std::ios::binary) << content;
  }
  Paths expand(const Paths& inputs) {
    ExpandedInputs expanded = expand_inputs(inputs);
    warnings = std::move(expanded.warnings);
    return below(path(), expanded.slides);
  }
  Paths warnings;

 private:
  TemporaryFolder folder_;
};

}  // namespace slidestream::test
