#include "slide/openslide/library.hpp"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdarg>
#include <cstdlib>
#include <exception>
#include <map>
#include <mutex>
#include <slidestream/error.hpp>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include "config/suggest.hpp"
#include "libraries/loaded_library.hpp"
#include "slide/file.hpp"
#include "slide/openslide/named_files.hpp"

namespace slidestream::openslide {

namespace {

constexpr const char* variable = "SLIDESTREAM_OPENSLIDE";
constexpr std::array<const char*, 2> library_names = {"libopenslide.so.1", "libopenslide.so.0"};
constexpr libraries::LibrarySearch openslide = {.product = "OpenSlide",
                                                .key = "input.openslide",
                                                .variable = variable,
                                                .names = library_names,
                                                .file = "libopenslide.so",
                                                .package = "openslide_bin",
                                                .folder = "",
                                                .hint = "pip install openslide-bin"};

/// The handle of a slide whose other files don't hold the library up. \throws Error otherwise
Opened* open_checked(const Functions& call, const std::filesystem::path& path) {
  std::string fault = fault_of_named_files(path);
  if (fault.empty()) fault = fault_of_files_beside(path, [&] { return call.detect_vendor(path.c_str()); });
  if (!fault.empty()) throw Error(one_line(fault));
  return call.open(path.c_str());
}

/// Threads that were left behind and still wait.
std::atomic<int> left_openings{0};

/// What the one that opens and the one that waits share.
struct Opening {
  std::mutex mutex;
  std::condition_variable has_ended;
  bool ended = false;
  bool left = false;
  std::unique_ptr<Handle> handle;
  std::exception_ptr fault;
};

void open_for(Opening& opening, const std::shared_ptr<const Library>& library, const std::filesystem::path& path) {
  std::unique_ptr<Handle> handle;
  std::exception_ptr fault;
  try {
    handle = std::make_unique<Handle>(library, path);
  } catch (...) {
    fault = std::current_exception();
  }
  std::unique_lock lock(opening.mutex);
  if (opening.left) {
    lock.unlock();
    handle.reset();
    --left_openings;
    return;
  }
  opening.handle = std::move(handle);
  opening.fault = std::move(fault);
  opening.ended = true;
  opening.has_ended.notify_one();
}

/// Where the loader found what `symbol` is of.
std::string file_of(void* symbol, const std::string& asked_for) {
  Dl_info info{};
  return dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? std::string(info.dli_fname) : asked_for;
}

}  // namespace

std::shared_ptr<const Library> Library::load(const std::string& named) {
  struct Known {
    std::shared_ptr<const Library> library;
    std::string fault;
  };
  // Never given back: threads may decode when the program ends.
  static std::mutex mutex;
  static auto& all = *new std::map<std::pair<std::string, std::string>, Known>;
  const char* from_environment = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nothing here sets any
  const std::lock_guard lock(mutex);
  Known& known = all[{named, from_environment == nullptr ? "" : from_environment}];
  if (!known.library && known.fault.empty()) {
    try {
      const libraries::LoadedLibrary found = libraries::find_library(openslide, named == "auto" ? "" : named);
      known.library = std::make_shared<const Library>(found.file, found.handle);
    } catch (const ConfigError& error) {
      known.fault = error.what();
    }
  }
  if (!known.library) throw ConfigError(known.fault);
  return known.library;
}

Library::Library(const std::string& file, void* handle) {
  const auto may_have = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
  };
  const auto must_have = [&](const char* name, auto& function) {
    may_have(name, function);
    if (function == nullptr) throw ConfigError(file + ": isn't OpenSlide: it has no " + name);
  };
  Functions& all = functions_;
  must_have("openslide_get_version", all.get_version);
  must_have("openslide_detect_vendor", all.detect_vendor);
  must_have("openslide_open", all.open);
  must_have("openslide_close", all.close);
  must_have("openslide_get_error", all.get_error);
  must_have("openslide_get_level_count", all.get_level_count);
  must_have("openslide_get_level_dimensions", all.get_level_dimensions);
  must_have("openslide_get_level_downsample", all.get_level_downsample);
  must_have("openslide_read_region", all.read_region);
  must_have("openslide_get_property_names", all.get_property_names);
  must_have("openslide_get_property_value", all.get_property_value);
  must_have("openslide_get_associated_image_names", all.get_associated_image_names);
  must_have("openslide_get_associated_image_dimensions", all.get_associated_image_dimensions);
  must_have("openslide_read_associated_image", all.read_associated_image);
  may_have("openslide_get_icc_profile_size", all.get_icc_profile_size);
  may_have("openslide_read_icc_profile", all.read_icc_profile);
  may_have("openslide_cache_create", all.cache_create);
  may_have("openslide_cache_release", all.cache_release);
  if (all.cache_create != nullptr && all.cache_release != nullptr) may_have("openslide_set_cache", all.set_cache);
  if (all.read_icc_profile == nullptr) all.get_icc_profile_size = nullptr;
  // OpenSlide 3 lets its libtiff print what it warns of. A libtiff inside of OpenSlide has no names.
  using TiffHandler = void (*)(const char*, const char*, std::va_list);
  TiffHandler (*set_handler)(TiffHandler) = nullptr;
  for (const char* name : {"TIFFSetWarningHandler", "TIFFSetErrorHandler"}) {
    may_have(name, set_handler);
    if (set_handler != nullptr) set_handler(nullptr);
  }
  file_ = file_of(reinterpret_cast<void*>(all.open), file);
  name_ = "OpenSlide " + one_line(all.get_version());
}

Handle::Handle(std::shared_ptr<const Library> library, const std::filesystem::path& path)
    : library_(std::move(library)), opened_(open_checked(call(), path)) {
  if (opened_ == nullptr) throw Error("it doesn't recognise the file");
  if (std::string text = error(); !text.empty()) {
    call().close(opened_);
    throw Error(text);
  }
}

std::unique_ptr<Handle> open_handle(std::shared_ptr<const Library> library, const std::filesystem::path& path,
                                    const std::function<bool()>& give_up) {
  if (!give_up) return std::make_unique<Handle>(std::move(library), path);
  if (left_openings.load() >= most_left_openings) {
    throw Error("hasn't returned from opening " + std::to_string(most_left_openings) + " other slides");
  }
  const auto opening = std::make_shared<Opening>();
  try {
    std::thread([opening, library, path] { open_for(*opening, library, path); }).detach();
  } catch (const std::system_error&) {
    return std::make_unique<Handle>(std::move(library), path);
  }
  constexpr auto between_questions = std::chrono::milliseconds(50);
  std::unique_lock lock(opening->mutex);
  while (!opening->has_ended.wait_for(lock, between_questions, [&] { return opening->ended; })) {
    lock.unlock();
    const bool given_up = give_up();
    lock.lock();
    if (!given_up || opening->ended) continue;
    opening->left = true;
    ++left_openings;
    throw_stopped(path, "OpenSlide was opening it");
  }
  if (opening->fault) std::rethrow_exception(opening->fault);
  return std::move(opening->handle);
}

Handle::~Handle() { call().close(opened_); }

std::string Handle::error() const {
  const char* text = call().get_error(opened_);
  if (text == nullptr) return {};
  return *text == '\0' ? "an error without a cause" : one_line(text);
}

std::string Handle::property(const std::string& name) const {
  const char* value = call().get_property_value(opened_, name.c_str());
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace slidestream::openslide
