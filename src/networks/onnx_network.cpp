#include "networks/onnx_network.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <slidestream/error.hpp>
#include <span>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "config/keys.hpp"
#include "config/toml_text.hpp"
#include "networks/network_gpus.hpp"
#include "networks/network_shapes.hpp"
#include "networks/normalisation.hpp"
#include "networks/onnx_files.hpp"
#include "networks/onnx_session.hpp"
#include "networks/tile_planes.hpp"
#include "runtime/machine.hpp"

namespace slidestream::networks {
namespace {

int sessions_of(const Config& config, bool on_gpus) {
  if (config.model.sessions > 0) return config.model.sessions;
  if (on_gpus) return usual_sessions;
  return config.pipeline.threads > 0 ? config.pipeline.threads : runtime::available_processors();
}

std::size_t count_of(const std::vector<std::int64_t>& shape) {
  std::size_t count = 1;
  for (const std::int64_t side : shape) count *= static_cast<std::size_t>(side);
  return count;
}

class Session final : public NetworkSession {
 public:
  Session(std::shared_ptr<const OnnxSession> session, const Shapes& shapes,
          const std::shared_ptr<const Normalisation>& normalisation, std::string file)
      : session_(std::move(session)),
        file_(std::move(file)),
        samples_(count_of(shapes.input_shape)),
        values_(count_of(shapes.output_shape)),
        terminator_(session_->terminator()) {
    const OnnxTensor& input = session_->input();
    const OnnxTensor& output = session_->output();
    const PlanesSize size = {static_cast<std::size_t>(shapes.tiles.side) * shapes.tiles.side,
                             static_cast<std::size_t>(shapes.tiles.batch),
                             input.type == onnx::ElementType::float16,
                             values_,
                             output.type == onnx::ElementType::float16,
                             onnx::is_whole(output.type) ? output.type : onnx::ElementType::undefined};
    const int gpu = session_->place().gpu;
    planes_ = gpu < 0 ? make_host_planes(normalisation, size) : make_device_planes(*normalisation, size, gpu);
    input_ = session_->tensor(planes_->data(), planes_->bytes(), shapes.input_shape, input.type, gpu >= 0);
    output_ = session_->tensor(planes_->given(), planes_->given_bytes(), shapes.output_shape, output.type, gpu >= 0);
  }

  void run(std::span<const std::uint8_t> pixels, std::span<float> values) override {
    if (pixels.size() != samples_ || values.size() != values_) {
      throw Error("internal: a batch of " + std::to_string(pixels.size()) + " samples and " +
                  std::to_string(values.size()) + " values; the network has " + std::to_string(samples_) + " and " +
                  std::to_string(values_));
    }
    try {
      planes_->put(pixels);
      session_->run(input_, output_, terminator_);
      planes_->take(values);
    } catch (const Error& error) {
      throw SlideError(of_file(file_, std::string("it fails on a batch: ") + error.what()));
    }
  }

  void interrupt(bool now) noexcept override { session_->terminate(terminator_, now); }

 private:
  std::shared_ptr<const OnnxSession> session_;
  std::string file_;
  std::size_t samples_;
  std::size_t values_;
  std::unique_ptr<TilePlanes> planes_;
  OnnxSession::Terminator terminator_;
  OnnxSession::Value input_;
  OnnxSession::Value output_;
};

class OnnxNetwork final : public Network {
 public:
  OnnxNetwork(const Config& config, NetworkRole role, std::shared_ptr<const OnnxRuntime> runtime)
      : file_(config.model.file),
        role_(role),
        runtime_(std::move(runtime)),
        gpus_(places_for(config, *runtime_).gpus),
        choose_([model = config.model](const auto& outputs) { return choose_output(outputs, model); }),
        first_(std::make_shared<OnnxSession>(runtime_, file_, gpus_.empty() ? Place{} : gpus_.front(), choose_)),
        shapes_(find_shapes(*first_, config, role == NetworkRole::tissue ? 1 : usual_batch)),
        normalisation_(std::make_shared<Normalisation>(config.model)),
        sessions_(sessions_of(config, !gpus_.empty())),
        max_seconds_(config.input.max_seconds),
        settings_(in_effect(config)) {}

