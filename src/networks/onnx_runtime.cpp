#include "networks/onnx_runtime.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <slidestream/error.hpp>
#include <system_error>
#include <utility>

#include "config/suggest.hpp"
#include "libraries/loaded_library.hpp"

namespace slidestream::networks {
namespace {

/// The library tells failures by what its calls return; warnings of how it computes are for its developers.
void say_nothing(void*, int, const char*, const char*, const char*, const char*) {}

constexpr int fatal_severity = 4;

constexpr std::array<const char*, 1> library_names = {"libonnxruntime.so"};
constexpr libraries::LibrarySearch onnx_runtime = {.product = "ONNX Runtime",
                                                   .key = "model.runtime",
                                                   .variable = "SLIDESTREAM_ONNXRUNTIME",
                                                   .names = library_names,
                                                   .file = "libonnxruntime.so",
                                                   .package = "onnxruntime",
                                                   .folder = "capi",
                                                   .hint = "pip install onnxruntime"};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \n\r\t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \n\r\t") - first + 1);
}

/// What stands behind the first bracket and the one that closes it; nothing where it isn't closed.
std::optional<std::string_view> behind_brackets(std::string_view text, char open, char close) {
  int depth = 0;
  for (std::size_t at = text.find(open); at < text.size(); ++at) {
    if (text[at] == open) ++depth;
    if (text[at] == close && --depth == 0) return trimmed(text.substr(at + 1));
  }
  return std::nullopt;
}

/// Behind "/source/bfc_arena.cc:376 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, bool) ", with which `text`
/// begins; nothing where it doesn't.
std::optional<std::string_view> behind_place(std::string_view text) {
  const std::string_view path = text.substr(0, text.find_first_of(" \n"));
  const auto colon = path.rfind(':');
  if (!path.starts_with('/') || colon == std::string_view::npos || colon + 1 == path.size() ||
      path.find_first_not_of("0123456789", colon + 1) != std::string_view::npos) {
    return std::nullopt;
  }
  auto rest = behind_brackets(text, '(', ')');
  // What is within a function is named behind it: "::<lambda(int)>".
  while (rest && rest->starts_with("::")) rest = behind_brackets(*rest, '(', ')');
  if (rest && rest->starts_with('>')) rest = trimmed(rest->substr(1));
  if (rest && rest->starts_with("const")) rest = trimmed(rest->substr(5));
  if (rest && rest->starts_with('[')) rest = behind_brackets(*rest, '[', ']');
  return !rest || rest->empty() ? std::nullopt : rest;
}

/// Without any such place, wherever it stands, and without the name of the file that was loaded.
std::string without_places(std::string_view text) {
  constexpr std::string_view loads = "Load model from ";
  constexpr std::string_view failed = " failed:";
  if (text.starts_with(loads)) {
    const auto end = text.find(failed);
    if (end != std::string_view::npos) text = trimmed(text.substr(end + failed.size()));
  }
  std::string kept;
  while (!text.empty()) {
    const auto slash = text.find('/');
    kept += text.substr(0, slash);
    if (slash == std::string_view::npos) break;
    text.remove_prefix(slash);
    if (const auto rest = behind_place(text)) {
      text = *rest;
    } else {
      kept += '/';
      text.remove_prefix(1);
    }
  }
  return kept;
}

}  // namespace

std::string cause_in(std::string_view message) {
  constexpr std::string_view begins = "Non-zero status code returned while running ";
  constexpr std::string_view names = " Name:'";
  constexpr std::string_view says = "Status Message: ";
  const auto status = message.rfind(says);
  std::string node;
  std::string_view text = trimmed(message);
  if (status != std::string_view::npos) {
    text = trimmed(message.substr(status + says.size()));
    const auto begin = message.rfind(begins, status);
    if (begin != std::string_view::npos) {
      const std::string_view where = message.substr(begin + begins.size(), status - begin - begins.size());
      node = where.substr(0, where.find('.'));
      const auto name = where.find(names);
      const auto end = name == std::string_view::npos ? name : where.find('\'', name + names.size());
      if (end != std::string_view::npos && end > name + names.size()) {
        node += " '" + std::string(where.substr(name + names.size(), end - name - names.size())) + "'";
      }
      node += ": ";
    }
  }
  return one_line(node + without_places(text));
}

