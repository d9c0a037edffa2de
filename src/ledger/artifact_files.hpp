#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <slidestream/results.hpp>

#include "ledger/database.hpp"

/// \file
/// The files of artifacts beside a ledger.

namespace slidestream {

/// What is wrong with the first of the files that isn't there as it was made: "FILE is missing", or that its size is
/// another; empty when all are there. Their content isn't read.
std::string first_unmade(const std::filesystem::path& folder, const std::vector<Artifact>& artifacts);

/// Removes the files that lie in the folder.
void remove_artifacts(const std::filesystem::path& folder, const std::vector<Artifact>& artifacts) noexcept;

/// Removes those that a ledger listed and lists no more, as far as they lie in its folder: no link leads out of it.
void remove_former_artifacts(const std::filesystem::path& folder, std::vector<Artifact> former,
                             const std::vector<Artifact>& current) noexcept;

/// Moves the artifacts that a ledger lists, as far as they lie in its folder (no link leads out of it), and unfinished
/// files of its slides' names, into the folder `aside`, under the same names. What else lies beside them stays.
/// \throws OutputError.
void move_artifacts(Database& database, const std::filesystem::path& folder, const std::filesystem::path& aside);

/// The path that an artifact of the folder `from` has in a ledger of the folder `to`: absolute unless it lies in there.
std::string artifact_elsewhere(const std::filesystem::path& from, const std::string& file,
                               const std::filesystem::path& to);

}  // namespace slidestream
