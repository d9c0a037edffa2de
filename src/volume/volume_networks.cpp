#include "volume/volume_networks.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <future>
#include <map>
#include <new>
#include <slidestream/error.hpp>
#include <utility>

#include "config/keys.hpp"
#include "config/toml_text.hpp"
#include "networks/network_gpus.hpp"
#include "networks/network_shapes.hpp"
#include "networks/onnx_files.hpp"
#include "networks/onnx_graph.hpp"
#include "networks/tile_planes.hpp"
#include "runtime/device_full.hpp"
#include "runtime/host_array.hpp"
#include "runtime/machine.hpp"
#include "sink/background.hpp"
#include "volume/volume_run.hpp"
#include "volume/volume_settings.hpp"

namespace slidestream::volume {
namespace {

using networks::of_file;
using networks::OnnxSession;
using networks::OnnxTensor;
using networks::Place;
using networks::onnx::ElementType;

constexpr std::size_t dimensions = 5;
constexpr int most_labels = 65535;
/// Beyond what was measured: allocators take memory in pieces.
constexpr std::uint64_t margin_divisor = 8;

/// Bytes that are reserved for what was measured. What is measured differs a little between runs, so they are whole
/// MiB: runs seldom decide differently what fits.
std::uint64_t reserved_for(std::uint64_t measured) {
  constexpr std::uint64_t mib = std::uint64_t{1} << 20;
  const std::uint64_t bytes = measured + measured / margin_divisor;
  return (bytes + mib - 1) / mib * mib;
}

std::size_t count_of(const std::vector<std::int64_t>& shape) {
  std::size_t count = 1;
  for (const std::int64_t side : shape) count *= static_cast<std::size_t>(side);
  return count;
}

bool is_real(ElementType type) { return type == ElementType::float32 || type == ElementType::float16; }

/// On the host, with weights alone in memory between fragments.
Place host_place() {
  Place place;
  place.keeps_memory = false;
  return place;
}

OnnxSession::ChooseOutput chooser(const ModelConfig& model) {
  return [name = model.output_name](const std::vector<OnnxTensor>& outputs) {
    std::string list;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].name == name || (name.empty() && outputs.size() == 1)) return i;
      list += (list.empty() ? "" : ", ") + outputs[i].name + " (" + outputs[i].text() + ")";
    }
    throw Error("it has " + std::to_string(outputs.size()) + " outputs; set model.output_name to one of: " + list);
  };
}

/// Calls `work` for each of some GPUs, at the same time. \throws what it threw for the first that failed
void on_each(std::size_t gpus, const std::function<void(std::size_t)>& work) {
  std::vector<std::future<void>> others;
  for (std::size_t i = 1; i < gpus; ++i) others.push_back(in_background([&work, i] { work(i); }));
  work(0);
  for (std::future<void>& other : others) other.get();
}

/// Memory that was taken while this lives, beyond what there was when it was made. Other threads are idle.
class MemoryMeter {
 public:
  MemoryMeter() : is_reset_(runtime::reset_peak_memory()), before_(runtime::resident_bytes()) {}

  std::uint64_t kept() const { return beyond(runtime::resident_bytes()); }
  std::uint64_t most() const {
    const auto peak = runtime::peak_memory();
    return std::max(kept(), is_reset_ && peak ? beyond(*peak) : 0);
  }

 private:
  std::uint64_t beyond(std::uint64_t bytes) const { return bytes > before_ ? bytes - before_ : 0; }

  bool is_reset_;
  std::uint64_t before_;
};

}  // namespace

VolumeNetworks::VolumeNetworks(const Config& config)
    : config_(config),
      fragment_{config.volume.fragment[0], config.volume.fragment[1], config.volume.fragment[2]},
      files_(networks::volume_networks(config.volume.networks)) {
  refuse_settings_of_slides(config);
  const std::vector<std::int64_t>& grid = config.volume.grid;
  const auto fragments = static_cast<std::size_t>(grid[0] * grid[1] * grid[2]);
  if (files_.size() != 1 && files_.size() != fragments) {
    throw ConfigError(config.volume.networks + ": " + std::to_string(files_.size()) +
                      " networks; volume.grid = " + to_toml_value(find_key("volume", "grid")->get(config)) +
                      " wants one, or one for each of " + std::to_string(fragments) + " fragments");
  }
  for (const std::string& file : files_) networks::check_network_files(file);
  runtime_ = networks::OnnxRuntime::load(config.model.runtime);
  find_gpus();
  measure();
}

