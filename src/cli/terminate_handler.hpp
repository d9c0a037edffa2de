#pragma once

namespace slidestream::cli {

/// From now on an exception that nobody can catch (in a thread, or below a function that mustn't throw) is one line on
/// standard error, and the process ends: with `failed_status` where memory or a thread couldn't be had, else with 3.
/// What was done is in the ledger.
void set_terminate_handler() noexcept;

}  // namespace slidestream::cli
