#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

/// \file
/// OpenSlide's library, loaded when a slide wants it. What is declared here of its interface is as its documentation
/// has it; none of its headers is needed.

namespace slidestream::openslide {

struct Opened;  ///< its `openslide_t`
struct Cache;   ///< its `openslide_cache_t`

/// Its functions. Those of version 4 are null in an older one.
struct Functions {
  const char* (*get_version)() = nullptr;
  const char* (*detect_vendor)(const char* file) = nullptr;
  Opened* (*open)(const char* file) = nullptr;
  void (*close)(Opened*) = nullptr;
  const char* (*get_error)(Opened*) = nullptr;
  std::int32_t (*get_level_count)(Opened*) = nullptr;
  void (*get_level_dimensions)(Opened*, std::int32_t level, std::int64_t* width, std::int64_t* height) = nullptr;
  double (*get_level_downsample)(Opened*, std::int32_t level) = nullptr;
  void (*read_region)(Opened*, std::uint32_t* to, std::int64_t x, std::int64_t y, std::int32_t level,
                      std::int64_t width, std::int64_t height) = nullptr;
  const char* const* (*get_property_names)(Opened*) = nullptr;
  const char* (*get_property_value)(Opened*, const char* name) = nullptr;
  const char* const* (*get_associated_image_names)(Opened*) = nullptr;
  void (*get_associated_image_dimensions)(Opened*, const char* name, std::int64_t* width,
                                          std::int64_t* height) = nullptr;
  void (*read_associated_image)(Opened*, const char* name, std::uint32_t* to) = nullptr;
  // Version 4.
  std::int64_t (*get_icc_profile_size)(Opened*) = nullptr;
  void (*read_icc_profile)(Opened*, void* to) = nullptr;
  Cache* (*cache_create)(std::size_t bytes) = nullptr;
  void (*set_cache)(Opened*, Cache*) = nullptr;
  void (*cache_release)(Cache*) = nullptr;
};

/// The loaded library. Immutable, shared by all threads; it stays loaded until the program ends.
class Library {
 public:
  /// Finds and loads it: `named`, a library or a folder with one, unless it is "auto"; else what the environment's
  /// SLIDESTREAM_OPENSLIDE names; else what the system's loader finds; else Python's package openslide_bin. That it
  /// isn't there is remembered. Thread-safe. \throws ConfigError that says where it was looked for.
  static std::shared_ptr<const Library> load(const std::string& named);

  Library(const std::string& file, void* handle);

  /// "OpenSlide 4.0.1".
  const std::string& name() const noexcept { return name_; }
  /// Where it lies.
  const std::string& file() const noexcept { return file_; }
  const Functions& functions() const noexcept { return functions_; }
  /// Whether caches can be shared and their sizes set.
  bool has_caches() const noexcept { return functions_.set_cache != nullptr; }

 private:
  std::string file_;
  std::string name_;
  Functions functions_;
};

/// A slide that the library has opened. One thread at a time.
class Handle {
 public:
  /// \throws Error with the library's words, in one line
  Handle(std::shared_ptr<const Library> library, const std::filesystem::path& path);
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  Opened* get() const noexcept { return opened_; }
  const Functions& call() const noexcept { return library_->functions(); }
  /// What went wrong, in one line; empty: nothing. From then on all that the handle gives is void.
  std::string error() const;
  /// A property; empty where it has none.
  std::string property(const std::string& name) const;

 private:
  std::shared_ptr<const Library> library_;
  Opened* opened_;
};

/// Opens a slide on a thread of its own, as the library may wait for ever for another file. Once `give_up` says so the
/// thread is left behind, which closes what it opens after all. An empty `give_up` needs no thread.
/// \throws Error as `Handle`, and at once while `most_left_openings` wait; StoppedError when it was given up
std::unique_ptr<Handle> open_handle(std::shared_ptr<const Library> library, const std::filesystem::path& path,
                                    const std::function<bool()>& give_up);
constexpr int most_left_openings = 8;

}  // namespace slidestream::openslide
