#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <slidestream/config.hpp>
#include <string>

namespace slidestream {

/// What decides a slide's results besides its own file and the settings of the run: outlines beside the slide
/// (`tissue.source = "geojson"`), and its pixel size in a CSV list. Thread-safe.
class SideInputs {
 public:
  explicit SideInputs(const Config& config);

  /// A digest of their content; nothing for a slide that has none. A file that can't be read counts as one without
  /// content. Reads the file.
  std::optional<std::uint64_t> of(const std::string& path) const;

 private:
  bool outlines_;
  std::map<std::string, double> mpp_;  ///< by path
};

}  // namespace slidestream
