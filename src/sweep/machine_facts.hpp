#pragma once

#include <string>

namespace slidestream {

std::string host_name();
/// The processor's model, as the kernel names it.
std::string processor_name();
/// "2026-11-21T19:00:00Z"
std::string time_text();

}  // namespace slidestream