  NetworkTiles tiles() const override { return shapes_.tiles; }
  NetworkOutput output() const override { return shapes_.output; }
  std::string description() const override { return computed_on(*runtime_, !gpus_.empty()); }
  std::vector<std::pair<std::string, std::string>> settings() const override { return settings_; }
  std::string called() const override {
    return role_ == NetworkRole::tissue ? "the network that finds tissue" : Network::called();
  }
  std::string setting_name(const std::string& key) const override {
    if (role_ == NetworkRole::model || key.find('.') != std::string::npos) return Network::setting_name(key);
    return key + " in " + std::filesystem::path(file_).replace_extension(".toml").filename().string();
  }

  int sessions() const override { return sessions_; }

  std::unique_ptr<NetworkSession> session(int gpu) const override {
    try {
      return std::make_unique<Session>(loaded_for(gpu), shapes_, normalisation_, file_);
    } catch (const std::bad_alloc&) {
      throw ConfigError(of_file(file_, "there is no memory for a session with batches of " +
                                           std::to_string(shapes_.tiles.batch) + " tiles, " + mib_text(batch_bytes()) +
                                           "; lower model.batch or model.sessions"));
    }
  }

  NetworkMemory memory() const override {
    NetworkMemory memory = {0, batch_bytes()};
    for (const Place& place : gpus_) memory.device = std::max<std::uint64_t>(memory.device, place.memory);
    if (!gpus_.empty()) return memory;
    memory.weights = bytes_of_network(file_);
    // One more, which hasn't taken anything yet: what it takes it keeps.
    const auto fresh = std::make_shared<const OnnxSession>(runtime_, file_, Place{}, choose_);
    Session session(fresh, shapes_, normalisation_, file_);
    const std::vector<std::uint8_t> black(count_of(shapes_.input_shape));
    std::vector<float> values(count_of(shapes_.output_shape));
    const std::size_t before = runtime::resident_bytes();
    const TimeLimit limit(max_seconds_, [&] { session.interrupt(true); });
    try {
      session.run(black, values);
    } catch (const SlideError& error) {
      throw SlideError(limit.is_over() ? of_file(file_, limit.text()) : error.what());
    }
    const std::size_t after = runtime::resident_bytes();
    if (after > before) memory.session += after - before;
    return memory;
  }

  std::shared_ptr<std::byte[]> allocate(std::size_t bytes) const override {
    return gpus_.empty() ? Network::allocate(bytes) : pinned_memory(bytes, gpus_.front().gpu);
  }

 private:
  /// The settings of `[model]` with what the file beside the network, its shapes and defaults say where they are open.
  std::vector<std::pair<std::string, std::string>> in_effect(const Config& config) const {
    Config whole = config;
    ModelConfig& model = whole.model;
    model.tile = shapes_.tiles.side;
    model.overlap = shapes_.tiles.overlap;
    model.batch = shapes_.tiles.batch;
    if (model.mean.empty()) model.mean = {0.0, 0.0, 0.0};
    if (model.deviation.empty()) model.deviation = {1.0, 1.0, 1.0};
    if (model.scale == 0.0) model.scale = 1.0;
    const NetworkOutput::Kind kind = shapes_.output.kind;
    model.output = kind == NetworkOutput::Kind::image     ? ModelOutput::image
                   : kind == NetworkOutput::Kind::classes ? ModelOutput::classes
                   : kind == NetworkOutput::Kind::labels  ? ModelOutput::labels
                                                          : ModelOutput::vector;
    model.output_name = first_->output().name;
    model.mpp_tolerance = shapes_.tiles.mpp_tolerance;
    model.range = {shapes_.output.low, shapes_.output.high};
    if (model.sample == ModelSample::automatic) model.sample = ModelSample::uint8;
    if (model.activation == ModelActivation::automatic) model.activation = ModelActivation::none;
    model.ignore = shapes_.output.ignore;
    if (model.tissue_share < 0.0) model.tissue_share = 0.0;
    if (model.where == ModelWhere::automatic) model.where = ModelWhere::all;
    if (model.batches == ModelBatches::automatic) model.batches = ModelBatches::slide;
    std::vector<std::pair<std::string, std::string>> settings;
    for (const ConfigKey& key : config_keys()) {
      if (key.section != "model" || key.is_path || key.of_machine) continue;
      settings.emplace_back(key.full_name(), to_toml_value(key.get(whole)));
    }
    settings.emplace_back("network", to_toml_value(std::filesystem::path(file_).filename().string()));
    settings.emplace_back("network's content", content_of_network(file_));
    settings.emplace_back("runtime", to_toml_value(description()));
    return settings;
  }

