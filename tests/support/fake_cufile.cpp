// A libcufile.so.0 that reads into the memory of made-up devices, which is the host's.
#include "support/fake_cufile.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "runtime/cuda/cufile.hpp"

namespace {

using slidestream::test::FakeCufile;

namespace cufile = slidestream::runtime::cuda::cufile;

FakeCufile fake;

/// As the real one does it where a file's reads go past the system's cache: by whole blocks, through memory of its own.
ssize_t read_blocks(int descriptor, void* to, std::size_t bytes, off_t offset) {
  constexpr std::size_t block = 4096;
  const auto before = static_cast<std::size_t>(offset) % block;
  const std::size_t whole = (before + bytes + block - 1) / block * block;
  const std::unique_ptr<void, void (*)(void*)> memory(std::aligned_alloc(block, whole), std::free);
  const ssize_t got = ::pread(descriptor, memory.get(), whole, offset - static_cast<off_t>(before));
  if (got < 0) return got;
  const std::size_t useful = std::min(bytes, static_cast<std::size_t>(got) - std::min<std::size_t>(got, before));
  std::memcpy(to, static_cast<char*>(memory.get()) + before, useful);
  return static_cast<ssize_t>(useful);
}

}  // namespace

extern "C" {

// NOLINTBEGIN(readability-identifier-naming): NVIDIA's names.
FakeCufile* slidestream_fake_cufile() { return &fake; }

cufile::Status cuFileDriverOpen() {
  static std::atomic<bool> open{false};
  if (fake.driver_error != 0) return {fake.driver_error, 0};
  return {open.exchange(true) ? cufile::already_open : 0, 0};
}

cufile::Status cuFileDriverGetProperties(cufile::Properties* properties) {
  properties->nvidia_fs.major_version = fake.nvidia_fs;
  return {0, 0};
}

cufile::Status cuFileHandleRegister(void** handle, cufile::Descriptor* file) {
  if (fake.register_error != 0) return {fake.register_error, 0};
  if (file->type != cufile::type_of_descriptors) return {5022, 0};
  // A handle is what `deregister` frees.
  *handle = new int(file->handle.descriptor);
  ++fake.files;
  return {0, 0};
}

void cuFileHandleDeregister(void* handle) {
  delete static_cast<int*>(handle);
  --fake.files;
}

ssize_t cuFileRead(void* handle, void* memory, std::size_t bytes, off_t offset, off_t at) {
  if (fake.failing_reads > 0 && fake.failing_reads.fetch_sub(1) > 0) {
    const std::int64_t result = fake.result;
    if (result < 0) {
      errno = EIO;
      return static_cast<ssize_t>(result);
    }
    bytes = std::min(bytes, static_cast<std::size_t>(result));
  }
  const ssize_t got = read_blocks(*static_cast<int*>(handle), static_cast<char*>(memory) + at, bytes, offset);
  if (got > 0) fake.bytes += static_cast<std::uint64_t>(got);
  return got;
}
// NOLINTEND(readability-identifier-naming)
}