bool says_no_memory(std::string_view message) {
  constexpr std::string_view failed = "Failed to allocate memory";
  constexpr std::string_view before_size = "requested buffer of size ";
  if (message.find("bad_alloc") != std::string_view::npos) return true;
  if (message.find(failed) == std::string_view::npos) return false;
  const std::size_t found = message.find(before_size);
  if (found == std::string_view::npos) return true;
  // What this machine can never have is the fault of who asks: a network asks for it by what is in the tiles.
  const std::string_view rest = message.substr(found + before_size.size());
  std::uint64_t size = 0;
  if (std::from_chars(rest.data(), rest.data() + rest.size(), size).ec == std::errc::result_out_of_range) return false;
  return size / static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE)) <
         static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES));
}

bool says_gpu_is_full(std::string_view message) {
  constexpr std::array<std::string_view, 5> signs = {"CUDA failure 2:", "cudaErrorMemoryAllocation",
                                                     "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED",
                                                     "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"};
  return std::ranges::any_of(signs,
                             [&](std::string_view sign) { return message.find(sign) != std::string_view::npos; });
}

std::shared_ptr<const OnnxRuntime> OnnxRuntime::load(const std::string& named) {
  // A process can have but one environment of the library. Never given back: when the program ends, what the library
  // needs for that may be gone before.
  using Known = std::map<std::string, std::shared_ptr<const OnnxRuntime>>;
  static std::mutex mutex;
  static Known& known = *new Known;
  static std::map<void*, std::string>& failures = *new std::map<void*, std::string>;  // by the library's handle
  const std::lock_guard lock(mutex);
  std::shared_ptr<const OnnxRuntime>& runtime = known[named];
  if (!runtime) {
    const libraries::LoadedLibrary found = libraries::find_library(onnx_runtime, named);
    std::string& failure = failures[found.handle];
    if (!failure.empty()) throw ConfigError(failure);
    runtime.reset(new OnnxRuntime(found.file, found.handle, failure));
  }
  return runtime;
}

OnnxRuntime::OnnxRuntime(const std::string& file, void* library, std::string& failure) {
  const auto base_of = reinterpret_cast<const onnx::ApiBase* (*)()>(dlsym(library, "OrtGetApiBase"));
  if (base_of == nullptr) throw ConfigError(file + ": isn't ONNX Runtime: it has no OrtGetApiBase");
  const onnx::ApiBase* base = base_of();
  version_ = base->version();
  table_ = base->get_api(onnx::api_version);
  if (table_ == nullptr) {
    throw ConfigError(file + ": is ONNX Runtime " + version_ + "; expected 1." + std::to_string(onnx::api_version) +
                      " or newer");
  }
  begin(file, failure);
  char** names = nullptr;
  int count = 0;
  call<onnx::GetAvailableProviders>(&names, &count);
  providers_.assign(names, names + count);
  call<onnx::ReleaseAvailableProviders>(names, count);
}

void OnnxRuntime::begin(const std::string& file, std::string& failure) {
  // Put together beforehand: afterwards there may be no memory for it.
  const std::string begins = file + ": ONNX Runtime " + version_ + " can't begin: ";
  std::string shortage = begins + "there is no memory for it; raise the limit of memory";
  try {
    call<onnx::CreateEnvWithCustomLogger>(&say_nothing, nullptr, fatal_severity, "slidestream", &env_);
  } catch (const std::exception& error) {
    failure = std::move(shortage);
    // What a std::bad_alloc says, also one within the library.
    if (std::string_view(error.what()).find("bad_alloc") == std::string_view::npos) failure = begins + error.what();
  }
  if (!failure.empty()) throw ConfigError(failure);
}

OnnxRuntime::~OnnxRuntime() {
  if (env_ != nullptr) just<onnx::ReleaseEnv>(env_);
}

bool OnnxRuntime::has_provider(std::string_view name) const {
  return std::ranges::find(providers_, name) != providers_.end();
}

void OnnxRuntime::check(onnx::Status* status) const {
  if (status == nullptr) return;
  std::string message = cause_in(just<onnx::GetErrorMessage>(status));
  just<onnx::ReleaseStatus>(status);
  if (says_no_memory(message)) throw std::bad_alloc();
  throw Error(message);
}

}  // namespace slidestream::networks