  /// Of a batch, as the network takes and gives it.
  std::size_t batch_bytes() const {
    const auto bytes_of = [](const std::vector<std::int64_t>& shape, onnx::ElementType type) {
      return count_of(shape) * onnx::bytes_of(type);
    };
    return bytes_of(shapes_.input_shape, first_->input().type) + bytes_of(shapes_.output_shape, first_->output().type);
  }

  /// Those on one device share it, weights and all.
  std::shared_ptr<const OnnxSession> loaded_for(int gpu) const {
    if (gpus_.empty()) return first_;
    const std::lock_guard lock(mutex_);
    auto place = std::ranges::find(gpus_, gpu, &Place::gpu);
    if (gpu < 0) place = gpus_.begin() + static_cast<std::ptrdiff_t>(made_++ % gpus_.size());
    if (place == gpus_.end()) throw Error("internal: the network doesn't run on GPU " + std::to_string(gpu));
    if (place == gpus_.begin()) return first_;
    std::shared_ptr<const OnnxSession>& loaded = others_[place->gpu];
    if (!loaded) loaded = std::make_shared<OnnxSession>(runtime_, file_, *place, choose_);
    return loaded;
  }

  std::string file_;
  NetworkRole role_;
  std::shared_ptr<const OnnxRuntime> runtime_;
  std::vector<Place> gpus_;
  OnnxSession::ChooseOutput choose_;
  std::shared_ptr<const OnnxSession> first_;
  Shapes shapes_;
  std::shared_ptr<const Normalisation> normalisation_;
  int sessions_;
  int max_seconds_;
  std::vector<std::pair<std::string, std::string>> settings_;
  mutable std::mutex mutex_;
  mutable std::size_t made_ = 0;                                      ///< guarded by mutex_
  mutable std::map<int, std::shared_ptr<const OnnxSession>> others_;  ///< by GPU; guarded by mutex_
};

/// Settings, and what the system says of the files: the same again is the same network. Taken before they are read, so
/// that what is written meanwhile is seen the next time.
std::string key_of(const Config& config) {
  std::string text;
  for (const ConfigKey& key : config_keys()) {
    if (key.section == "model" || key.section == "gpu" || key.full_name() == "pipeline.backend") {
      text += to_toml_value(key.get(config)) + '\n';
    }
  }
  const NetworkState state = state_of_network(config.model.file);
  return text + state.written + state.changed;
}

}  // namespace

std::shared_ptr<const Network> open_network(const Config& config, NetworkRole role) {
  // Never given back at the end of the program: what the library needs for that may be gone before.
  using Kept = std::pair<std::string, std::shared_ptr<const Network>>;
  static std::mutex mutex;
  static std::array<Kept, 2>& of_roles = *new std::array<Kept, 2>;
  check_network_files(config.model.file);
  const std::string key = key_of(config);
  const std::lock_guard lock(mutex);
  Kept& kept = of_roles.at(static_cast<std::size_t>(role));
  if (kept.second && kept.first == key) return kept.second;
  kept.second.reset();
  try {
    kept = {key, std::make_shared<OnnxNetwork>(config, role, OnnxRuntime::load(config.model.runtime))};
  } catch (const std::bad_alloc&) {
    throw ConfigError(of_file(config.model.file, "there is no memory to load it"));
  }
  return kept.second;
}

std::string computed_by(const Config& config) {
  const auto runtime = OnnxRuntime::load(config.model.runtime);
  return computed_on(*runtime, !places_for(config, *runtime).gpus.empty());
}

}  // namespace slidestream::networks
