#include "ledger/versions.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "sink/file_digest.hpp"

namespace slidestream {

namespace {

// Paths are bytes and needn't be UTF-8. `position` and `mine` belong to the manifest of the last start: a slide that
// it didn't name has no position. In joined results `mine` says more (merge_places.cpp). `ended_at` is in microseconds
// since 1970. Counts are unsigned 64-bit numbers, the lowest byte first; sums decimal text, for they have 128 bits.
// Digests are XXH64, of a row's result (row_digest.hpp) and of a map's bytes. Each row that ended has one, and each
// map.

constexpr std::string_view meta = "CREATE TABLE meta(name TEXT PRIMARY KEY, value BLOB NOT NULL)";

constexpr std::string_view settings = "CREATE TABLE settings(name TEXT PRIMARY KEY, value TEXT NOT NULL)";

constexpr std::string_view owner = R"sql(CREATE TABLE owner(
  one INTEGER PRIMARY KEY CHECK(one = 1), token TEXT NOT NULL, host TEXT NOT NULL, boot TEXT NOT NULL,
  pid_space TEXT NOT NULL, pid INTEGER NOT NULL, start INTEGER NOT NULL, since INTEGER NOT NULL,
  beats INTEGER NOT NULL, beat_at INTEGER NOT NULL))sql";

constexpr std::string_view maps = R"sql(CREATE TABLE maps(
  slide INTEGER NOT NULL REFERENCES slides(id), part INTEGER NOT NULL, bytes BLOB NOT NULL, UNIQUE(slide, part)))sql";

constexpr std::string_view slides_by_position = "CREATE INDEX slides_by_position ON slides(position)";

// Version 1: a failure is text, "STAGE: CAUSE".

constexpr std::string_view slides_1 = R"sql(CREATE TABLE slides(
  id INTEGER PRIMARY KEY,
  canonical BLOB NOT NULL UNIQUE,
  path BLOB NOT NULL,
  position INTEGER,
  mine INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL DEFAULT 'pending' CHECK(state IN ('pending', 'running', 'done', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  size INTEGER, modified INTEGER, hash INTEGER,
  ended_at INTEGER,
  error BLOB,
  width INTEGER, height INTEGER, codec TEXT, colour TEXT, level INTEGER, mpp REAL,
  missing_tiles INTEGER, bad_tiles INTEGER, backend TEXT, seconds REAL, file_bytes INTEGER,
  windows INTEGER, value_count INTEGER, clipped INTEGER, value_sum TEXT, square_sum TEXT,
  map_columns INTEGER, map_rows INTEGER, map_name BLOB,
  histogram BLOB, gpu_fallback_tiles INTEGER, map_digest INTEGER, digest INTEGER))sql";

LedgerVersion version_1() {
  return {1,
          {{"meta", meta, ""},
           {"settings", settings, ""},
           {"owner", owner, ""},
           {"slides", slides_1, ""},
           {"maps", maps, ""}},
          slides_by_position};
}

// Version 2: stage, tile and cause of a failure are columns of their own, and `settings` says which version the results
// were written in, also where they were joined into a ledger of a later one. What version 1 says of a failure is the
// cause, as it stands. A digest that is right becomes the right one of the row as it is seen now, a wrong one a wrong
// one.

constexpr std::string_view slides_2 = R"sql(CREATE TABLE slides(
  id INTEGER PRIMARY KEY,
  canonical BLOB NOT NULL UNIQUE,
  path BLOB NOT NULL,
  position INTEGER,
  mine INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL DEFAULT 'pending' CHECK(state IN ('pending', 'running', 'done', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  size INTEGER, modified INTEGER, hash INTEGER,
  ended_at INTEGER,
  stage TEXT, tile INTEGER, cause BLOB,
  width INTEGER, height INTEGER, codec TEXT, colour TEXT, level INTEGER, mpp REAL,
  missing_tiles INTEGER, bad_tiles INTEGER, backend TEXT, seconds REAL, file_bytes INTEGER,
  windows INTEGER, value_count INTEGER, clipped INTEGER, value_sum TEXT, square_sum TEXT,
  map_columns INTEGER, map_rows INTEGER, map_name BLOB,
  histogram BLOB, gpu_fallback_tiles INTEGER, map_digest INTEGER, digest INTEGER))sql";

