#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <slidestream/error.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "config/manifest.hpp"
#include "config/suggest.hpp"
#include "ledger/schema.hpp"
#include "volume/volume_run.hpp"

namespace slidestream::volume {
namespace {

namespace fs = std::filesystem;

constexpr int most_depth = 64;

bool ends_in(const std::string& path, std::string_view suffix) {
  if (path.size() < suffix.size()) return false;
  return std::equal(suffix.begin(), suffix.end(), path.end() - static_cast<std::ptrdiff_t>(suffix.size()),
                    [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
}

bool is_volume(const std::string& path) { return ends_in(path, ".nii") || ends_in(path, ".nii.gz"); }

class Expander {
 public:
  void add_input(const std::string& input) {
    if (input == "-") {
      add_entries(list_entries(read_list(input)), "standard input", {});
    } else if (ends_in(input, ".list") || ends_in(input, ".csv")) {
      const std::string text = read_list(input);
      const fs::path base = fs::path(input).parent_path();
      add_entries(ends_in(input, ".list") ? list_entries(text) : csv_entries(text, input, is_volume, inputs_.warnings),
                  input, base);
    } else {
      add_path(input);
    }
  }

  ExpandedInputs take() { return std::move(inputs_); }

 private:
  void add_entries(const std::vector<ManifestLine>& entries, const std::string& origin, const fs::path& base) {
    if (entries.empty()) inputs_.warnings.push_back(origin + ": names no volume");
    for (const ManifestLine& entry : entries) {
      const std::string place = origin + ":" + std::to_string(entry.line);
      if (entry.path.empty()) throw ConfigError(place + ": the path is empty");
      add_path((base / entry.path).string());
    }
  }

  void add_path(const std::string& path) {
    if (path.empty()) throw ConfigError("a volume's path is empty");
    std::error_code code;
    if (!fs::is_directory(path, code)) return add_volume(path);
    const std::size_t before = inputs_.slides.size();
    std::set<std::string> above;
    add_folder(path, above);
    if (inputs_.slides.size() == before) {
      inputs_.warnings.push_back(one_line(path) + ": a folder without volumes; they end in .nii or .nii.gz");
    }
  }

  /// \param above  folders that this one lies in: a link may lead back to one of them
  void add_folder(const std::string& path, std::set<std::string>& above) {
    std::error_code code;
    if (fs::exists(fs::path(path) / ledger_name, code)) {
      inputs_.warnings.push_back(one_line(path) + ": holds results of a run, and is passed over");
      return;
    }
    const std::string canonical = fs::weakly_canonical(path, code).string();
    if (above.size() >= most_depth || !above.insert(canonical).second) return;
    std::vector<std::string> paths;
    fs::directory_iterator at(path, code);
    for (; !code && at != fs::directory_iterator(); at.increment(code)) {
      if (!at->path().filename().string().starts_with(".")) paths.push_back(at->path().string());
    }
    if (code) inputs_.warnings.push_back(one_line(path) + ": " + code.message());
    std::ranges::sort(paths);
    for (const std::string& each : paths) {
      if (fs::is_directory(each, code)) {
        add_folder(each, above);
      } else if (is_volume(each)) {
        add_volume(each);
      }
    }
    above.erase(canonical);
  }

  void add_volume(const std::string& path) {
    std::error_code code;
    std::string canonical = fs::weakly_canonical(path, code).string();
    if (code || canonical.empty()) canonical = fs::path(path).lexically_normal().string();
    if (!known_.insert(canonical).second) {
      inputs_.warnings.push_back(path + ": named before, counted once");
      return;
    }
    inputs_.slides.push_back(path);
    inputs_.canonical.push_back(std::move(canonical));
  }

  ExpandedInputs inputs_;
  std::set<std::string> known_;
};

}  // namespace

ExpandedInputs volume_inputs(const std::vector<std::string>& inputs) {
  Expander expander;
  const auto is_there = [](const std::string& input) {
    std::error_code code;
    return input == "-" || fs::exists(fs::symlink_status(input, code));
  };
  if (!inputs.empty() && std::ranges::none_of(inputs, is_there)) {
    throw ConfigError(one_line(inputs.front()) + ": " +
                      std::make_error_code(std::errc::no_such_file_or_directory).message());
  }
  for (const std::string& input : inputs) expander.add_input(input);
  return expander.take();
}

}  // namespace slidestream::volume
