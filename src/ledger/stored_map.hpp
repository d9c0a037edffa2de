#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include <slidestream/results.hpp>

#include "ledger/database.hpp"

/// \file
/// Maps in the table `maps`: their values as bytes, in parts that SQLite takes.

namespace slidestream {

/// Visits the parts of a map's bytes in order.
using MapParts = std::function<void(const std::function<void(std::span<const std::byte>)>& visit)>;

/// The parts of a map in memory; it stays the caller's.
MapParts parts_of(const WindowMap& map);
/// The parts of a slide's map in a ledger.
MapParts parts_of(Database& database, std::int64_t slide);

/// XXH64 of a map's bytes; nothing where there are none.
std::optional<std::uint64_t> digest_of(const MapParts& parts);

/// Puts a map in the place of the slide's earlier one, and returns its digest; nothing without bytes.
std::optional<std::uint64_t> store_map(Database& database, std::int64_t slide, const MapParts& parts);

/// Fills in the values of a map whose columns and rows are known. False when the ledger's isn't as large, or isn't what
/// was written.
bool read_stored_map(Database& database, std::int64_t slide, WindowMap& map);

/// Of a slide's map whose values aren't what was written.
std::string damaged_map_text(const std::filesystem::path& ledger, const std::string& slide);

}  // namespace slidestream