LedgerVersion version_2() {
  const std::string results =
      "width, height, codec, colour, level, mpp, missing_tiles, bad_tiles, backend, seconds, file_bytes, windows, "
      "value_count, clipped, value_sum, square_sum, map_columns, map_rows, ";
  const std::string digested =
      "path, state, error, " + results + "histogram, gpu_fallback_tiles, map_digest, canonical";
  const std::string digest = "row_digest(" + digested + ", NULL, NULL)";
  return {2,
          {{"meta", meta, ""},
           {"settings", settings,
            "SELECT name, value FROM settings_1 WHERE name <> 'the ledger''s version' "
            "UNION ALL SELECT 'the ledger''s version', '1'"},
           {"owner", owner, ""},
           {"slides", slides_2,
            "SELECT id, canonical, path, position, mine, state, attempts, size, modified, hash, ended_at, NULL AS "
            "stage, NULL AS tile, error AS cause, " +
                results +
                "map_name, histogram, gpu_fallback_tiles, map_digest, CASE WHEN digest IS NULL THEN NULL WHEN digest = "
                "row_digest(" +
                digested + ") THEN " + digest + " ELSE ~" + digest + " END AS digest FROM slides_1"},
           {"maps", maps, ""}},
          slides_by_position};
}

// Version 3: what a slide has besides its row, in tables of their own, by number in the run's order: files that were
// made of it, and figures that operators found. `attached` is the digest of all of it (attachments.hpp), and part of
// the row's; where it is NULL there is none. `image_name` is what the names of the slide's images begin with.

constexpr std::string_view slides_3 = R"sql(CREATE TABLE slides(
  id INTEGER PRIMARY KEY,
  canonical BLOB NOT NULL UNIQUE,
  path BLOB NOT NULL,
  position INTEGER,
  mine INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL DEFAULT 'pending' CHECK(state IN ('pending', 'running', 'done', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  size INTEGER, modified INTEGER, hash INTEGER,
  ended_at INTEGER,
  stage TEXT, tile INTEGER, cause BLOB,
  width INTEGER, height INTEGER, codec TEXT, colour TEXT, level INTEGER, mpp REAL,
  missing_tiles INTEGER, bad_tiles INTEGER, backend TEXT, seconds REAL, file_bytes INTEGER,
  windows INTEGER, value_count INTEGER, clipped INTEGER, value_sum TEXT, square_sum TEXT,
  map_columns INTEGER, map_rows INTEGER, map_name BLOB,
  histogram BLOB, gpu_fallback_tiles INTEGER, map_digest INTEGER, attached INTEGER, image_name BLOB,
  digest INTEGER))sql";

constexpr std::string_view artifacts = R"sql(CREATE TABLE artifacts(
  slide INTEGER NOT NULL REFERENCES slides(id), number INTEGER NOT NULL, operator TEXT NOT NULL, product TEXT NOT NULL,
  file BLOB NOT NULL, bytes INTEGER NOT NULL, digest INTEGER NOT NULL, UNIQUE(slide, number)))sql";

constexpr std::string_view figures = R"sql(CREATE TABLE figures(
  slide INTEGER NOT NULL REFERENCES slides(id), number INTEGER NOT NULL, name TEXT NOT NULL, value REAL,
  UNIQUE(slide, number)))sql";

