#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// The tables of a ledger, version by version. A change of them is a new version at the end of the list: its tables,
/// and for each that changed how it is seen in a ledger of the version before. Nothing in an earlier version is ever
/// edited: that is what earlier ledgers are checked against, and read by. A ledger of each version is kept in
/// `tests/ledger/data/`.

namespace slidestream {

/// A table of one version.
struct LedgerTable {
  std::string_view name;
  /// The statement that makes it. Ledgers have it to the letter.
  std::string_view create;
  /// What it holds in a ledger of the version before: a SELECT from that version's tables, each named TABLE_VERSION,
  /// such as slides_1. Empty: the table is the same in both.
  std::string from_before;
};

struct LedgerVersion {
  std::int64_t number;
  std::vector<LedgerTable> tables;
  std::string_view indices;  ///< statements that make them
};

/// All that this program knows, from version 1 on without gaps. It writes the last one.
///
/// The table `owner` is the same in all of them, so that each program sees whether another uses a ledger.
std::span<const LedgerVersion> ledger_versions();

inline constexpr std::int64_t current_ledger_version = 5;

/// From this version on the digests of artifacts are `file_digest`; before, they were XXH64 of a whole file.
inline constexpr std::int64_t first_version_with_block_digests = 4;

/// Those of files of up to so many bytes are the same in all versions.
inline constexpr std::uint64_t most_bytes_of_one_digest = std::uint64_t{1} << 20;

}  // namespace slidestream
