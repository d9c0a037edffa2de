#pragma once

#include <slidestream/error.hpp>

namespace slidestream::runtime {

/// A GPU has no memory left for what was asked. It computes on, and may have some later.
class DeviceFullError : public CudaError {
 public:
  using CudaError::CudaError;
};

}  // namespace slidestream::runtime