LedgerVersion version_3() {
  const std::string results =
      "width, height, codec, colour, level, mpp, missing_tiles, bad_tiles, backend, seconds, file_bytes, windows, "
      "value_count, clipped, value_sum, square_sum, map_columns, map_rows, ";
  const std::string digested =
      "path, state, cause, " + results + "histogram, gpu_fallback_tiles, map_digest, canonical, stage, tile";
  const std::string digest = "row_digest(" + digested + ", NULL, NULL)";
  return {3,
          {{"meta", meta, ""},
           {"settings", settings, ""},
           {"owner", owner, ""},
           {"slides", slides_3,
            "SELECT id, canonical, path, position, mine, state, attempts, size, modified, hash, ended_at, stage, tile, "
            "cause, " +
                results +
                "map_name, histogram, gpu_fallback_tiles, map_digest, NULL AS attached, NULL AS image_name, CASE WHEN "
                "digest IS NULL THEN NULL WHEN digest = row_digest(" +
                digested + ") THEN " + digest + " ELSE ~" + digest + " END AS digest FROM slides_2"},
           {"maps", maps, ""},
           {"artifacts", artifacts,
            "SELECT NULL AS slide, NULL AS number, NULL AS operator, NULL AS product, NULL AS file, NULL AS bytes, "
            "NULL AS digest WHERE FALSE"},
           {"figures", figures, "SELECT NULL AS slide, NULL AS number, NULL AS name, NULL AS value WHERE FALSE"}},
          slides_by_position};
}

// Version 4: the same tables. What `artifacts` says of a file of more than a block is another digest
// (sink/file_digest.hpp), and those of earlier versions are as they were: `settings` says which they are.

LedgerVersion version_4() {
  LedgerVersion same = version_3();
  same.number = 4;
  for (LedgerTable& table : same.tables) table.from_before.clear();
  return same;
}

// Version 5: `side` is a digest of what is read of a slide besides its file (side_inputs.hpp); where it is NULL there
// is nothing.

constexpr std::string_view slides_5 = R"sql(CREATE TABLE slides(
  id INTEGER PRIMARY KEY,
  canonical BLOB NOT NULL UNIQUE,
  path BLOB NOT NULL,
  position INTEGER,
  mine INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL DEFAULT 'pending' CHECK(state IN ('pending', 'running', 'done', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  size INTEGER, modified INTEGER, hash INTEGER, side INTEGER,
  ended_at INTEGER,
  stage TEXT, tile INTEGER, cause BLOB,
  width INTEGER, height INTEGER, codec TEXT, colour TEXT, level INTEGER, mpp REAL,
  missing_tiles INTEGER, bad_tiles INTEGER, backend TEXT, seconds REAL, file_bytes INTEGER,
  windows INTEGER, value_count INTEGER, clipped INTEGER, value_sum TEXT, square_sum TEXT,
  map_columns INTEGER, map_rows INTEGER, map_name BLOB,
  histogram BLOB, gpu_fallback_tiles INTEGER, map_digest INTEGER, attached INTEGER, image_name BLOB,
  digest INTEGER))sql";

LedgerVersion version_5() {
  LedgerVersion made = version_4();
  made.number = 5;
  LedgerTable& slides = *std::ranges::find(made.tables, "slides", &LedgerTable::name);
  slides.create = slides_5;
  slides.from_before =
      "SELECT id, canonical, path, position, mine, state, attempts, size, modified, hash, NULL AS side, ended_at, "
      "stage, tile, cause, width, height, codec, colour, level, mpp, missing_tiles, bad_tiles, backend, seconds, "
      "file_bytes, windows, value_count, clipped, value_sum, square_sum, map_columns, map_rows, map_name, histogram, "
      "gpu_fallback_tiles, map_digest, attached, image_name, digest FROM slides_4";
  return made;
}

}  // namespace

std::span<const LedgerVersion> ledger_versions() {
  static const std::array versions = {version_1(), version_2(), version_3(), version_4(), version_5()};
  static_assert(versions.size() == current_ledger_version);
  static_assert(most_bytes_of_one_digest == digest_block);
  return versions;
}

}  // namespace slidestream
