#pragma once

namespace slidestream::cli {

/// From now on an exception that nobody can catch (in a thread, or below a function that mustn't throw) is one line on
/// standard error, and the process ends: with `failed_status` where memory or a thread couldn't be had, else with 3.
/// What was done is in the ledger. Such a shortage is noted, and the line names slides
/// that were under way.
void set_terminate_handler() noexcept;

/// Lets the C library find what it unwinds with, by an exception through one of its functions. It looks for that at the
/// first one, as of a library that makes something once, and ends the process where it has no memory for it.
void prepare_unwinding();

}  // namespace slidestream::cli
