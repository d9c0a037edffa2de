#pragma once

#include <cstddef>
#include <cstdint>

/// \file
/// What is used of ONNX Runtime's C API (https://onnxruntime.ai/docs/api/c/, onnxruntime_c_api.h), declared here so
/// that no header of it is needed. All calls go through one table of functions, `OrtApi`, which only ever grows at its
/// end: an entry's place is the same in every version from the one that it came with.

namespace slidestream::networks::onnx {

/// Version of the table that is asked for: that of ONNX Runtime 1.18, with the last entry that is used.
inline constexpr std::uint32_t api_version = 18;

struct Status;
struct Env;
struct Session;
struct SessionOptions;
struct RunOptions;
struct MemoryInfo;
struct Value;
struct TypeInfo;
struct TensorInfo;
struct Allocator;
struct CudaOptions;

/// ONNXTensorElementDataType.
enum class ElementType : int {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  boolean = 9,
  float16 = 10,
};

/// Of the types that networks give.
constexpr std::size_t bytes_of(ElementType type) noexcept {
  switch (type) {
    case ElementType::int64:
      return 8;
    case ElementType::float32:
    case ElementType::int32:
      return 4;
    case ElementType::float16:
    case ElementType::uint16:
    case ElementType::int16:
      return 2;
    default:
      return 1;
  }
}

/// Whether its numbers are whole.
constexpr bool is_whole(ElementType type) noexcept {
  return type == ElementType::uint8 || type == ElementType::int8 || type == ElementType::uint16 ||
         type == ElementType::int16 || type == ElementType::int32 || type == ElementType::int64 ||
         type == ElementType::boolean;
}

/// For messages: the types that networks may give.
inline constexpr const char* given_types = "float32 or float16, or for labels int8 to int64, uint8, uint16 or bool";

/// ONNXType.
enum class ValueType : int { unknown = 0, tensor = 1 };

/// OrtLoggingFunction.
using LoggingFunction = void (*)(void* param, int severity, const char* category, const char* id, const char* location,
                                 const char* message);

/// An entry of the table, whatever its type.
using AnyFunction = void (*)();

/// OrtApiBase, which `OrtGetApiBase` gives.
struct ApiBase {
  const AnyFunction* (*get_api)(std::uint32_t version);
  const char* (*version)();
};

/// An entry of the table: its place, and its type. A status of null is success.
template <std::size_t place, class Function>
struct Entry {
  static constexpr std::size_t index = place;
  using Type = Function*;
};

// clang-format off
using GetErrorMessage = Entry<2, const char*(const Status*)>;
using CreateEnvWithCustomLogger = Entry<4, Status*(LoggingFunction, void* param, int severity, const char* id, Env**)>;
using CreateSession = Entry<7, Status*(const Env*, const char* path, const SessionOptions*, Session**)>;
using Run = Entry<9, Status*(Session*, const RunOptions*, const char* const* input_names, const Value* const* inputs,
                             std::size_t input_count, const char* const* output_names, std::size_t output_count,
                             Value** outputs)>;
using CreateSessionOptions = Entry<10, Status*(SessionOptions**)>;
using DisableCpuMemArena = Entry<19, Status*(SessionOptions*)>;
using SetIntraOpNumThreads = Entry<24, Status*(SessionOptions*, int threads)>;
using SetInterOpNumThreads = Entry<25, Status*(SessionOptions*, int threads)>;
using SessionGetInputCount = Entry<30, Status*(const Session*, std::size_t*)>;
using SessionGetOutputCount = Entry<31, Status*(const Session*, std::size_t*)>;
using SessionGetInputTypeInfo = Entry<33, Status*(const Session*, std::size_t index, TypeInfo**)>;
using SessionGetOutputTypeInfo = Entry<34, Status*(const Session*, std::size_t index, TypeInfo**)>;
using SessionGetInputName = Entry<36, Status*(const Session*, std::size_t index, Allocator*, char**)>;
using SessionGetOutputName = Entry<37, Status*(const Session*, std::size_t index, Allocator*, char**)>;
using CreateRunOptions = Entry<39, Status*(RunOptions**)>;
using RunOptionsSetTerminate = Entry<46, Status*(RunOptions*)>;
using RunOptionsUnsetTerminate = Entry<47, Status*(RunOptions*)>;
using CreateTensorWithData = Entry<49, Status*(const MemoryInfo*, void* data, std::size_t bytes,
                                               const std::int64_t* shape, std::size_t dimensions, ElementType, Value**)>;
using GetTensorMutableData = Entry<51, Status*(Value*, void**)>;
using CastTypeInfoToTensorInfo = Entry<55, Status*(const TypeInfo*, const TensorInfo**)>;
using GetOnnxTypeFromTypeInfo = Entry<56, Status*(const TypeInfo*, ValueType*)>;
using GetTensorElementType = Entry<60, Status*(const TensorInfo*, ElementType*)>;
using GetDimensionsCount = Entry<61, Status*(const TensorInfo*, std::size_t*)>;
using GetDimensions = Entry<62, Status*(const TensorInfo*, std::int64_t* values, std::size_t count)>;
using GetTensorTypeAndShape = Entry<65, Status*(const Value*, TensorInfo**)>;
using CreateMemoryInfo = Entry<68, Status*(const char* name, int allocator, int device, int memory, MemoryInfo**)>;
using CreateCpuMemoryInfo = Entry<69, Status*(int allocator, int memory, MemoryInfo**)>;
using AllocatorFree = Entry<76, Status*(Allocator*, void*)>;
using GetAllocatorWithDefaultOptions = Entry<78, Status*(Allocator**)>;
using ReleaseEnv = Entry<92, void(Env*)>;
using ReleaseStatus = Entry<93, void(Status*)>;
using ReleaseMemoryInfo = Entry<94, void(MemoryInfo*)>;
using ReleaseSession = Entry<95, void(Session*)>;
using ReleaseValue = Entry<96, void(Value*)>;
using ReleaseRunOptions = Entry<97, void(RunOptions*)>;
using ReleaseTypeInfo = Entry<98, void(TypeInfo*)>;
using ReleaseTensorInfo = Entry<99, void(TensorInfo*)>;
using ReleaseSessionOptions = Entry<100, void(SessionOptions*)>;
using GetAvailableProviders = Entry<125, Status*(char*** names, int* count)>;
using ReleaseAvailableProviders = Entry<126, Status*(char** names, int count)>;
using AddSessionConfigEntry = Entry<130, Status*(SessionOptions*, const char* key, const char* value)>;
using AppendCudaProvider = Entry<204, Status*(SessionOptions*, const CudaOptions*)>;
using CreateCudaOptions = Entry<205, Status*(CudaOptions**)>;
using UpdateCudaOptions = Entry<206, Status*(CudaOptions*, const char* const* keys, const char* const* values,
                                             std::size_t count)>;
using ReleaseCudaOptions = Entry<208, void(CudaOptions*)>;
using SetDeterministicCompute = Entry<273, Status*(SessionOptions*, bool)>;
using AddExternalInitializersFromFilesInMemory =
    Entry<279, Status*(SessionOptions*, const char* const* names, char* const* buffers, const std::size_t* lengths,
                       std::size_t count)>;
// clang-format on

}  // namespace slidestream::networks::onnx
