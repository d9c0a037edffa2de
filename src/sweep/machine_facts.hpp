#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace slidestream {

std::string host_name();
/// The processor's model, as the kernel names it.
std::string processor_name();
/// "2026-11-21T19:00:00Z"
std::string time_text();

/// Memory that can still be had without swapping, by the system's account and by the limit of this process's control
/// group; nothing where neither says.
std::optional<std::uint64_t> available_memory();

/// Sets the process's peak of resident memory back to what is resident now. False where the system declines.
bool reset_peak_memory() noexcept;
/// The peak since then, or since the process began.
std::optional<std::uint64_t> peak_memory();

}  // namespace slidestream
