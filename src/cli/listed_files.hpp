#pragma once

#include <filesystem>

/// \file
/// Files that runs made, which nothing else takes the place of, also with --overwrite: their ledgers would be wrong.

namespace slidestream::cli {

/// \throws ConfigError where the ledger in the folder, if there is one, lists the file
void check_unlisted(const std::filesystem::path& file, const std::filesystem::path& folder);

/// The same for each folder that the file is in, at any depth, and what runs have beside their ledgers. Nor may the
/// file lie in a folder that a ledger lists. It needn't be there. A ledger that can't be read lists nothing here. Also
/// calls `check_outside_images`.
void check_unlisted_above(const std::filesystem::path& file);

/// \throws ConfigError where the file lies in an image that is a folder, and that this program made
void check_outside_images(const std::filesystem::path& file);

}  // namespace slidestream::cli