void VolumeNetworks::find_gpus() {
  networks::NetworkPlaces places = networks::places_for(config_, *runtime_);
  if (places.gpus.empty() && config_.pipeline.backend == Backend::cuda) {
    throw ConfigError(
        "pipeline.backend = \"cuda\": " + (places.why_none.empty() ? "model.provider is \"cpu\"" : places.why_none) +
        "; use \"auto\" or \"cpu\"");
  }
  gpus_ = std::move(places.gpus);
  for (Place& place : gpus_) place.keeps_memory = false;
}

std::string VolumeNetworks::description() const {
  const std::string text = networks::computed_on(*runtime_, !gpus_.empty());
  return gpus_.size() > 1 ? text + " on " + std::to_string(gpus_.size()) + " GPUs" : text;
}

std::shared_ptr<const OnnxSession> VolumeNetworks::open(std::size_t network, std::size_t place) const {
  try {
    return try_to_open(network, place);
  } catch (const std::bad_alloc&) {
    throw ConfigError(of_file(files_[network], "there is no memory to load it"));
  } catch (const runtime::DeviceFullError& error) {
    throw ConfigError(error.what());
  }
}

std::shared_ptr<const OnnxSession> VolumeNetworks::try_to_open(std::size_t network, std::size_t place) const {
  const std::string& file = files_[network];
  if (gpus_.empty()) return std::make_shared<const OnnxSession>(runtime_, file, host_place(), chooser(config_.model));
  try {
    return std::make_shared<const OnnxSession>(runtime_, file, gpus_[place], chooser(config_.model));
  } catch (const std::bad_alloc&) {
    throw runtime::DeviceFullError(of_file(file, "there is no memory to load it"));
  } catch (const ConfigError& error) {
    if (!networks::says_gpu_is_full(error.what())) throw;
    throw runtime::DeviceFullError(error.what());
  }
}

/// What the first network takes; what it gives as far as its file says it.
void VolumeNetworks::find_shapes(const OnnxSession& session) {
  const std::string& file = files_.front();
  const OnnxTensor& input = session.input();
  takes_ = input.text();
  gives_ = session.output().text();
  input_type_ = input.type;
  output_type_ = session.output().type;
  const std::string expected = "; expected 1 x 1 x " + std::to_string(fragment_[0]) + " x " +
                               std::to_string(fragment_[1]) + " x " + std::to_string(fragment_[2]) +
                               " of float32 or float16, by volume.fragment";
  input_shape_ = {1, 1, fragment_[0], fragment_[1], fragment_[2]};
  bool fits = is_real(input.type) && input.shape.size() == dimensions;
  for (std::size_t i = 0; fits && i < dimensions; ++i) fits = input.shape[i] < 0 || input.shape[i] == input_shape_[i];
  if (!fits) throw ConfigError(of_file(file, "it takes " + takes_ + expected));
}

