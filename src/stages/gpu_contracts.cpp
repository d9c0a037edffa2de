#include "stages/gpu.hpp"

namespace slidestream {

const runtime::StageContract upload_contract = {
    "upload",
    runtime::Payload::luminance_rows,
    runtime::MemorySpace::host,
    runtime::Payload::luminance_rows,
    runtime::MemorySpace::device,
    runtime::Concurrency::serial,
};

const runtime::StageContract device_compute_contract = {
    "compute",
    runtime::Payload::luminance_rows,
    runtime::MemorySpace::device,
    runtime::Payload::partial_sums,
    runtime::MemorySpace::host,
    runtime::Concurrency::serial,
};

}  // namespace slidestream
