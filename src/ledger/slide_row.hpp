#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <slidestream/results.hpp>

#include "ledger/attachments.hpp"
#include "ledger/database.hpp"
#include "ledger/identity.hpp"

/// \file
/// A slide's result as the columns of the table `slides`, and back. Whatever a ledger holds, what comes back is a
/// result that could have been written, or an OutputError.

namespace slidestream {

/// What a row's digest is of, in order: all that is a result but for the map's name, which may change without the rest.
/// What lies in other tables counts by its own digest.
inline constexpr const char* row_digest_columns =
    "path, state, cause, width, height, codec, colour, level, mpp, missing_tiles, bad_tiles, backend, seconds, "
    "file_bytes, windows, value_count, clipped, value_sum, square_sum, map_columns, map_rows, histogram, "
    "gpu_fallback_tiles, map_digest, canonical, stage, tile, attached, image_name";

/// `SELECT` + these: what `RowReader` reads, from column 0 on. The last but two says whether the digest is the row's.
inline const std::string row_columns =
    "path, state, cause, width, height, codec, colour, level, mpp, missing_tiles, bad_tiles, backend, seconds, "
    "file_bytes, windows, value_count, clipped, value_sum, square_sum, map_columns, map_rows, map_name, histogram, "
    "gpu_fallback_tiles, map_digest, stage, tile, digest IS row_digest(" +
    std::string(row_digest_columns) + "), attached, id";
inline constexpr int row_column_count = 30;
/// Of them, the map's digest.
inline constexpr int map_digest_column = 24;

/// `UPDATE slides SET` + these: what `bind_row` binds, as ?1 on. The path isn't among them.
inline constexpr const char* row_assignments =
    "state = ?1, cause = ?2, width = ?3, height = ?4, codec = ?5, colour = ?6, level = ?7, mpp = ?8, "
    "missing_tiles = ?9, bad_tiles = ?10, backend = ?11, seconds = ?12, file_bytes = ?13, windows = ?14, "
    "value_count = ?15, clipped = ?16, value_sum = ?17, square_sum = ?18, map_columns = ?19, map_rows = ?20, "
    "map_name = ?21, histogram = ?22, gpu_fallback_tiles = ?23, map_digest = ?24, stage = ?25, tile = ?26, "
    "attached = ?27";
inline constexpr int row_assignment_count = 27;

/// Digests of what a row's slide has in other tables; nothing where it has none there.
struct RowDigests {
  std::optional<std::uint64_t> map;
  std::optional<std::uint64_t> attached;
};

/// `histogram` keeps the bytes of the counts, and behind them of the other statistics' counters, until the statement is
/// reset.
void bind_row(Statement& statement, const SlideResult& slide, const RowDigests& digests,
              std::vector<std::byte>& histogram);

/// Gives a row that was written the digest of what is in it now.
void seal_row(Database& database, std::int64_t id);

/// Reads slides that are done or failed from statements of a database, with what is attached to them.
class RowReader {
 public:
  RowReader(Database& database, std::size_t bins) : database_(database), bins_(bins), attachments_(database) {}

  /// All but the map's values. `map_file` is set where a map was stored. \throws OutputError naming the database's
  /// file and the slide where it can't be what was written, or a digest is another.
  SlideResult read(const Statement& row);

 private:
  Database& database_;
  std::size_t bins_;
  AttachmentReader attachments_;
};

/// Whether two results of the same slide say the same: all but where and how long.
bool same_result(const SlideResult& a, const SlideResult& b);

/// An unsigned number of 64 bits, which SQLite keeps as a signed one; nothing for NULL.
std::optional<std::uint64_t> unsigned_or_null(const Statement& statement, int column) noexcept;

/// Size, time and hash of a slide's file, and the digest of its side inputs, as four values from number `first` on.
void bind_identity(Statement& statement, int first, const std::optional<SlideIdentity>& identity);
/// The same, read; nothing where there is none.
std::optional<SlideIdentity> identity_in(const Statement& row, int first);

/// A decimal number of 128 bits; false when the text isn't one.
bool parse_decimal(std::string_view text, Int128& value) noexcept;

}  // namespace slidestream
