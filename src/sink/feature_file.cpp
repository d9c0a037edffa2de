#include "sink/feature_file.hpp"

#include <hdf5.h>

#include <cmath>
#include <cstddef>
#include <mutex>
#include <slidestream/error.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "sink/new_file.hpp"

namespace slidestream {
namespace {

/// What `coords` names as its maker.
constexpr const char* creator = "slidestream";

/// The library may be built without locks of its own.
std::mutex& library() {
  static std::mutex mutex;
  return mutex;
}

/// The innermost cause of the last failure: `data` is a string that stays empty until then.
herr_t keep_first(unsigned, const H5E_error2_t* error, void* data) {
  auto& text = *static_cast<std::string*>(data);
  if (text.empty() && error->desc != nullptr) text = error->desc;
  return 0;
}

[[noreturn]] void fail() {
  std::string cause;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &cause);
  throw Error(cause.empty() ? "HDF5 failed" : cause);
}

void check(herr_t code) {
  if (code < 0) fail();
}

/// All files are in memory and closed: the library has nothing to do when the process ends, where it may find no memory
/// and write lines of its own. Says no from the second time on, when the library has begun.
void begin_library() {
  static_cast<void>(H5dont_atexit());
  check(H5open());
  check(H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr));
}

/// Something of the library that is closed when it goes.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle(hid_t id, Close closed_by) : id_(id), close_(closed_by) {
    if (id < 0) fail();
  }
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  hid_t get() const noexcept { return id_; }

 private:
  hid_t id_;
  Close close_;
};

void write_attribute(const Handle& of, const char* name, hid_t type, const void* value) {
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Handle attribute(H5Acreate2(of.get(), name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  check(H5Awrite(attribute.get(), type, value));
}

void write_number(const Handle& of, const char* name, std::int64_t value) {
  write_attribute(of, name, H5T_STD_I64LE, &value);
}

/// An attribute has one type, whatever its value: magnifications aren't always whole.
void write_number(const Handle& of, const char* name, double value) {
  write_attribute(of, name, H5T_IEEE_F64LE, &value);
}

/// Of any length, in UTF-8: what h5py gives as `str`. One of a fixed length is `numpy.bytes_` there.
void write_text(const Handle& of, const char* name, const std::string& value) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  check(H5Tset_size(type.get(), H5T_VARIABLE));
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8));
  const char* text = value.c_str();
  write_attribute(of, name, type.get(), &text);
}

