#include <nanobind/stl/array.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <slidestream/error.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "cli/run_targets.hpp"
#include "output/folders.hpp"
#include "volume/fusion.hpp"
#include "volume/nifti_file.hpp"
#include "volume/volume_made.hpp"
#include "volume/volume_run.hpp"
#include "volume/volume_settings.hpp"
#include "volume/volume_work.hpp"

namespace slidestream::python {

namespace {

using volume::ScalarType;

/// A volume whose fragments Python computes, one thread at a time.
class Volume {
 public:
  Volume(const std::filesystem::path& path, const std::vector<std::int64_t>& fragment,
         const std::vector<std::int64_t>& grid, const std::vector<double>& spacing, double fill)
      : work_(0, path.string()), fill_(static_cast<float>(fill)) {
    config_.volume.fragment = fragment;
    config_.volume.grid = grid;
    config_.volume.spacing = spacing;
    const Unlocked unlocked;
    volume::NiftiFile file(work_.path);
    work_.header = file.header();
    in_file([&] {
      work_.resampling = volume::resampling_of(config_, work_.header);
      work_.grid = std::make_unique<volume::FragmentGrid>(volume::grid_of(config_, work_.header));
      if (!work_.grid->covers()) throw Error("fragments leave samples out; raise grid or fragment");
    });
    work_.samples = runtime::HostArray<float>(static_cast<std::size_t>(work_.header.voxels()));
    file.read(work_.samples);
  }

  std::size_t count() const { return work_.grid->count(); }

  Array<float> cut(std::size_t fragment) const {
    if (fragment >= count()) throw Error("internal: a fragment that isn't there");
    const volume::Extent& size = work_.grid->fragment();
    std::vector<float> samples(static_cast<std::size_t>(volume::count_of(size)));
    {
      const Unlocked unlocked;
      work_.cut(samples, fragment, fill_);
    }
    return array_of(std::move(samples), {static_cast<std::size_t>(size[0]), static_cast<std::size_t>(size[1]),
                                         static_cast<std::size_t>(size[2])});
  }

  /// Says what `put` gets. \param range  values that become 0 and 65,535
  void begin(const std::string& fusion, bool labels, int channels, bool wide, std::optional<int> ignore,
             const std::string& activation, std::array<double, 2> range) {
    volume::FragmentOutput output;
    output.labels = labels;
    output.channels = channels;
    const int largest = wide ? 65535 : 255;
    output.most_label = labels ? largest : channels - 1;
    output.ignore = ignore.value_or(labels ? largest : channels);
    output.activation = activation == "softmax"   ? NetworkActivation::softmax
                        : activation == "sigmoid" ? NetworkActivation::sigmoid
                                                  : NetworkActivation::none;
    output.low = static_cast<float>(range[0]);
    output.high = static_cast<float>(range[1]);
    output.called = "the function";
    output.range_name = "range=";
    output.activation_name = "activation=";
    sample_ = fusion == "blend" ? ScalarType::float32 : wide ? ScalarType::uint16 : ScalarType::uint8;
    in_file([&] {
      work_.fusion = fusion == "vote"   ? volume::make_vote(*work_.grid, output)
                     : fusion == "mean" ? volume::make_mean(*work_.grid, output)
                                        : volume::make_blend(*work_.grid, output, config_.stitch.weights);
    });
  }

  void put(std::size_t fragment, nb::ndarray<const float, nb::c_contig, nb::device::cpu> values) {
    const Unlocked unlocked;
    in_file([&] { work_.fusion->put(fragment, {values.data(), values.size()}); });
  }

  /// Writes what all fragments make together. \return voxels by label; empty of an image
  std::map<int, std::uint64_t> write(const std::filesystem::path& to) {
    const Unlocked unlocked;
    const bool image = sample_ == ScalarType::float32;
    work_.result.values.clear();
    image ? volume::make_image(work_) : volume::make_labels(work_, sample_);
    volume::write_nifti(to, work_.header, sample_, !image, work_.made);
    std::map<int, std::uint64_t> counts;
    const std::string begin = volume::label_figure;
    for (const NamedValue& value : work_.result.values) {
      if (!value.name.starts_with(begin)) continue;
      counts[std::stoi(value.name.substr(begin.size()))] = static_cast<std::uint64_t>(value.value);
    }
    return counts;
  }

