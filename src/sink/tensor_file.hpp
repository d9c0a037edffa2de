#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace slidestream {

/// Writes a tensor of rows x columns, float32, as `torch.save` does and `torch.load` reads, also with `weights_only`: a
/// zip archive without compression that holds a pickle of the tensor's shape and its values. At a path where nothing
/// is; rows may be 0. The same input gives the same bytes. \throws OutputError with the path, also where the values
/// have 4 GiB or more: the archive's numbers have 32 bits.
void write_tensor(const std::filesystem::path& file, std::int64_t columns, std::span<const float> values);

}  // namespace slidestream