/// Space is taken at once, without being filled, and nothing says when.
Handle make_dataset(const Handle& file, const char* name, hid_t type, std::array<hsize_t, 2> shape,
                    const void* values) {
  const Handle settings(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  check(H5Pset_obj_track_times(settings.get(), 0));
  check(H5Pset_alloc_time(settings.get(), H5D_ALLOC_TIME_EARLY));
  check(H5Pset_fill_time(settings.get(), H5D_FILL_TIME_NEVER));
  const Handle space(H5Screate_simple(2, shape.data(), nullptr), H5Sclose);
  Handle made(H5Dcreate2(file.get(), name, type, space.get(), H5P_DEFAULT, settings.get(), H5P_DEFAULT), H5Dclose);
  if (shape[0] > 0) check(H5Dwrite(made.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
  return made;
}

void describe_coords(const Handle& coords, const FeatureDescription& about) {
  const double factor = about.downsample * about.reduction;
  const auto scaled = [](std::int64_t pixels, double by) {
    return static_cast<std::int64_t>(std::llround(static_cast<double>(pixels) * by));
  };
  // CLAM reads patch_size pixels of patch_level. TRIDENT reads patch_size level0_magnification / target_magnification
  // pixels of level 0, or without magnifications patch_size custom_downsample pixels of patch_level.
  write_number(coords, "patch_size", scaled(about.patch, about.reduction));
  write_number(coords, "patch_size_level0", scaled(about.patch, factor));
  if (about.magnification) {
    write_number(coords, "level0_magnification", *about.magnification);
    write_number(coords, "target_magnification", *about.magnification / about.downsample);
    write_number(coords, "tile_magnification", *about.magnification / factor);
  }
  write_number(coords, "overlap", scaled(about.overlap, about.reduction));
  write_number(coords, "tile_size", about.patch);
  write_number(coords, "tile_overlap", about.overlap);
  write_number(coords, "tile_downsample", about.reduction);
  write_number(coords, "level0_width", about.level0.width);
  write_number(coords, "level0_height", about.level0.height);
  write_text(coords, "name", about.name);
  write_text(coords, "creator", creator);
  write_number(coords, "patch_level", about.level);
  write_number(coords, "custom_downsample", 1.0);
}

/// The file as bytes. It is made in memory: a file that can't be written whole stays open in the library, which
/// stumbles over it when the process ends.
std::vector<std::byte> make_file(const FeatureDescription& about, std::span<const TileCorner> corners,
                                 std::optional<std::span<const float>> vectors) {
  constexpr std::size_t grown_by = std::size_t{4} << 20;
  const std::lock_guard lock(library());
  begin_library();
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  check(H5Pset_fapl_core(access.get(), grown_by, 0));
  const Handle file(H5Fcreate("features", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose);
  const auto rows = static_cast<hsize_t>(corners.size());
  {
    const Handle coords = make_dataset(file, "coords", H5T_STD_I64LE, {rows, 2}, corners.data());
    describe_coords(coords, about);
    const auto say_settings = [&](const Handle& of) {
      for (const auto& [name, value] : about.settings) write_text(of, name.c_str(), value);
    };
    if (vectors) {
      const Handle features =
          make_dataset(file, "features", H5T_IEEE_F32LE, {rows, static_cast<hsize_t>(about.length)}, vectors->data());
      write_text(features, "name", about.name);
      write_text(features, "encoder", about.encoder);
      say_settings(features);
    } else {
      say_settings(coords);
    }
  }
  check(H5Fflush(file.get(), H5F_SCOPE_GLOBAL));
  const ssize_t size = H5Fget_file_image(file.get(), nullptr, 0);
  if (size < 0) fail();
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  if (H5Fget_file_image(file.get(), bytes.data(), bytes.size()) < 0) fail();
  return bytes;
}

/// Whether an attribute is one text, of any length, and which.
bool has_text(const Handle& of, const char* name, std::string_view wanted) {
  const Handle attribute(H5Aopen(of.get(), name, H5P_DEFAULT), H5Aclose);
  const Handle type(H5Aget_type(attribute.get()), H5Tclose);
  const Handle space(H5Aget_space(attribute.get()), H5Sclose);
  if (H5Tis_variable_str(type.get()) <= 0 || H5Sget_simple_extent_npoints(space.get()) != 1) return false;
  char* text = nullptr;
  check(H5Aread(attribute.get(), type.get(), &text));
  const bool is_equal = text != nullptr && text == wanted;
  H5free_memory(text);
  return is_equal;
}

herr_t end_at_first(hid_t, const char*, const H5A_info_t*, void*) { return 1; }

bool holds_features_alone(const std::filesystem::path& path) {
  const std::lock_guard lock(library());
  begin_library();
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
  // Some network file systems have no locks.
  check(H5Pset_file_locking(access.get(), false, true));
#endif
  const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
  H5G_info_t root{};
  check(H5Gget_info(file.get(), &root));
  const bool has_features = H5Lexists(file.get(), "features", H5P_DEFAULT) > 0;
  if (root.nlinks != (has_features ? 2 : 1)) return false;
  if (H5Aiterate2(file.get(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, end_at_first, nullptr) != 0) return false;
  const Handle coords(H5Dopen2(file.get(), "coords", H5P_DEFAULT), H5Dclose);
  if (!has_text(coords, "creator", creator)) return false;
  // Another program's vectors may have been added to this program's corners.
  return !has_features || H5Aexists_by_name(file.get(), "features", "encoder", H5P_DEFAULT) > 0;
}

void write(const std::filesystem::path& file, const FeatureDescription& description,
           std::span<const TileCorner> corners, std::optional<std::span<const float>> vectors) {
  try {
    const std::vector<std::byte> bytes = make_file(description, corners, vectors);
    write_new_file(file, {bytes});
  } catch (const OutputError&) {
    throw;
  } catch (const Error& error) {
    throw OutputError(file.string() + ": " + error.what());
  }
}

}  // namespace

void write_features(const std::filesystem::path& file, const FeatureDescription& description,
                    std::span<const TileCorner> corners, std::span<const float> vectors) {
  if (vectors.size() != corners.size() * static_cast<std::size_t>(description.length)) {
    throw Error("internal: " + std::to_string(vectors.size()) + " features for " + std::to_string(corners.size()) +
                " tiles of " + std::to_string(description.length));
  }
  write(file, description, corners, vectors);
}

void write_coordinates(const std::filesystem::path& file, const FeatureDescription& description,
                       std::span<const TileCorner> corners) {
  write(file, description, corners, std::nullopt);
}

bool is_features_file(const std::filesystem::path& file) noexcept {
  try {
    return holds_features_alone(file);
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace slidestream
