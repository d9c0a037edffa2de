#include "device_array.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

namespace slidestream::python {

namespace {

/// What DLPack passes on, as its header declares it (dlpack.h, 1.0).
namespace dl {

constexpr std::int32_t cuda = 2;
constexpr std::uint8_t unsigned_integer = 1;

struct Device {
  std::int32_t type;
  std::int32_t number;
};
struct Type {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct Tensor {
  void* data;
  Device device;
  std::int32_t dimensions;
  Type type;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
struct Managed {
  static constexpr const char* name = "dltensor";
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);
};
struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};
struct ManagedVersioned {
  static constexpr const char* name = "dltensor_versioned";
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned*);
  std::uint64_t flags;
  Tensor tensor;
};

}  // namespace dl

/// A tensor that others hold, with what it keeps.
template <class Managed>
struct Exported {
  Managed managed{};
  std::shared_ptr<DeviceLease> memory;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
};

std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// Whoever takes a capsule's tensor renames the capsule.
template <class Managed>
void drop_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, Managed::name) == 0) return;
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Managed::name));
  managed->deleter(managed);
}

template <class Managed>
nb::object export_as(const std::shared_ptr<DeviceLease>& memory, const std::vector<std::int64_t>& shape) {
  auto exported = std::make_unique<Exported<Managed>>();
  exported->memory = memory;
  exported->shape = shape;
  exported->strides = strides_of(shape);
  Managed& managed = exported->managed;
  managed.tensor.data = exported->memory->data();
  managed.tensor.device = {dl::cuda, exported->memory->device()};
  managed.tensor.dimensions = static_cast<std::int32_t>(shape.size());
  managed.tensor.type = {dl::unsigned_integer, 8, 1};
  managed.tensor.shape = exported->shape.data();
  managed.tensor.strides = exported->strides.data();
  if constexpr (std::is_same_v<Managed, dl::ManagedVersioned>) managed.version = {1, 0};
  managed.context = exported.get();
  // By any thread, with or without the interpreter's lock.
  managed.deleter = [](Managed* self) { delete static_cast<Exported<Managed>*>(self->context); };
  PyObject* const capsule = PyCapsule_New(&managed, Managed::name, &drop_capsule<Managed>);
  if (capsule == nullptr) throw nb::python_error();
  static_cast<void>(exported.release());
  return nb::steal(capsule);
}

[[noreturn]] void refuse(const std::string& why) {
  PyErr_SetString(PyExc_BufferError, why.c_str());
  throw nb::python_error();
}

}  // namespace

std::size_t DeviceArray::size() const noexcept {
  return static_cast<std::size_t>(std::accumulate(shape_.begin(), shape_.end(), std::int64_t{1}, std::multiplies<>()));
}

nb::object DeviceArray::dlpack(const nb::object& stream, const nb::object& max_version, const nb::object& device,
                               const nb::object& copy) const {
  if (!device.is_none()) {
    const auto [type, number] = nb::cast<std::pair<int, int>>(device);
    if (type != dl::cuda || number != memory_->device()) {
      refuse("the array lies on cuda:" + std::to_string(memory_->device()) +
             "; copy it with numpy() or by a framework");
    }
  }
  if (!copy.is_none() && nb::cast<bool>(copy)) refuse("copies are made by numpy(), or by a framework");
  if (!stream.is_none()) {
    const auto number = nb::cast<std::int64_t>(stream);
    // 1 and 2 are the default streams, which are known; -1: the consumer sees to it all.
    if (number == 0 || number < -1) refuse("stream is " + std::to_string(number) + ", which names no stream of CUDA");
    // NOLINTNEXTLINE(performance-no-int-to-ptr): DLPack gives streams as numbers
    if (number > 2) memory_->used_on(reinterpret_cast<void*>(static_cast<std::uintptr_t>(number)));
  }
  const bool versioned = !max_version.is_none() && nb::cast<std::pair<int, int>>(max_version).first >= 1;
  return versioned ? export_as<dl::ManagedVersioned>(memory_, shape_) : export_as<dl::Managed>(memory_, shape_);
}

nb::dict DeviceArray::cuda_array_interface() const {
  nb::dict found;
  nb::list shape;
  for (const std::int64_t length : shape_) shape.append(length);
  found["shape"] = nb::tuple(shape);
  found["typestr"] = "|u1";
  found["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(memory_->data()), false);
  found["strides"] = nb::none();
  found["version"] = 3;
  found["stream"] = nb::none();
  return found;
}

Array<std::uint8_t> DeviceArray::numpy() const {
  auto held = std::make_shared<std::vector<std::uint8_t>>();
  {
    const Unlocked unlocked;
    held->resize(size());
    memory_->copy_to_host(held->data(), held->size());
  }
  auto* const owner = new std::shared_ptr<std::vector<std::uint8_t>>(held);
  const nb::capsule capsule(
      owner, [](void* at) noexcept { delete static_cast<std::shared_ptr<std::vector<std::uint8_t>>*>(at); });
  const std::vector<std::size_t> shape(shape_.begin(), shape_.end());
  return Array<std::uint8_t>(held->data(), shape.size(), shape.data(), capsule);
}

void bind_device_array(nb::module_& module) {
  nb::class_<DeviceArray>(
      module, "DeviceArray",
      "Bytes in the memory of a CUDA device, without gaps. Frameworks share the memory without a copy: "
      "``torch.from_dlpack(array)``, ``cupy.from_dlpack(array)``, ``jax.dlpack.from_dlpack(array)``. It "
      "is theirs as long as one of them refers to it, and is used again afterwards, behind the work that "
      "is then on the default stream and on the streams that were named to ``__dlpack__``.")
      .def_prop_ro(
          "shape", [](const DeviceArray& array) { return nb::tuple(nb::cast(array.shape())); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "dtype", [](const DeviceArray&) { return nb::module_::import_("numpy").attr("dtype")("uint8"); },
          nb::sig("def dtype(self) -> numpy.dtype[numpy.uint8]"))
      .def_prop_ro("nbytes", &DeviceArray::size, "Bytes.")
      .def_prop_ro(
          "device", [](const DeviceArray& array) { return "cuda:" + std::to_string(array.memory().device()); },
          "Where it lies: ``\"cuda:0\"``, ...")
      .def("__len__", [](const DeviceArray& array) { return array.shape().front(); })
      .def("__repr__",
           [](const DeviceArray& array) {
             std::string sides;
             for (const std::int64_t length : array.shape()) {
               sides += (sides.empty() ? "" : " x ") + std::to_string(length);
             }
             return "DeviceArray(" + sides + ", uint8, cuda:" + std::to_string(array.memory().device()) + ")";
           })
      .def("numpy", &DeviceArray::numpy, "A copy in the host's memory. Waits for it, without the GIL.")
      .def("__dlpack_device__", [](const DeviceArray& array) { return std::pair(dl::cuda, array.memory().device()); })
      .def("__dlpack__", &DeviceArray::dlpack, nb::kw_only(), nb::arg("stream").none() = nb::none(),
           nb::arg("max_version").none() = nb::none(), nb::arg("dl_device").none() = nb::none(),
           nb::arg("copy").none() = nb::none(),
           "The array API's. All of the array is written, so that no stream waits; one that is named must live as long "
           "as what is made of the capsule. Raises BufferError for another device, a copy, and stream 0.")
      .def_prop_ro("__cuda_array_interface__", &DeviceArray::cuda_array_interface);
}

}  // namespace slidestream::python