  /// The share of the values that the image has clamped; 0 of labels.
  double clamped() const { return work_.fusion == nullptr ? 0.0 : work_.fusion->clamped_share(); }

  /// A line about its header; empty: none.
  std::string doubt() const { return work_.header.geometry.doubt(); }

  double voxel_mm3() const { return work_.header.geometry.voxel_mm3(); }

 private:
  template <class Do>
  void in_file(const Do& work) const {
    try {
      work();
    } catch (const Error& error) {
      throw SlideError(work_.path + ": " + error.what());
    }
  }

  Config config_;
  volume::VolumeWork work_;
  float fill_;
  ScalarType sample_ = ScalarType::uint8;
};

/// \param has_sample  whether the type of labels is set. \throws ConfigError as `volume::check_scores`
void check_scores(const std::string& fusion, const std::string& activation, std::optional<std::array<double, 2>> range,
                  std::optional<int> ignore, bool has_sample) {
  volume::ScoreSettings settings;
  settings.fusion = fusion == "vote" ? VolumeFusion::vote : fusion == "mean" ? VolumeFusion::mean : VolumeFusion::blend;
  settings.activation = activation == "softmax"   ? ModelActivation::softmax
                        : activation == "sigmoid" ? ModelActivation::sigmoid
                                                  : ModelActivation::none;
  settings.range = range;
  settings.ignore = ignore;
  settings.has_sample = has_sample;
  settings.model_part = "";
  settings.volume_part = "";
  volume::check_scores(settings);
}

}  // namespace

void bind_volume(nb::module_& module) {
  module.def(
      "volume_inputs",
      [](const std::vector<std::filesystem::path>& inputs) {
        std::vector<std::string> paths;
        paths.reserve(inputs.size());
        for (const std::filesystem::path& input : inputs) paths.push_back(input.string());
        const ExpandedInputs found = volume::volume_inputs(paths, {});
        std::vector<std::filesystem::path> volumes(found.slides.begin(), found.slides.end());
        std::vector<nb::str> warnings;
        for (const std::string& warning : found.warnings) warnings.push_back(text_of(warning));
        return std::tuple(std::move(volumes), std::move(warnings), text_of(volume::no_volume_text(paths, found)));
      },
      nb::arg("inputs"));
  module.def("make_folder", &make_folder, nb::arg("folder"));
  module.def("check_scores", &check_scores, nb::kw_only(), nb::arg("fusion"), nb::arg("activation"),
             nb::arg("range").none(), nb::arg("ignore").none(), nb::arg("has_sample"));
  module.def("check_targets", &cli::check_targets, nb::arg("files"), nb::arg("inputs"));
  nb::class_<Volume>(module, "Volume")
      .def(nb::init<const std::filesystem::path&, const std::vector<std::int64_t>&, const std::vector<std::int64_t>&,
                    const std::vector<double>&, double>(),
           nb::kw_only(), nb::arg("path"), nb::arg("fragment"), nb::arg("grid"), nb::arg("spacing"), nb::arg("fill"))
      .def_prop_ro("count", &Volume::count)
      .def_prop_ro("doubt", &Volume::doubt)
      .def_prop_ro("voxel_mm3", &Volume::voxel_mm3)
      .def_prop_ro("clamped", &Volume::clamped)
      .def("cut", &Volume::cut, nb::arg("fragment"))
      .def("begin", &Volume::begin, nb::kw_only(), nb::arg("fusion"), nb::arg("labels"), nb::arg("channels"),
           nb::arg("wide"), nb::arg("ignore").none(), nb::arg("activation"), nb::arg("range"))
      .def("put", &Volume::put, nb::arg("fragment"), nb::arg("values"))
      .def("write", &Volume::write, nb::arg("to"));
}

}  // namespace slidestream::python
