#include "networks/onnx_session.hpp"

#include <array>
#include <filesystem>
#include <slidestream/error.hpp>
#include <utility>
#include <vector>

#include "networks/onnx_files.hpp"

namespace slidestream::networks {
namespace {

using Options = OnnxHandle<onnx::SessionOptions, onnx::ReleaseSessionOptions>;

/// Algorithms are taken by shape, not by what was fastest this time; the arena grows by what is wanted.
void add_cuda(const std::shared_ptr<const OnnxRuntime>& runtime, const Options& options, int gpu, std::size_t memory,
              bool channels_last) {
  const auto cuda = make_onnx<onnx::CreateCudaOptions, onnx::CudaOptions, onnx::ReleaseCudaOptions>(runtime);
  const std::string device = std::to_string(gpu);
  const std::string limit = std::to_string(memory);
  // The last one only where it is wanted: not all versions know it.
  const std::array keys = {"device_id", "gpu_mem_limit", "cudnn_conv_algo_search", "arena_extend_strategy",
                           "use_tf32",  "prefer_nhwc"};
  const std::array values = {device.c_str(), limit.c_str(), "HEURISTIC", "kSameAsRequested", "0", "1"};
  runtime->call<onnx::UpdateCudaOptions>(cuda.get(), keys.data(), values.data(), keys.size() - (channels_last ? 0 : 1));
  runtime->call<onnx::AppendCudaProvider>(options.get(), cuda.get());
}

Options options_for(const std::shared_ptr<const OnnxRuntime>& runtime, const Place& place, bool channels_last) {
  auto options = make_onnx<onnx::CreateSessionOptions, onnx::SessionOptions, onnx::ReleaseSessionOptions>(runtime);
  // How sums are cut may depend on the number of threads: batches are what is parallel.
  runtime->call<onnx::SetIntraOpNumThreads>(options.get(), 1);
  runtime->call<onnx::SetInterOpNumThreads>(options.get(), 1);
  runtime->call<onnx::AddSessionConfigEntry>(options.get(), "session.intra_op.allow_spinning", "0");
  runtime->call<onnx::AddSessionConfigEntry>(options.get(), "session.inter_op.allow_spinning", "0");
  runtime->call<onnx::SetDeterministicCompute>(options.get(), true);
  if (!place.keeps_memory) runtime->call<onnx::DisableCpuMemArena>(options.get());
  if (place.gpu >= 0) add_cuda(runtime, options, place.gpu, place.memory, channels_last);
  return options;
}

/// One of those who may run a network at a time.
class Turn {
 public:
  explicit Turn(std::counting_semaphore<>& turns) : turns_(turns) { turns_.acquire(); }
  ~Turn() { turns_.release(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::counting_semaphore<>& turns_;
};

std::string type_name(onnx::ElementType type) {
  // As ONNX counts them.
  constexpr std::array names = {"undefined", "float32", "uint8",     "int8",       "uint16",  "int16",
                                "int32",     "int64",   "strings",   "bool",       "float16", "float64",
                                "uint32",    "uint64",  "complex64", "complex128", "bfloat16"};
  const auto number = static_cast<std::size_t>(type);
  return number < names.size() ? names[number] : "type " + std::to_string(number) + " of ONNX";
}

}  // namespace

std::string OnnxTensor::text() const {
  std::string text;
  for (const std::int64_t side : shape) text += (text.empty() ? "" : " x ") + (side < 0 ? "?" : std::to_string(side));
  return (text.empty() ? "a scalar, or anything," : text) + " of " + type_name(type);
}

OnnxSession::OnnxSession(std::shared_ptr<const OnnxRuntime> runtime, const std::string& file, const Place& place,
                         const ChooseOutput& choose)
    : runtime_(std::move(runtime)),
      place_(place),
      turns_(place.runs > 0 ? place.runs : std::counting_semaphore<>::max()) {
  try {
    load(file, false);
    constexpr int arena_allocator = 1;
    constexpr int default_memory = 0;
    host_ = make_onnx<onnx::CreateCpuMemoryInfo, onnx::MemoryInfo, onnx::ReleaseMemoryInfo>(runtime_, arena_allocator,
                                                                                            default_memory);
    if (place.gpu >= 0) {
      device_ = make_onnx<onnx::CreateMemoryInfo, onnx::MemoryInfo, onnx::ReleaseMemoryInfo>(
          runtime_, "Cuda", arena_allocator, place.gpu, default_memory);
    }
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& error) {
    throw ConfigError(file + ": ONNX Runtime " + runtime_->version() + " doesn't take it: " + error.what());
  }
  try {
    const std::size_t inputs = count_of(true);
    if (inputs != 1) throw Error("it has " + std::to_string(inputs) + " inputs; expected one, the tiles");
    input_ = tensor_of(true, 0);
    std::vector<OnnxTensor> outputs(count_of(false));
    if (outputs.empty()) throw Error("it has no output");
    for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = tensor_of(false, i);
    output_ = outputs.at(choose ? choose(outputs) : 0);
    // The library wouldn't write it where it was asked to.
    if (input_.name == output_.name)
      throw Error("what it gives, '" + input_.name + "', is what it takes: it computes nothing");
    if (place.gpu >= 0 && input_.type == onnx::ElementType::float16) load_channels_last(file);
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& error) {
    throw ConfigError(file + ": " + error.what());
  }
}

namespace {

/// Weights that lie in other files are read into memory: the library would map these, and compute with whatever
/// somebody writes to them, or end by a signal where they are cut short. It copies them while it makes the session.
void add_weights(const OnnxRuntime& runtime, const Options& options, std::vector<WeightFile>& files) {
  std::vector<const char*> names;
  std::vector<char*> buffers;
  std::vector<std::size_t> lengths;
  for (WeightFile& file : files) {
    names.push_back(file.name.c_str());
    buffers.push_back(file.bytes.data());
    lengths.push_back(file.bytes.size());
  }
  if (files.empty()) return;
  runtime.call<onnx::AddExternalInitializersFromFilesInMemory>(options.get(), names.data(), buffers.data(),
                                                               lengths.data(), names.size());
}

}  // namespace

void OnnxSession::load(const std::string& file, bool channels_last) {
  const Options options = options_for(runtime_, place_, channels_last);
  const std::filesystem::path path = file;
  const NetworkFile network(path);
  Weights weights = read_weights(network, path.parent_path());
  add_weights(*runtime_, options, weights.files);
  // The library opens files by name, and would wait for a FIFO that has taken the network's place meanwhile. What it
  // reads by itself it finds beside the name.
  const std::string name = weights.has_inner ? file : network.open_name();
  // The library tells this format by the end of the network's name, which it doesn't get.
  if (path.extension() == ".ort") {
    runtime_->call<onnx::AddSessionConfigEntry>(options.get(), "session.load_model_format", "ORT");
  }
  session_ = make_onnx<onnx::CreateSession, onnx::Session, onnx::ReleaseSession>(runtime_, runtime_->env(),
                                                                                 name.c_str(), options.get());
}

void OnnxSession::load_channels_last(const std::string& file) {
  // Its weights are in the GPU's memory once.
  session_ = {};
  try {
    load(file, true);
  } catch (const Error& error) {
    if (says_gpu_is_full(error.what())) throw;
    // This version doesn't know how.
    load(file, false);
  }
}

std::size_t OnnxSession::count_of(bool is_input) const {
  const onnx::Session* session = session_.get();
  std::size_t count = 0;
  if (is_input) {
    runtime_->call<onnx::SessionGetInputCount>(session, &count);
  } else {
    runtime_->call<onnx::SessionGetOutputCount>(session, &count);
  }
  return count;
}

OnnxTensor OnnxSession::tensor_of(bool is_input, std::size_t index) const {
  const onnx::Session* session = session_.get();
  const auto info =
      is_input
          ? make_onnx<onnx::SessionGetInputTypeInfo, onnx::TypeInfo, onnx::ReleaseTypeInfo>(runtime_, session, index)
          : make_onnx<onnx::SessionGetOutputTypeInfo, onnx::TypeInfo, onnx::ReleaseTypeInfo>(runtime_, session, index);
  const onnx::TypeInfo* type = info.get();
  onnx::ValueType kind = onnx::ValueType::unknown;
  runtime_->call<onnx::GetOnnxTypeFromTypeInfo>(type, &kind);
  // Of the outputs others may count.
  if (kind != onnx::ValueType::tensor && is_input) throw Error("its input is no tensor");
  if (kind != onnx::ValueType::tensor) return {"(no tensor)", onnx::ElementType::undefined, {}};
  const onnx::TensorInfo* tensor = nullptr;
  runtime_->call<onnx::CastTypeInfoToTensorInfo>(type, &tensor);
  OnnxTensor found;
  runtime_->call<onnx::GetTensorElementType>(tensor, &found.type);
  std::size_t dimensions = 0;
  runtime_->call<onnx::GetDimensionsCount>(tensor, &dimensions);
  found.shape.resize(dimensions);
  runtime_->call<onnx::GetDimensions>(tensor, found.shape.data(), dimensions);

  onnx::Allocator* allocator = nullptr;
  runtime_->call<onnx::GetAllocatorWithDefaultOptions>(&allocator);
  char* name = nullptr;
  if (is_input) {
    runtime_->call<onnx::SessionGetInputName>(session, index, allocator, &name);
  } else {
    runtime_->call<onnx::SessionGetOutputName>(session, index, allocator, &name);
  }
  found.name = name;
  runtime_->call<onnx::AllocatorFree>(allocator, name);
  return found;
}

OnnxSession::Value OnnxSession::tensor(void* data, std::size_t bytes, const std::vector<std::int64_t>& shape,
                                       onnx::ElementType type, bool on_gpu) const {
  return make_onnx<onnx::CreateTensorWithData, onnx::Value, onnx::ReleaseValue>(
      runtime_, (on_gpu ? device_ : host_).get(), data, bytes, shape.data(), shape.size(), type);
}

OnnxSession::Terminator OnnxSession::terminator() const {
  return make_onnx<onnx::CreateRunOptions, onnx::RunOptions, onnx::ReleaseRunOptions>(runtime_);
}

void OnnxSession::terminate(const Terminator& runs, bool now) const noexcept {
  onnx::Status* const status = now ? runtime_->just<onnx::RunOptionsSetTerminate>(runs.get())
                                   : runtime_->just<onnx::RunOptionsUnsetTerminate>(runs.get());
  // It sets a flag: where that failed the run would only take longer.
  if (status != nullptr) runtime_->just<onnx::ReleaseStatus>(status);
}

void OnnxSession::run(const Value& input, Value& output, const Terminator& by) const {
  const char* input_name = input_.name.c_str();
  const char* output_name = output_.name.c_str();
  const onnx::Value* in = input.get();
  onnx::Value* out = output.get();
  const onnx::RunOptions* const options = by.get();
  {
    const Turn turn(turns_);
    runtime_->call<onnx::Run>(session_.get(), options, &input_name, &in, std::size_t{1}, &output_name, std::size_t{1},
                              &out);
  }
  if (output.get() == nullptr) output = Value(runtime_, out);
}

std::vector<std::int64_t> OnnxSession::shape_of(const Value& value) const {
  const auto info =
      make_onnx<onnx::GetTensorTypeAndShape, onnx::TensorInfo, onnx::ReleaseTensorInfo>(runtime_, value.get());
  const onnx::TensorInfo* tensor = info.get();
  std::size_t dimensions = 0;
  runtime_->call<onnx::GetDimensionsCount>(tensor, &dimensions);
  std::vector<std::int64_t> shape(dimensions);
  runtime_->call<onnx::GetDimensions>(tensor, shape.data(), dimensions);
  return shape;
}

}  // namespace slidestream::networks