/// What it gave for a fragment, by `output_shape_`, with the settings.
void VolumeNetworks::find_output() {
  const std::string& file = files_.front();
  const bool whole = networks::onnx::is_whole(output_type_);
  const std::string gives = "it gives " + OnnxTensor{"", output_type_, output_shape_}.text();
  if (!whole && !is_real(output_type_))
    throw ConfigError(of_file(file, gives + "; expected " + networks::onnx::given_types));
  std::vector<std::int64_t> shape = output_shape_;
  if (shape.size() == dimensions - 1) shape.insert(shape.begin() + 1, 1);
  const bool fits = shape.size() == dimensions && shape[0] == 1 && shape[1] >= 1 &&
                    std::equal(shape.begin() + 2, shape.end(), fragment_.begin());
  if (!fits) throw ConfigError(of_file(file, gives + "; expected 1 x channels x the fragment, or 1 x the fragment"));
  if (shape[1] > most_labels) throw ConfigError(of_file(file, gives + "; expected at most 65,535 channels"));
  const ModelConfig& model = config_.model;
  const VolumeFusion fusion = config_.volume.fusion;
  if (fusion == VolumeFusion::blend && !config_.volume.spacing.empty()) {
    throw ConfigError("volume.spacing is " + to_toml_value(find_key("volume", "spacing")->get(config_)) +
                      "; only labels are resampled back, and volume.fusion = \"blend\" gives an image");
  }
  output_.channels = static_cast<int>(shape[1]);
  output_.labels = fusion == VolumeFusion::vote && output_.channels == 1;
  if (whole && !output_.labels) {
    throw ConfigError(
        of_file(file, gives + "; whole numbers are labels, which volume.fusion = \"vote\" takes, one channel of them"));
  }
  if (fusion == VolumeFusion::mean && output_.channels < 2) {
    throw ConfigError(of_file(file, gives + "; volume.fusion = \"mean\" wants two channels or more, one per class"));
  }
  if (fusion == VolumeFusion::blend && output_.channels != 1) {
    throw ConfigError(of_file(file, gives + "; volume.fusion = \"blend\" wants an image of one channel"));
  }
  const bool narrow_type =
      output_type_ == ElementType::uint8 || output_type_ == ElementType::int8 || output_type_ == ElementType::boolean;
  const bool narrow = output_.labels ? narrow_type : output_.channels <= 256;
  sample_ = fusion == VolumeFusion::blend ? ScalarType::float32 : narrow ? ScalarType::uint8 : ScalarType::uint16;
  if (fusion != VolumeFusion::blend && model.sample == ModelSample::uint16) sample_ = ScalarType::uint16;
  if (fusion != VolumeFusion::blend && model.sample == ModelSample::uint8) {
    if (!output_.labels && !narrow) throw ConfigError(of_file(file, "model.sample is \"uint8\", and " + gives));
    sample_ = ScalarType::uint8;
  }
  const int largest = sample_ == ScalarType::uint8 ? 255 : most_labels;
  check_scores(config_);
  output_.most_label = output_.labels ? largest : output_.channels - 1;
  // Every class votes unless one is named.
  const int by_default = output_.labels ? largest : output_.channels;
  output_.ignore = model.ignore == 0 ? by_default : model.ignore;
  if (model.ignore > largest) {
    throw ConfigError("model.ignore is " + std::to_string(model.ignore) + "; expected at most " +
                      std::to_string(largest));
  }
  output_.activation = model.activation == ModelActivation::softmax   ? NetworkActivation::softmax
                       : model.activation == ModelActivation::sigmoid ? NetworkActivation::sigmoid
                                                                      : NetworkActivation::none;
  const bool has_range = model.range != std::array<double, 2>{0.0, 0.0};
  output_.low = has_range ? static_cast<float>(model.range[0]) : 0.0F;
  output_.high = has_range ? static_cast<float>(model.range[1]) : 1.0F;
}

void VolumeNetworks::measure() {
  if (!gpus_.empty()) find_gpu_memory();
  std::map<std::string, NetworkNeeds> by_graph;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const auto graph = networks::graph_of_network(files_[i]);
    const auto known = graph ? by_graph.find(*graph) : by_graph.end();
    needs_.push_back(known != by_graph.end() ? known->second : gpus_.empty() ? measured(i) : measured_on_gpu(i));
    if (graph) by_graph.try_emplace(*graph, needs_.back());
  }
}

/// What a network gives for a fragment of zeros. \param to  where it is put; null: the library finds memory
OnnxSession::Value VolumeNetworks::run_zeros(std::size_t network, const OnnxSession& session,
                                             const networks::DeviceScores* to) const {
  const std::string& file = files_[network];
  const ElementType type = session.input().type;
  std::vector<std::byte> zeros(count_of(input_shape_) * networks::onnx::bytes_of(type));
  const auto input = session.tensor(zeros.data(), zeros.size(), input_shape_, type);
  const OnnxSession::Terminator run = session.terminator();
  OnnxSession::Value given;
  if (to != nullptr) given = session.tensor(to->given(), to->given_bytes(), output_shape_, output_type_, true);
  const networks::TimeLimit limit(config_.input.max_seconds, [&] { session.terminate(run, true); });
  try {
    session.run(input, given, run);
  } catch (const Error& error) {
    throw ConfigError(of_file(
        file, std::string("it fails on a fragment of zeros: ") + (limit.is_over() ? limit.text() : error.what())));
  }
  return given;
}

