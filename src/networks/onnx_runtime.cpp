#include "networks/onnx_runtime.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <slidestream/error.hpp>
#include <utility>

#include "config/suggest.hpp"

namespace slidestream::networks {
namespace {

namespace fs = std::filesystem;

constexpr const char* variable = "SLIDESTREAM_ONNXRUNTIME";
constexpr const char* library_name = "libonnxruntime.so";

/// The library in a folder, or in the folder `capi` of it as the package has it; of several versions the last by name.
std::optional<fs::path> library_in(const fs::path& folder) {
  std::optional<fs::path> best;
  for (const fs::path& place : {folder, folder / "capi"}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(place, error)) {
      const std::string name = entry.path().filename().string();
      const std::string_view ends =
          std::string_view(name).substr(std::min(name.size(), std::string_view(library_name).size()));
      const bool fits = name.starts_with(library_name) && (ends.empty() || ends.front() == '.');
      if (fits && (!best || *best < entry.path())) best = entry.path();
    }
    if (best) break;
  }
  return best;
}

struct Loaded {
  std::string file;
  void* library = nullptr;
};

void* open_library(const std::string& file) { return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); }

std::string loader_message() {
  const char* text = dlerror();
  return one_line(text == nullptr ? "unknown reason" : text);
}

/// What the user named: it or nothing.
Loaded load_named(const std::string& named, const std::string& who) {
  std::error_code error;
  std::string file = named;
  if (fs::is_directory(named, error)) {
    const auto found = library_in(named);
    if (!found) throw ConfigError(who + ": " + named + " holds no " + library_name);
    file = found->string();
  }
  void* library = open_library(file);
  if (library == nullptr) throw ConfigError(who + ": ONNX Runtime can't be loaded: " + loader_message());
  return {file, library};
}

/// The folder of Python's package, found without importing it; empty: none.
std::string folder_of_package() {
  constexpr const char* command =
      "python3 -c 'import importlib.util as u; s = u.find_spec(\"onnxruntime\"); "
      "print(s.submodule_search_locations[0] if s else \"\")' 2>/dev/null";
  std::string folder;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command, "r"), pclose);  // NOLINT(cert-env33-c)
  if (!pipe) return folder;
  std::array<char, 512> buffer{};
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) {
    folder.append(buffer.data(), count);
  }
  while (!folder.empty() && folder.back() == '\n') folder.pop_back();
  return folder;
}

Loaded find_library(const std::string& named) {
  if (!named.empty()) return load_named(named, "model.runtime");
  const char* from_environment = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nothing here sets any
  if (from_environment != nullptr && *from_environment != '\0') return load_named(from_environment, variable);
  if (void* library = open_library(library_name)) return {library_name, library};
  const std::string package = folder_of_package();
  if (!package.empty()) {
    if (const auto file = library_in(package)) return load_named(file->string(), "Python's package onnxruntime");
  }
  throw ConfigError(std::string("ONNX Runtime isn't there: neither model.runtime nor ") + variable +
                    " names its library, the system has no " + library_name +
                    ", and python3 has no package onnxruntime (pip install onnxruntime)");
}

/// The library tells failures by what its calls return; warnings of how it computes are for its developers.
void say_nothing(void*, int, const char*, const char*, const char*, const char*) {}

constexpr int fatal_severity = 4;

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

/// Without "/source/bfc_arena.cc:376 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, bool) ".
std::string_view without_place(std::string_view text) {
  if (!text.starts_with('/')) return text;
  const auto end_of_path = text.find(' ');
  const std::string_view path = text.substr(0, end_of_path);
  const auto colon = path.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == path.size() ||
      path.find_first_not_of("0123456789", colon + 1) != std::string_view::npos) {
    return text;
  }
  auto rest = behind_brackets(text, '(', ')');
  if (rest && rest->starts_with("const")) rest = trimmed(rest->substr(5));
  if (rest && rest->starts_with('[')) rest = behind_brackets(*rest, '[', ']');
  return !rest || rest->empty() ? text : *rest;
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
  return one_line(node + std::string(without_place(text)));
}

std::shared_ptr<const OnnxRuntime> OnnxRuntime::load(const std::string& named) {
  // A process can have but one environment of the library. Never given back: when the program ends, what the library
  // needs for that may be gone before.
  using Known = std::map<std::string, std::shared_ptr<const OnnxRuntime>>;
  static std::mutex mutex;
  static Known& known = *new Known;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const OnnxRuntime>& runtime = known[named];
  if (!runtime) {
    const Loaded found = find_library(named);
    runtime.reset(new OnnxRuntime(found.file, found.library));
  }
  return runtime;
}

OnnxRuntime::OnnxRuntime(const std::string& file, void* library) {
  const auto base_of = reinterpret_cast<const onnx::ApiBase* (*)()>(dlsym(library, "OrtGetApiBase"));
  if (base_of == nullptr) throw ConfigError(file + ": isn't ONNX Runtime: it has no OrtGetApiBase");
  const onnx::ApiBase* base = base_of();
  version_ = base->version();
  table_ = base->get_api(onnx::api_version);
  if (table_ == nullptr) {
    throw ConfigError(file + ": is ONNX Runtime " + version_ + "; expected 1." + std::to_string(onnx::api_version) +
                      " or newer");
  }
  call<onnx::CreateEnvWithCustomLogger>(&say_nothing, nullptr, fatal_severity, "slidestream", &env_);
  char** names = nullptr;
  int count = 0;
  call<onnx::GetAvailableProviders>(&names, &count);
  providers_.assign(names, names + count);
  call<onnx::ReleaseAvailableProviders>(names, count);
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
  throw Error(message);
}

}  // namespace slidestream::networks
