#include "bindings.hpp"

#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>

namespace slidestream::python {

namespace {

/// Later ones are asked first, so that a derived class comes behind its base.
void bind_errors(nb::module_& module) {
  const nb::exception<Error> error(module, "Error", PyExc_RuntimeError);
  const nb::exception<ConfigError> config_error(module, "ConfigError", error);
  const nb::exception<SlideError> slide_error(module, "SlideError", error);
  const nb::exception<StorageError> storage_error(module, "StorageError", slide_error);
  const nb::exception<TileError> tile_error(module, "TileError", error);
  const nb::exception<CudaError> cuda_error(module, "CudaError", error);
  const nb::exception<OutputError> output_error(module, "OutputError", error);
}

}  // namespace

NB_MODULE(_core, module) {
  module.attr("__version__") = version();
  bind_errors(module);
  bind_slide(module);
  bind_tiles(module);
  bind_run(module);
}

}  // namespace slidestream::python