NetworkNeeds VolumeNetworks::measured(std::size_t network) {
  NetworkNeeds needs;
  try {
    const MemoryMeter of_load;
    const auto session = open(network);
    needs.loaded = std::max(of_load.kept(), networks::bytes_of_network(files_[network]));
    if (network == 0) {
      find_shapes(*session);
    } else {
      check_like_first(network, *session);
    }
    const MemoryMeter of_run;
    const OnnxSession::Value given = run_zeros(network, *session);
    needs.run = of_run.most();
    if (network == 0) {
      output_shape_ = session->shape_of(given);
      find_output();
    }
  } catch (const std::bad_alloc&) {
    throw ConfigError(of_file(files_[network], "there is no memory for a fragment; lower volume.fragment"));
  }
  needs.run += bytes_on_the_way();
  return {reserved_for(needs.loaded), reserved_for(needs.run)};
}

/// Bytes of a GPU that may be taken now.
std::uint64_t VolumeNetworks::free_part(std::size_t place) const {
  const auto free = static_cast<double>(networks::free_memory(gpus_[place].gpu));
  return static_cast<std::uint64_t>(free * config_.gpu.memory_fraction);
}

/// Has each GPU compute with the first network, so that what the libraries take there once isn't counted later. It
/// takes seconds, so GPUs do it at the same time.
void VolumeNetworks::find_gpu_memory() {
  std::vector<std::shared_ptr<const OnnxSession>> sessions(gpus_.size());
  const auto compute = [&](std::size_t place) {
    OnnxSession::Value given = run_zeros(0, *sessions[place]);
    if (place == 0) {
      output_shape_ = sessions[place]->shape_of(given);
      find_output();
    }
    given = {};
    sessions[place].reset();
    gpus_[place].memory = static_cast<std::size_t>(free_part(place));
  };
  try {
    on_each(gpus_.size(), [&](std::size_t place) {
      gpus_[place].memory = static_cast<std::size_t>(free_part(place));
      sessions[place] = open(0, place);
    });
    find_shapes(*sessions.front());
    on_each(gpus_.size(), compute);
  } catch (const std::bad_alloc&) {
    throw ConfigError(of_file(files_.front(), "there is no memory for a fragment; lower volume.fragment"));
  }
  for (const Place& gpu : gpus_) gpu_memory_.budgets.push_back(gpu.memory);
  // On the host the library's own values are part of what it takes.
  beside_gpu_ = bytes_on_the_way();
  if (!chooses_on_gpu()) beside_gpu_ += count_of(output_shape_) * networks::onnx::bytes_of(output_type_);
  beside_gpu_ += beside_gpu_ / margin_divisor;
  kept_.resize(gpus_.size());
  if (!chooses_on_gpu()) return;
  const std::uint64_t scores = fragments_at_a_time(config_, *this) * scores_size().device_bytes();
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    gpu_memory_.budgets[i] -= std::min(gpu_memory_.budgets[i], scores);
    gpus_[i].memory = static_cast<std::size_t>(gpu_memory_.budgets[i]);
  }
}

/// On the first of the GPUs; the others are taken to be like it. A network's memory stays taken, as much as fragments
/// wanted at a time.
NetworkNeeds VolumeNetworks::measured_on_gpu(std::size_t network) {
  first_.reset();
  const int gpu = gpus_.front().gpu;
  const auto scores = chooses_on_gpu() ? networks::make_device_scores(scores_size(), gpu) : nullptr;
  const std::uint64_t before = networks::free_memory(gpu);
  const auto taken = [&] {
    const std::uint64_t now = networks::free_memory(gpu);
    return before > now ? before - now : 0;
  };
  if (network == 0) first_state_ = networks::state_of_network(files_.front());
  const auto session = open(network);
  check_like_first(network, *session);
  const std::uint64_t loaded = std::max(taken(), networks::bytes_of_network(files_[network]));
  const OnnxSession::Value given = run_zeros(network, *session, scores.get());
  const std::uint64_t run = std::max(taken(), loaded) - loaded;
  const auto with_runs = [&](std::size_t runs) { return reserved_for(loaded + runs * run); };
  if (network == 0) {
    // Of one network two fragments are computed at a time, of several one of each.
    gpu_memory_.runs = files_.size() == 1 && with_runs(2) <= std::ranges::min(gpu_memory_.budgets) ? 2 : 1;
    for (Place& place : gpus_) place.runs = static_cast<int>(gpu_memory_.runs);
    first_ = session;
  }
  return {with_runs(gpu_memory_.runs), 0};
}

/// Whether scores stay on the GPU, which has a voxel's label: the largest one's channel.
bool VolumeNetworks::chooses_on_gpu() const noexcept {
  return !gpus_.empty() && config_.volume.fusion == VolumeFusion::vote && !output_.labels;
}

