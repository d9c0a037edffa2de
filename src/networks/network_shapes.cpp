#include "networks/network_shapes.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <new>
#include <optional>
#include <slidestream/error.hpp>
#include <string_view>
#include <utility>

#include "config/keys.hpp"
#include "config/toml_text.hpp"

namespace slidestream::networks {

/// "m.onnx: what"
std::string of_file(const std::string& file, const std::string& what) { return file + ": " + what; }

/// Bytes as people read them.
std::string mib_text(std::size_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB"; }

std::string mib_left_text(std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

namespace {

/// Finds it from settings and a network's own shapes. \throws ConfigError that begins with the file.
class ShapeFinder : private Shapes {
 public:
  ShapeFinder(const OnnxSession& session, const Config& config, int open_batch)
      : file_(config.model.file), config_(config), model_(config.model), session_(session), open_batch_(open_batch) {
    check_type(session.input(), "takes", "float32 or float16");
    if (!onnx::is_whole(session.output().type)) check_type(session.output(), "gives", onnx::given_types);
    find_tiles();
    find_output();
  }

  const Shapes& shapes() const noexcept { return *this; }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw ConfigError(of_file(file_, what)); }

  void check_type(const OnnxTensor& tensor, const std::string& does, const std::string& expected) const {
    if (tensor.type == onnx::ElementType::float32 || tensor.type == onnx::ElementType::float16) return;
    fail("it " + does + " " + tensor.text() + "; expected " + expected);
  }

  /// "model.tile is 96", and where the file beside the network says so, "model.tile is 96 in m.toml".
  std::string setting(std::string_view name) const {
    const ConfigKey& key = *find_key("model", name);
    const ConfigValue value = key.get(config_);
    Config beside;
    beside.operators.run = {"model"};
    beside.model.file = file_;
    read_model_file(beside);
    const bool is_there = key.get(beside) == value && value != key.get(Config{});
    return key.full_name() + " is " + to_toml_value(value) +
           (is_there ? " in " + std::filesystem::path(file_).replace_extension(".toml").filename().string() : "");
  }

  /// `set` where that isn't 0, else what the shape says, else `otherwise`.
  int number(std::string_view key, int set, std::int64_t own, int otherwise) const {
    constexpr int most = 1 << 20;
    const std::string takes = "it takes " + session_.input().text();
    if (own > most) fail(takes + "; expected " + std::string(key) + " to be at most " + std::to_string(most));
    if (set == 0) return own > 0 ? static_cast<int>(own) : otherwise;
    if (own > 0 && own != set) fail(setting(key) + ", and " + takes);
    return set;
  }

  void find_tiles() {
    const std::vector<std::int64_t>& shape = session_.input().shape;
    const std::string takes = "it takes " + session_.input().text();
    if (shape.size() != 4 || (shape[1] >= 0 && shape[1] != 3)) {
      fail(takes + "; expected tiles x 3 x height x width of float32 or float16");
    }
    if (shape[2] >= 0 && shape[3] >= 0 && shape[2] != shape[3]) fail(takes + "; expected square tiles");
    tiles.side = number("tile", model_.tile, std::max(shape[2], shape[3]), 0);
    if (tiles.side <= 0) fail("it takes tiles of any size: set model.tile");
    tiles.batch = number("batch", model_.batch, shape[0], open_batch_);
    tiles.overlap = std::max(model_.overlap, 0);
    if (tiles.overlap > tiles.side / 2) {
      fail(setting("overlap") + "; expected at most half of its tiles' side, " + std::to_string(tiles.side / 2));
    }
    if (model_.mpp > 0.0) tiles.mpp = model_.mpp;
    if (model_.mpp_tolerance >= 0.0) tiles.mpp_tolerance = model_.mpp_tolerance;
    tiles.tissue_only = model_.where == ModelWhere::tissue;
    tiles.tissue_share = std::max(model_.tissue_share, 0.0);
    tiles.mixed = model_.batches == ModelBatches::mixed;
    input_shape = {tiles.batch, 3, tiles.side, tiles.side};
  }

  /// The shape of what it gives for a batch; where its file leaves that open, a batch of zeros tells.
  std::vector<std::int64_t> find_output_shape() const {
    std::vector<std::int64_t> shape = session_.output().shape;
    if (!shape.empty() && shape[0] < 0) shape[0] = tiles.batch;
    // Of one whose number of dimensions isn't known the library says that there are none.
    const bool known = std::ranges::all_of(shape, [](std::int64_t side) { return side >= 0; });
    if (known && !shape.empty()) return shape;
    const std::size_t values = static_cast<std::size_t>(tiles.batch) * 3 * tiles.side * tiles.side;
    const onnx::ElementType type = session_.input().type;
    const std::size_t bytes = values * (type == onnx::ElementType::float16 ? 2 : 4);
    const std::string batch = "a batch of " + std::to_string(tiles.batch) + " black tiles, " + mib_text(bytes);
    const OnnxSession::Terminator runs = session_.terminator();
    const TimeLimit limit(config_.input.max_seconds, [&] { session_.terminate(runs, true); });
    try {
      std::vector<std::byte> zeros(bytes);
      const auto input = session_.tensor(zeros.data(), bytes, input_shape, type);
      OnnxSession::Value given;
      session_.run(input, given, runs);
      return session_.shape_of(given);
    } catch (const Error& error) {
      fail("it fails on " + batch + ": " + (limit.is_over() ? limit.text() : error.what()));
    } catch (const std::bad_alloc&) {
      fail("there is no memory for " + batch + "; lower model.batch");
    }
  }

  void find_output() {
    output_shape = find_output_shape();
    const std::string gives = "it gives " + OnnxTensor{"", session_.output().type, output_shape}.text();
    const bool planes = output_shape.size() == 4;
    const bool whole = onnx::is_whole(session_.output().type);
    if (model_.output == ModelOutput::labels || (model_.output == ModelOutput::automatic && whole)) {
      return find_labels(gives);
    }
    if (whole) {
      fail(setting("output") + ", and " + gives +
           (has_shape_of_labels() ? "; whole numbers are labels: set model.output to \"labels\"" : floats_expected));
    }
    if (!planes && output_shape.size() != 2) {
      fail(gives + "; expected tiles x entries or tiles x channels x height x width");
    }
    if (output_shape[0] != tiles.batch) fail(gives + " for " + std::to_string(tiles.batch) + " tiles");
    const bool vector = model_.output == ModelOutput::vector || (model_.output == ModelOutput::automatic && !planes);
    if (output_shape[1] < 1 || output_shape[1] > 1 << 20) fail(gives);
    output.channels = static_cast<int>(output_shape[1]);
    if (vector) {
      output.kind = NetworkOutput::Kind::vector;
      if (model_.activation != ModelActivation::automatic && model_.activation != ModelActivation::none) {
        fail(setting("activation") + ", and " + gives + "; features have no activation");
      }
      if (planes && (output_shape[2] != 1 || output_shape[3] != 1)) {
        fail(setting("output") + ", and " + gives + "; expected tiles x entries");
      }
      return;
    }
    output.kind = model_.output == ModelOutput::classes ? NetworkOutput::Kind::classes : NetworkOutput::Kind::image;
    if (!planes) {
      fail(setting("output") + ", and " + gives + "; expected tiles x channels x height x width");
    }
    find_image(gives);
  }

  /// Without channels, or with one.
  bool has_shape_of_labels() const {
    return output_shape.size() == 3 || (output_shape.size() == 4 && output_shape[1] == 1);
  }

  void find_labels(const std::string& gives) {
    if (!has_shape_of_labels()) {
      fail(gives + "; expected labels as tiles x height x width, or tiles x 1 x height x width" +
           (onnx::is_whole(session_.output().type) ? floats_expected : ""));
    }
    if (output_shape[0] != tiles.batch) fail(gives + " for " + std::to_string(tiles.batch) + " tiles");
    if (model_.activation != ModelActivation::automatic && model_.activation != ModelActivation::none) {
      fail(setting("activation") + "; labels have no activation");
    }
    if (model_.range != std::array<double, 2>{0.0, 0.0}) fail(setting("range") + "; labels have no range");
    output.kind = NetworkOutput::Kind::labels;
    output.channels = 1;
    find_side(output_shape.back(), output_shape[output_shape.size() - 2], gives);
    const bool wide = model_.sample == ModelSample::uint16;
    output.sample = wide ? SampleType::uint16 : SampleType::uint8;
    output.ignore = model_.ignore == 0 ? 255 : model_.ignore;
    output.low = 0.0F;
    output.high = wide ? 65535.0F : 255.0F;
  }

  void find_image(const std::string& gives) {
    constexpr int most_channels = 16;
    if (output.channels > most_channels)
      fail(gives + "; expected at most " + std::to_string(most_channels) + " channels");
    find_side(output_shape[2], output_shape[3], gives);
    find_values();
  }

  void find_side(std::int64_t side, std::int64_t other, const std::string& gives) {
    if (side != other || side < 1 || tiles.side % side != 0) {
      fail(gives + "; expected squares whose side divides the tiles' " + std::to_string(tiles.side));
    }
    output.scale = static_cast<int>(tiles.side / side);
    if (tiles.overlap % output.scale != 0) {
      fail(setting("overlap") + ", and its output is " + std::to_string(output.scale) +
           " times as small; expected a multiple of that");
    }
  }

  void find_values() {
    output.sample = model_.sample == ModelSample::uint16 ? SampleType::uint16 : SampleType::uint8;
    output.activation = model_.activation == ModelActivation::softmax   ? NetworkActivation::softmax
                        : model_.activation == ModelActivation::sigmoid ? NetworkActivation::sigmoid
                                                                        : NetworkActivation::none;
    if (output.channels == 1 && output.activation == NetworkActivation::softmax) {
      fail("softmax over its one channel is always 1: set model.activation to \"sigmoid\"");
    }
    output.ignore = model_.ignore == 0 ? 255 : model_.ignore;
    const bool has_range = model_.range != std::array<double, 2>{0.0, 0.0};
    if (has_range && output.activation != NetworkActivation::none && model_.range != std::array<double, 2>{0.0, 1.0}) {
      fail(setting("range") + ", and " + setting("activation") +
           ", which gives values from 0 to 1; leave model.range out");
    }
    output.low = has_range ? static_cast<float>(model_.range[0]) : 0.0F;
    output.high = has_range ? static_cast<float>(model_.range[1]) : 1.0F;
  }

  /// Of an output whose shape no labels have.
  static constexpr const char* floats_expected =
      "; values of an image, of classes and of vectors must be float32 or float16: have the network cast them";

  const std::string& file_;
  const Config& config_;
  const ModelConfig& model_;
  const OnnxSession& session_;
  int open_batch_;
};

}  // namespace

namespace {

/// Whether an output's type and shape, as far as they are known, are what `model.output` wants.
bool fits(const OnnxTensor& output, ModelOutput wanted) {
  const bool whole = onnx::is_whole(output.type);
  const bool real = output.type == onnx::ElementType::float32 || output.type == onnx::ElementType::float16;
  const std::size_t sides = output.shape.size();
  const auto is_one = [&](std::size_t i) { return output.shape[i] < 0 || output.shape[i] == 1; };
  const bool labels = (whole || real) && (sides == 3 || (sides == 4 && is_one(1)));
  const bool vector = real && (sides == 2 || (sides == 4 && is_one(2) && is_one(3)));
  const bool image = real && sides == 4;
  if (sides == 0) return whole || real;
  switch (wanted) {
    case ModelOutput::automatic:
      return vector || image || (whole && labels);
    case ModelOutput::labels:
      return labels;
    case ModelOutput::vector:
      return vector;
    case ModelOutput::image:
    case ModelOutput::classes:
      return image;
  }
  return false;
}

}  // namespace

std::size_t choose_output(const std::vector<OnnxTensor>& outputs, const ModelConfig& model) {
  std::string list;
  std::vector<std::size_t> fitting;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!model.output_name.empty() && outputs[i].name == model.output_name) return i;
    if (fits(outputs[i], model.output)) fitting.push_back(i);
    list += (list.empty() ? "" : ", ") + outputs[i].name + " (" + outputs[i].text() + ")";
  }
  if (!model.output_name.empty()) {
    throw Error("model.output_name is " + to_toml_value(model.output_name) + ", and its outputs are " + list);
  }
  // Of one alone what doesn't fit is said later.
  if (outputs.size() == 1) return 0;
  if (fitting.size() == 1) return fitting.front();
  if (fitting.empty()) {
    throw Error("none of its " + std::to_string(outputs.size()) + " outputs fits model.output: " + list);
  }
  throw Error("it has " + std::to_string(outputs.size()) + " outputs, and " + std::to_string(fitting.size()) +
              " of them fit model.output; set model.output_name to one of: " + list);
}

Shapes find_shapes(const OnnxSession& session, const Config& config, int open_batch) {
  return ShapeFinder(session, config, open_batch).shapes();
}

}  // namespace slidestream::networks
