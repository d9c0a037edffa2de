#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <slidestream/results.hpp>

#include "ledger/database.hpp"

/// \file
/// A slide's result as the columns of the table `slides`, and back. Whatever a ledger holds, what comes back is a
/// result that could have been written, or an OutputError.

namespace slidestream {

/// `SELECT` + these: what `read_row` reads, from column 0 on.
inline constexpr const char* row_columns =
    "path, state, error, width, height, codec, colour, level, mpp, missing_tiles, bad_tiles, backend, seconds, "
    "file_bytes, windows, value_count, clipped, value_sum, square_sum, map_columns, map_rows, map_name, histogram";
inline constexpr int row_column_count = 23;

/// `UPDATE slides SET` + these: what `bind_row` binds, as ?1 on. The path isn't among them.
inline constexpr const char* row_assignments =
    "state = ?1, error = ?2, width = ?3, height = ?4, codec = ?5, colour = ?6, level = ?7, mpp = ?8, "
    "missing_tiles = ?9, bad_tiles = ?10, backend = ?11, seconds = ?12, file_bytes = ?13, windows = ?14, "
    "value_count = ?15, clipped = ?16, value_sum = ?17, square_sum = ?18, map_columns = ?19, map_rows = ?20, "
    "map_name = ?21, histogram = ?22";
inline constexpr int row_assignment_count = 22;

/// `histogram` keeps the counts' bytes until the statement is reset.
void bind_row(Statement& statement, const SlideResult& slide, std::vector<std::byte>& histogram);

/// A slide that is done or failed, without its map's values. `map_file` is set where a map was stored.
/// \throws OutputError naming `file` and the slide.
SlideResult read_row(const Statement& statement, std::size_t bins, const std::string& file);

/// Whether two results of the same slide say the same: all but where and how long.
bool same_result(const SlideResult& a, const SlideResult& b);

/// A decimal number of 128 bits; false when the text isn't one.
bool parse_decimal(std::string_view text, Int128& value) noexcept;

}  // namespace slidestream
