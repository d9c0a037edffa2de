#pragma once

#include <cstdint>
#include <optional>

#include <slidestream/results.hpp>

#include "ledger/database.hpp"

/// \file
/// What a slide's result has besides its row and its map: artifacts and values, in the tables `artifacts` and
/// `figures`.

namespace slidestream {

/// Puts a slide's attachments in the place of its earlier ones, and returns the digest of all of them together; nothing
/// where there are none. A failed slide has none. \throws OutputError.
std::optional<std::uint64_t> store_attachments(Database& database, std::int64_t slide, const SlideResult& result);

/// Reads the attachments of one slide after the other.
class AttachmentReader {
 public:
  explicit AttachmentReader(Database& database) : database_(database) {}

  /// Fills in artifacts and values. False when they aren't what was written: their digest isn't `digest`,
  /// or an artifact's path leads out of the output folder without being absolute. \throws OutputError.
  bool read(std::int64_t slide, std::uint64_t digest, SlideResult& result);

 private:
  Database& database_;
  std::optional<Statement> select_;  ///< prepared when it is needed first: most runs have none
};

/// Whether two results of the same slide have the same attachments, wherever the files lie.
bool same_attachments(const SlideResult& a, const SlideResult& b);

/// Whether a path of an artifact is one inside the output folder: relative, and without steps upwards.
bool is_inside(const std::string& file);

}  // namespace slidestream
