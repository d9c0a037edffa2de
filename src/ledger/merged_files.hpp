#pragma once

#include <filesystem>

#include "ledger/ledger_view.hpp"
#include "ledger/merge.hpp"

namespace slidestream {

/// Counts files of slides that aren't found as they were made, by kind and size, and warns of them and of links. Files
/// stay in the folders that were joined.
void tell_absent(LedgerView& view, const std::filesystem::path& out, MergeResult& result);

}  // namespace slidestream
