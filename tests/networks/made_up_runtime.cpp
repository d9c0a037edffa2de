// A library that looks like ONNX Runtime with CUDA, and computes nothing, or what a test says: what it was asked for
// can be looked at.

#include "networks/made_up_runtime.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <thread>

namespace onnx = slidestream::networks::onnx;
using slidestream::test::MadeUpRuntime;

// The names that the interface has for what it hands out.
namespace slidestream::networks::onnx {

struct Status {
  std::string message;
};
struct Session {
  MadeUpRuntime::Options cuda;
  std::string file;
};
struct TensorInfo {
  std::vector<std::int64_t> shape;
};
struct TypeInfo {
  TensorInfo tensor;
};
struct Value {
  std::span<float> numbers;
  std::vector<float> own;
  std::vector<std::int64_t> shape;
};
struct SessionOptions {
  MadeUpRuntime::Options cuda;
};
struct CudaOptions {
  MadeUpRuntime::Options all;
};

}  // namespace slidestream::networks::onnx

namespace {

MadeUpRuntime& state() {
  static auto& made = *new MadeUpRuntime;
  return made;
}

std::array<onnx::AnyFunction, 512> table;

/// Stands at every place that is never called.
void nothing() {}

template <class Entry, class Function>
void put(Function function) {
  table[Entry::index] = reinterpret_cast<onnx::AnyFunction>(static_cast<typename Entry::Type>(function));
}

/// Does nothing, and says that it was done.
template <class... Entries>
void put_done() {
  (put<Entries>([](auto...) -> onnx::Status* { return nullptr; }), ...);
}
template <class... Entries>
void put_release() {
  (put<Entries>([](auto...) {}), ...);
}

template <class Entry, class Object>
void put_make() {
  put<Entry>([](Object** made) -> onnx::Status* {
    *made = new Object;
    return nullptr;
  });
}

onnx::Status* compute(const onnx::Session& session, const onnx::Value& in, onnx::Value*& out) {
  if (out == nullptr) {
    std::size_t count = 1;
    for (const std::int64_t side : state().output_shape) count *= static_cast<std::size_t>(side);
    out = new onnx::Value{{}, std::vector<float>(count), state().output_shape};
    out->numbers = out->own;
  }
  try {
    state().compute(session.cuda, session.file, in.numbers, out->numbers);
  } catch (const std::exception& error) {
    return new onnx::Status{error.what()};
  }
  return nullptr;
}

onnx::Status* run(onnx::Session* session, const onnx::RunOptions*, const char* const*, const onnx::Value* const* in,
                  std::size_t, const char* const*, std::size_t, onnx::Value** out) {
  const int running = ++state().running;
  int most = state().most_running;
  while (most < running && !state().most_running.compare_exchange_weak(most, running)) {
  }
  for (int i = 0; i < 20000 && state().most_running < state().wanted_at_once; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // For more to come, if they could.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  onnx::Status* const status = state().compute ? compute(*session, **in, *out) : nullptr;
  --state().running;
  return status;
}

onnx::Status* make_type(bool is_input, onnx::TypeInfo** info) {
  *info = new onnx::TypeInfo{{is_input ? state().input_shape : state().output_shape}};
  return nullptr;
}

void fill() {
  table.fill(reinterpret_cast<onnx::AnyFunction>(&nothing));
  put_done<onnx::SetIntraOpNumThreads, onnx::SetInterOpNumThreads, onnx::CreateRunOptions, onnx::RunOptionsSetTerminate,
           onnx::RunOptionsUnsetTerminate, onnx::GetTensorMutableData, onnx::CreateMemoryInfo,
           onnx::CreateCpuMemoryInfo, onnx::AllocatorFree, onnx::GetAllocatorWithDefaultOptions,
           onnx::ReleaseAvailableProviders, onnx::AddSessionConfigEntry, onnx::SetDeterministicCompute,
           onnx::DisableCpuMemArena>();
  put<onnx::CreateEnvWithCustomLogger>([](auto...) -> onnx::Status* {
    const bool begins = ++state().beginnings > 1 || state().fails_to_begin.empty();
    return begins ? nullptr : new onnx::Status{state().fails_to_begin};
  });
  put_release<onnx::ReleaseEnv, onnx::ReleaseMemoryInfo, onnx::ReleaseRunOptions>();
  put<onnx::CreateTensorWithData>([](const onnx::MemoryInfo*, void* data, std::size_t bytes, const std::int64_t* shape,
                                     std::size_t dimensions, onnx::ElementType, onnx::Value** value) -> onnx::Status* {
    *value = new onnx::Value{{static_cast<float*>(data), bytes / sizeof(float)}, {}, {shape, shape + dimensions}};
    return nullptr;
  });
  put<onnx::ReleaseValue>([](onnx::Value* value) { delete value; });
  put<onnx::SessionGetInputTypeInfo>(
      [](const onnx::Session*, std::size_t, onnx::TypeInfo** info) { return make_type(true, info); });
  put<onnx::SessionGetOutputTypeInfo>(
      [](const onnx::Session*, std::size_t, onnx::TypeInfo** info) { return make_type(false, info); });
  put<onnx::ReleaseTypeInfo>([](onnx::TypeInfo* info) { delete info; });
  put<onnx::CastTypeInfoToTensorInfo>([](const onnx::TypeInfo* info, const onnx::TensorInfo** tensor) -> onnx::Status* {
    *tensor = &info->tensor;
    return nullptr;
  });
  put<onnx::GetTensorTypeAndShape>([](const onnx::Value* value, onnx::TensorInfo** tensor) -> onnx::Status* {
    *tensor = new onnx::TensorInfo{value->shape};
    return nullptr;
  });
  put<onnx::ReleaseTensorInfo>([](onnx::TensorInfo* info) { delete info; });
  put<onnx::GetDimensionsCount>([](const onnx::TensorInfo* tensor, std::size_t* count) -> onnx::Status* {
    *count = tensor->shape.size();
    return nullptr;
  });
  put<onnx::GetDimensions>([](const onnx::TensorInfo* tensor, std::int64_t* sides, std::size_t count) -> onnx::Status* {
    std::copy_n(tensor->shape.begin(), count, sides);
    return nullptr;
  });
  put<onnx::GetErrorMessage>([](const onnx::Status* status) { return status->message.c_str(); });
  put<onnx::ReleaseStatus>([](onnx::Status* status) { delete status; });
  put<onnx::GetAvailableProviders>([](char*** names, int* count) -> onnx::Status* {
    static std::array<char, 22> name = {"CUDAExecutionProvider"};
    static std::array<char*, 1> all = {name.data()};
    *names = all.data();
    *count = 1;
    return nullptr;
  });
  put_make<onnx::CreateSessionOptions, onnx::SessionOptions>();
  put<onnx::ReleaseSessionOptions>([](onnx::SessionOptions* options) { delete options; });
  put_make<onnx::CreateCudaOptions, onnx::CudaOptions>();
  put<onnx::ReleaseCudaOptions>([](onnx::CudaOptions* options) { delete options; });
  put<onnx::UpdateCudaOptions>([](onnx::CudaOptions* options, const char* const* keys, const char* const* values,
                                  std::size_t count) -> onnx::Status* {
    for (std::size_t i = 0; i < count; ++i) {
      if (!state().knows_channels_last && std::strcmp(keys[i], "prefer_nhwc") == 0) {
        return new onnx::Status{"Unknown provider option"};
      }
      options->all[keys[i]] = values[i];
    }
    return nullptr;
  });
  put<onnx::AppendCudaProvider>([](onnx::SessionOptions* options, const onnx::CudaOptions* cuda) -> onnx::Status* {
    options->cuda = cuda->all;
    return nullptr;
  });
  put<onnx::CreateSession>([](const onnx::Env*, const char* file, const onnx::SessionOptions* options,
                              onnx::Session** session) -> onnx::Status* {
    if (++state().sessions > state().most_sessions) return new onnx::Status{"its weights are there twice"};
    const std::lock_guard lock(state().mutex);
    state().loaded.push_back(options->cuda);
    try {
      if (state().on_session) state().on_session(options->cuda, true);
    } catch (const std::exception& error) {
      --state().sessions;
      return new onnx::Status{error.what()};
    }
    std::ifstream stream(file, std::ios::binary);
    state().content.assign(std::istreambuf_iterator<char>(stream), {});
    // The name of what is open leads to the file's own.
    std::error_code isnt_link;
    const std::filesystem::path own = std::filesystem::read_symlink(file, isnt_link);
    *session = new onnx::Session{options->cuda, isnt_link ? file : own.string()};
    return nullptr;
  });
  put<onnx::ReleaseSession>([](onnx::Session* session) {
    --state().sessions;
    const std::lock_guard lock(state().mutex);
    if (state().on_session) state().on_session(session->cuda, false);
    delete session;
  });
  const auto one = [](const onnx::Session*, std::size_t* count) -> onnx::Status* {
    *count = 1;
    return nullptr;
  };
  put<onnx::SessionGetInputCount>(one);
  put<onnx::SessionGetOutputCount>(one);
  put<onnx::GetOnnxTypeFromTypeInfo>([](const onnx::TypeInfo*, onnx::ValueType* type) -> onnx::Status* {
    *type = onnx::ValueType::tensor;
    return nullptr;
  });
  put<onnx::GetTensorElementType>([](const onnx::TensorInfo*, onnx::ElementType* type) -> onnx::Status* {
    *type = state().type;
    return nullptr;
  });
  put<onnx::SessionGetInputName>([](const onnx::Session*, std::size_t, onnx::Allocator*, char** text) -> onnx::Status* {
    static std::array<char, 6> name = {"tiles"};
    *text = name.data();
    return nullptr;
  });
  put<onnx::SessionGetOutputName>(
      [](const onnx::Session*, std::size_t, onnx::Allocator*, char** text) -> onnx::Status* {
        static std::array<char, 7> name = {"result"};
        *text = name.data();
        return nullptr;
      });
  put<onnx::Run>(&run);
}

}  // namespace

extern "C" const onnx::ApiBase* OrtGetApiBase() {
  static const onnx::ApiBase base = {[](std::uint32_t) { return static_cast<const onnx::AnyFunction*>(table.data()); },
                                     [] { return "1.99.0"; }};
  fill();
  return &base;
}

extern "C" MadeUpRuntime* made_up_runtime() { return &state(); }
