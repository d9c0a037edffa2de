#include "ledger/slide_row.hpp"

#include <cmath>
#include <slidestream/error.hpp>
#include <utility>

#include "config/suggest.hpp"
#include "output/text.hpp"

namespace slidestream {

namespace {

constexpr std::size_t count_bytes = 8;
constexpr std::size_t counter_bytes = 16;
__extension__ typedef unsigned __int128 UInt128;

// Of `row_columns`, the last two.
constexpr int attached_column = 28;
constexpr int id_column = 29;

/// Larger than any image, and small enough that products of two fit.
constexpr std::int64_t largest_side = std::int64_t{1} << 31;

/// The lowest byte first.
template <class Number>
void append(std::vector<std::byte>& bytes, Number value) {
  for (std::size_t k = 0; k < sizeof(Number); ++k) bytes.push_back(std::byte(value >> (8 * k) & 0xff));
}

/// Counts, and behind them the counters of the other statistics.
void to_bytes(const SpectrumSums& sums, std::vector<std::byte>& bytes) {
  bytes.clear();
  bytes.reserve(sums.histogram.size() * count_bytes + sums.counters.size() * counter_bytes);
  for (const std::uint64_t count : sums.histogram) append(bytes, count);
  for (const Int128 counter : sums.counters) append(bytes, static_cast<UInt128>(counter));
}

/// Takes a row apart and says where it is wrong.
class RowParts {
 public:
  RowParts(const Statement& row, std::size_t bins, const std::string& file) : row_(row), bins_(bins), file_(file) {}

  SlideResult read() {
    slide_.path = row_.text(0);
    require(!slide_.path.empty() && slide_.path.find('\0') == std::string::npos, "path");
    const std::string_view state = row_.bytes(1);
    require(state == "done" || state == "failed", "state");
    slide_.done = state == "done";
    read_failure();
    slide_.width = within(3, 0, largest_side, "width");
    slide_.height = within(4, 0, largest_side, "height");
    slide_.codec = row_.text(5);
    slide_.colour = row_.text(6);
    slide_.level = static_cast<int>(within(7, 0, 63, "level"));
    if (!row_.is_null(8)) slide_.mpp = row_.real(8);
    require(std::isfinite(slide_.mpp.value_or(0)), "mpp");
    slide_.missing_tiles = count(9, "missing_tiles");
    slide_.bad_tiles = count(10, "bad_tiles");
    slide_.backend = row_.text(11);
    slide_.seconds = row_.real(12);
    require(std::isfinite(slide_.seconds), "seconds");
    slide_.file_bytes = count(13, "file_bytes");
    slide_.gpu_fallback_tiles = count(23, "gpu_fallback_tiles");
    read_sums();
    if (row_.integer(27) == 0) {
      throw OutputError(file_ + ": damaged: the row of " + one_line(json_text(slide_.path)) +
                        " isn't what was written");
    }
    return std::move(slide_);
  }

 private:
  void read_failure() {
    SlideFailure failure{row_.text(25), {}, row_.text(2)};
    if (!row_.is_null(26)) failure.tile = within(26, 0, std::int64_t{1} << 62, "tile");
    if (!slide_.done) {
      slide_.fail(std::move(failure));
    } else if (!failure.cause.empty()) {
      slide_.lack(std::move(failure));
    }
  }

  void read_sums() {
    SpectrumSums& sums = slide_.sums;
    sums.histogram.assign(bins_, 0);
    if (!slide_.done) return;
    sums.windows = count(14, "windows");
    sums.values = count(15, "value_count");
    sums.clipped = count(16, "clipped");
    require(parse_decimal(row_.bytes(17), sums.sum), "value_sum");
    require(parse_decimal(row_.bytes(18), sums.sum_of_squares), "square_sum");
    slide_.map.columns = within(19, 0, largest_side, "map_columns");
    slide_.map.rows = within(20, 0, largest_side, "map_rows");
    slide_.map_file = row_.text(21);
    require(slide_.map_file.find_first_of(std::string_view("/\0", 2)) == std::string::npos, "map_name");
    const std::string_view bytes = row_.bytes(22);
    // Where nothing was counted there are no counts.
    if (row_.is_null(22) && sums.values == 0 && sums.clipped == 0 && sums.windows == 0) return;
    const std::size_t of_counts = bins_ * count_bytes;
    require(bytes.size() >= of_counts && (bytes.size() - of_counts) % counter_bytes == 0, "histogram");
    for (std::size_t i = of_counts; i < bytes.size(); i += counter_bytes) {
      UInt128 counter = 0;
      for (std::size_t k = counter_bytes; k > 0; --k) {
        counter = counter << 8 | static_cast<unsigned char>(bytes[i + k - 1]);
      }
      sums.counters.push_back(static_cast<Int128>(counter));
    }
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < bins_; ++i) {
      std::uint64_t counted = 0;
      for (std::size_t k = count_bytes; k > 0; --k) {
        counted = counted << 8 | static_cast<unsigned char>(bytes[i * count_bytes + k - 1]);
      }
      require(counted <= sums.values - total, "histogram");
      total += counted;
      sums.histogram[i] = counted;
    }
    require(total == sums.values && sums.clipped <= sums.values && sums.windows <= sums.values, "histogram");
  }

  std::int64_t within(int column, std::int64_t low, std::int64_t high, const char* name) {
    const std::int64_t value = row_.integer(column);
    require(value >= low && value <= high, name);
    return value;
  }
  /// Sums of a million slides stay within 64 bits.
  std::uint64_t count(int column, const char* name) {
    return static_cast<std::uint64_t>(within(column, 0, std::int64_t{1} << 62, name));
  }