networks::ScoresSize VolumeNetworks::scores_size() const noexcept {
  return {static_cast<std::size_t>(output_.channels), static_cast<std::size_t>(volume::count_of(fragment_)),
          output_type_ == ElementType::float16};
}

/// Of a fragment on the host: samples and values as float32, both as the network has them, and what fusion makes of
/// them.
std::uint64_t VolumeNetworks::bytes_on_the_way() const noexcept {
  const auto voxels = static_cast<std::uint64_t>(volume::count_of(fragment_));
  const std::uint64_t values = voxels * static_cast<std::uint64_t>(output_.channels);
  const bool maps = config_.volume.fusion != VolumeFusion::vote;
  std::uint64_t bytes = voxels * sizeof(float) + (maps ? values * sizeof(std::uint16_t) : 0);
  if (input_type_ != ElementType::float32) bytes += voxels * networks::onnx::bytes_of(input_type_);
  if (chooses_on_gpu()) return bytes + voxels * sizeof(std::uint16_t);
  if (output_type_ != ElementType::float32) bytes += values * sizeof(float);
  return bytes;
}

void VolumeNetworks::check_like_first(std::size_t network, const OnnxSession& session) const {
  const std::string takes = session.input().text();
  const std::string gives = session.output().text();
  if (takes != takes_ || gives != gives_) {
    throw ConfigError(of_file(files_[network], "it takes " + takes + " and gives " + gives + "; expected " + takes_ +
                                                   " and " + gives_ + ", as of " + files_.front()));
  }
}

std::shared_ptr<const LoadedNetwork> VolumeNetworks::load(std::size_t network, std::size_t place) const {
  std::shared_ptr<const OnnxSession> session;
  if (network == 0 && place == 0) {
    const std::lock_guard lock(mutex_);
    session = std::move(first_);
    // It was loaded before the run's settings told what its files hold.
    if (session != nullptr && networks::state_of_network(files_.front()) != first_state_) session.reset();
  }
  if (session == nullptr) {
    session = gpus_.empty() ? open(network) : try_to_open(network, place);
    check_like_first(network, *session);
  }
  return std::make_shared<const LoadedNetwork>(std::move(session), input_shape_, output_shape_);
}

bool VolumeNetworks::has_room(std::size_t place) const {
  std::uint64_t most = 0;
  for (const NetworkNeeds& needs : needs_) most = std::max(most, needs.loaded + needs.run);
  if (chooses_on_gpu()) most += scores_size().device_bytes();
  return most <= free_part(place);
}

FragmentMemory VolumeNetworks::take_memory(std::size_t place) const {
  if (!gpus_.empty()) {
    const std::lock_guard lock(mutex_);
    std::vector<FragmentMemory>& kept = kept_[place];
    if (!kept.empty()) {
      FragmentMemory memory = std::move(kept.back());
      kept.pop_back();
      return memory;
    }
  }
  const auto voxels = static_cast<std::size_t>(volume::count_of(fragment_));
  const auto allocate = [this](std::size_t numbers) {
    const std::size_t bytes = numbers * sizeof(float);
    return gpus_.empty() ? runtime::shared_host_bytes(bytes) : networks::pinned_memory(bytes, gpus_.front().gpu);
  };
  FragmentMemory memory;
  memory.fragment_bytes = allocate(voxels);
  memory.fragment = {reinterpret_cast<float*>(memory.fragment_bytes.get()), voxels};
  if (chooses_on_gpu()) {
    memory.scores = networks::make_device_scores(scores_size(), gpus_[place].gpu);
  } else {
    const std::size_t values = voxels * static_cast<std::size_t>(output_.channels);
    memory.value_bytes = allocate(values);
    memory.values = {reinterpret_cast<float*>(memory.value_bytes.get()), values};
  }
  return memory;
}

void VolumeNetworks::give_back(FragmentMemory memory, std::size_t place) const {
  if (gpus_.empty()) return;
  const std::lock_guard lock(mutex_);
  kept_[place].push_back(std::move(memory));
}

void VolumeNetworks::drop_memory(std::size_t place) const {
  if (gpus_.empty()) return;
  const std::lock_guard lock(mutex_);
  kept_[place].clear();
  if (place == 0) first_.reset();
}

}  // namespace slidestream::volume
