#include "runtime/cuda/device_file.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <mutex>

#include <slidestream/error.hpp>

#include "runtime/cuda/cufile.hpp"

namespace slidestream::runtime::cuda {
namespace {

using cufile::already_open;
using cufile::Properties;
using cufile::Status;

struct Functions {
  cufile::OpenDriver* open_driver = nullptr;
  cufile::GetProperties* get_properties = nullptr;
  cufile::RegisterFile* register_file = nullptr;
  cufile::DeregisterFile* deregister_file = nullptr;
  cufile::Read* read = nullptr;
  std::string why_not;  ///< one clause; empty: all are there
};

constexpr std::array<const char*, 3> places = {"libcufile.so.0", "/usr/local/cuda/lib64/libcufile.so.0",
                                               "/usr/local/cuda/targets/x86_64-linux/lib/libcufile.so.0"};

template <class Function>
void load(Functions& functions, Function& function, void* library, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) functions.why_not = std::string("the libcufile.so.0 that was found has no ") + name;
}

Functions load_functions() {
  Functions functions;
  void* library = nullptr;
  for (const char* place : places) {
    library = dlopen(place, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    functions.why_not = "libcufile.so.0 isn't installed where the loader looks";
    return functions;
  }
  load(functions, functions.open_driver, library, "cuFileDriverOpen");
  load(functions, functions.get_properties, library, "cuFileDriverGetProperties");
  load(functions, functions.register_file, library, "cuFileHandleRegister");
  load(functions, functions.deregister_file, library, "cuFileHandleDeregister");
  load(functions, functions.read, library, "cuFileRead");
  return functions;
}

const Functions& functions() {
  static std::mutex mutex;
  static Functions loaded;
  const std::lock_guard lock(mutex);
  // What wasn't there may be there the next time: tests ask before and after.
  if (loaded.read == nullptr || !loaded.why_not.empty()) loaded = load_functions();
  return loaded;
}

std::string code_of(const Status& status) {
  std::string text = "code " + std::to_string(status.error);
  if (status.driver != 0) text += ", CUDA's " + std::to_string(status.driver);
  return text;
}

}  // namespace

DeviceFileSupport device_file_support() {
  const Functions& library = functions();
  if (!library.why_not.empty()) return {false, library.why_not};
  // The library (1.20) reads that to find nvidia-fs, and reads on for ever where it can't.
  if (::access("/proc/modules", R_OK) != 0) {
    return {false, "this system has no /proc/modules to read, without which libcufile never comes back"};
  }
  const Status opened = library.open_driver();
  if (opened.error != 0 && opened.error != already_open) {
    return {false, "libcufile can't be used on this machine (" + code_of(opened) + ")"};
  }
  Properties properties{};
  const Status told = library.get_properties(&properties);
  const bool straight = told.error == 0 && (properties.nvidia_fs.major_version != 0 ||
                                            (properties.features & cufile::feature_peer_to_peer) != 0);
  if (straight) return {true, ""};
  return {true, "this machine has no nvidia-fs: libcufile reads into the host's memory, and copies from there"};
}

DeviceFile::DeviceFile(int descriptor) {
  cufile::Descriptor described{};
  described.type = cufile::type_of_descriptors;
  described.handle.descriptor = descriptor;
  const Status status = functions().register_file(&handle_, &described);
  if (status.error != 0) throw CudaError("libcufile refuses the file (" + code_of(status) + ")");
}

DeviceFile::~DeviceFile() { functions().deregister_file(handle_); }

std::int64_t DeviceFile::read(std::span<std::byte> memory, std::size_t at, std::size_t bytes,
                              std::uint64_t offset) const noexcept {
  return functions().read(handle_, memory.data(), bytes, static_cast<off_t>(offset), static_cast<off_t>(at));
}

}  // namespace slidestream::runtime::cuda