  void require(bool holds, const char* column) const {
    if (!holds) {
      throw OutputError(file_ + ": damaged: " + column + " of " + one_line(json_text(slide_.path)) +
                        " can't be what was written");
    }
  }

  const Statement& row_;
  std::size_t bins_;
  const std::string& file_;
  SlideResult slide_;
};

}  // namespace

bool parse_decimal(std::string_view text, Int128& value) noexcept {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  // 38 digits always fit.
  if (text.empty() || text.size() > 39) return false;
  Int128 result = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    const int digit = c - '0';
    if (__builtin_mul_overflow(result, 10, &result)) return false;
    if (negative ? __builtin_sub_overflow(result, digit, &result) : __builtin_add_overflow(result, digit, &result)) {
      return false;
    }
  }
  value = result;
  return true;
}

std::optional<std::uint64_t> unsigned_or_null(const Statement& statement, int column) noexcept {
  if (statement.is_null(column)) return std::nullopt;
  return static_cast<std::uint64_t>(statement.integer(column));
}

void bind_identity(Statement& statement, int first, const std::optional<SlideIdentity>& identity) {
  if (!identity) {
    for (int i = 0; i < 4; ++i) statement.bind_null(first + i);
    return;
  }
  statement.bind(first, static_cast<std::int64_t>(identity->size)).bind(first + 1, identity->modified);
  const auto bind = [&statement](int index, const std::optional<std::uint64_t>& digest) {
    if (digest) {
      statement.bind(index, static_cast<std::int64_t>(*digest));
    } else {
      statement.bind_null(index);
    }
  };
  bind(first + 2, identity->hash);
  bind(first + 3, identity->side);
}

std::optional<SlideIdentity> identity_in(const Statement& row, int first) {
  if (row.is_null(first)) return std::nullopt;
  return SlideIdentity{static_cast<std::uint64_t>(row.integer(first)), row.integer(first + 1),
                       unsigned_or_null(row, first + 2), unsigned_or_null(row, first + 3)};
}

void seal_row(Database& database, std::int64_t id) {
  Statement update(database,
                   std::string("UPDATE slides SET digest = row_digest(") + row_digest_columns + ") WHERE id = ?1");
  update.bind(1, id).run();
}

void bind_row(Statement& statement, const SlideResult& slide, const RowDigests& digests,
              std::vector<std::byte>& histogram) {
  const auto integer = [&](int index, std::uint64_t value) { statement.bind(index, static_cast<std::int64_t>(value)); };
  const auto digest = [&](int index, std::optional<std::uint64_t> value) {
    if (value) {
      integer(index, *value);
    } else {
      statement.bind_null(index);
    }
  };
  statement.bind(1, std::string_view(slide.done ? "done" : "failed"));
  statement.bind_blob(2, std::string_view(slide.failure.cause));
  statement.bind(3, slide.width).bind(4, slide.height);
  statement.bind(5, std::string_view(slide.codec)).bind(6, std::string_view(slide.colour));
  statement.bind(7, std::int64_t{slide.level});
  if (slide.mpp) {
    statement.bind(8, *slide.mpp);
  } else {
    statement.bind_null(8);
  }
  integer(9, slide.missing_tiles);
  integer(10, slide.bad_tiles);
  statement.bind(11, std::string_view(slide.backend)).bind(12, slide.seconds);
  integer(13, slide.file_bytes);
  const SpectrumSums& sums = slide.sums;
  integer(14, sums.windows);
  integer(15, sums.values);
  integer(16, sums.clipped);
  statement.bind(17, std::string_view(to_decimal(sums.sum)));
  statement.bind(18, std::string_view(to_decimal(sums.sum_of_squares)));
  statement.bind(19, slide.map.columns).bind(20, slide.map.rows);
  statement.bind_blob(21, std::string_view(slide.map_file));
  if (slide.done && (sums.values > 0 || sums.clipped > 0 || sums.windows > 0)) {
    to_bytes(sums, histogram);
    statement.bind_blob(22, histogram);
  } else {
    statement.bind_null(22);
  }
  integer(23, slide.gpu_fallback_tiles);
  digest(24, digests.map);
  if (slide.failure.stage.empty()) {
    statement.bind_null(25);
  } else {
    statement.bind(25, std::string_view(slide.failure.stage));
  }
  if (slide.failure.tile) {
    statement.bind(26, *slide.failure.tile);
  } else {
    statement.bind_null(26);
  }
  digest(27, digests.attached);
}

SlideResult RowReader::read(const Statement& row) {
  const std::string file = database_.file().string();
  SlideResult slide = RowParts(row, bins_, file).read();
  const auto attached = unsigned_or_null(row, attached_column);
  if (attached && !attachments_.read(row.integer(id_column), *attached, slide)) {
    throw OutputError(file + ": damaged: what is attached to " + one_line(json_text(slide.path)) +
                      " isn't what was written");
  }
  return slide;
}

bool same_result(const SlideResult& a, const SlideResult& b) {
  const SpectrumSums& x = a.sums;
  const SpectrumSums& y = b.sums;
  return a.done == b.done && a.width == b.width && a.height == b.height && a.level == b.level && a.codec == b.codec &&
         a.colour == b.colour && a.mpp == b.mpp && a.missing_tiles == b.missing_tiles && a.bad_tiles == b.bad_tiles &&
         x.windows == y.windows && x.values == y.values && x.clipped == y.clipped && x.sum == y.sum &&
         x.sum_of_squares == y.sum_of_squares && x.histogram == y.histogram && x.counters == y.counters &&
         a.map.columns == b.map.columns && a.map.rows == b.map.rows && same_attachments(a, b);
}

}  // namespace slidestream
