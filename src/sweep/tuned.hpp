#pragma once

#include <string>

#include "sweep/sweep.hpp"

namespace slidestream {

/// "0.412 s against 0.534 s of the base: 22.8 % less time (...)", or "no significant difference ...".
std::string verdict_text(const Verdict& verdict);

/// The winner as a configuration file: where, when and by how much as a comment, then every key that differs from its
/// default or was swept.
std::string tuned_toml(const Sweep& sweep, const Verdict& verdict);

}  // namespace slidestream
