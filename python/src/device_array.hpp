#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bindings.hpp"
#include "tiling/device_tiles.hpp"

namespace slidestream::python {

/// Bytes on a device, as Python sees them: row after row without gaps. Others share the memory by DLPack, or by the
/// interface that CuPy and Numba know; it is theirs as long as one of them holds it.
class DeviceArray {
 public:
  DeviceArray(std::shared_ptr<DeviceLease> memory, std::vector<std::int64_t> shape)
      : memory_(std::move(memory)), shape_(std::move(shape)) {}

  const std::vector<std::int64_t>& shape() const noexcept { return shape_; }
  std::size_t size() const noexcept;
  const DeviceLease& memory() const noexcept { return *memory_; }

  /// A capsule as the array API's `__dlpack__` gives it. What was written there is whole, so that no stream has to
  /// wait; `stream` is remembered for the day when the memory is used again. \throws Python's BufferError
  nb::object dlpack(const nb::object& stream, const nb::object& max_version, const nb::object& device,
                    const nb::object& copy) const;
  nb::dict cuda_array_interface() const;
  /// A copy in the host's memory.
  Array<std::uint8_t> numpy() const;

 private:
  std::shared_ptr<DeviceLease> memory_;
  std::vector<std::int64_t> shape_;
};

void bind_device_array(nb::module_& module);

}  // namespace slidestream::python
