#include "ledger/attachments.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "sink/content_hash.hpp"

namespace slidestream {

namespace {

/// Kind, number, and what is kept of each; last its digest.
constexpr const char* select_all =
    "SELECT 0, number, operator, product, file, bytes, digest, row_digest(0, number, operator, product, file, bytes, "
    "digest) FROM artifacts WHERE slide = ?1 UNION ALL "
    "SELECT 1, number, name, NULL, NULL, value, NULL, row_digest(1, number, name, value) FROM figures WHERE slide = ?1 "
    "ORDER BY 1, 2";
constexpr std::int64_t artifact_kind = 0;

/// Visits a slide's rows, and returns the digest of all; nothing where there are none.
template <class Visit>
std::optional<std::uint64_t> visit_rows(Statement& select, std::int64_t slide, const Visit& visit) {
  ContentHash hash;
  bool any = false;
  select.bind(1, slide);
  while (select.step()) {
    any = true;
    const std::int64_t digest = select.integer(7);
    hash.add(std::as_bytes(std::span(&digest, 1)));
    visit(select);
  }
  return any ? std::optional(hash.value()) : std::nullopt;
}

void add_row(const Statement& row, SlideResult& result) {
  if (row.integer(0) == artifact_kind) {
    result.artifacts.push_back({row.text(2), row.text(3), row.text(4), static_cast<std::uint64_t>(row.integer(5)),
                                static_cast<std::uint64_t>(row.integer(6))});
  } else {
    // SQLite has no NaN: it keeps NULL.
    result.values.push_back({row.text(2), row.is_null(5) ? std::numeric_limits<double>::quiet_NaN() : row.real(5)});
  }
}

bool can_be(const Artifact& artifact) {
  const auto is_text = [](const std::string& text) { return text.find('\0') == std::string::npos; };
  return is_text(artifact.maker) && is_text(artifact.product) && is_text(artifact.file) &&
         artifact.bytes <= std::uint64_t{1} << 62 &&
         (is_inside(artifact.file) || std::filesystem::path(artifact.file).is_absolute());
}

}  // namespace

bool is_inside(const std::string& file) {
  const std::filesystem::path path = file;
  return path.is_relative() && path.has_filename() && std::ranges::find(path, "..") == path.end() &&
         std::ranges::find(path, ".") == path.end();
}

std::optional<std::uint64_t> store_attachments(Database& database, std::int64_t slide, const SlideResult& result) {
  for (const char* table : {"artifacts", "figures"}) {
    Statement remove(database, std::string("DELETE FROM ") + table + " WHERE slide = ?1");
    remove.bind(1, slide).run();
  }
  if (!result.done || (result.artifacts.empty() && result.values.empty())) return std::nullopt;
  Statement artifact(database, "INSERT INTO artifacts VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)");
  std::int64_t number = 0;
  for (const Artifact& file : result.artifacts) {
    artifact.bind(1, slide).bind(2, number++).bind(3, std::string_view(file.maker));
    artifact.bind(4, std::string_view(file.product)).bind_blob(5, std::string_view(file.file));
    artifact.bind(6, static_cast<std::int64_t>(file.bytes)).bind(7, static_cast<std::int64_t>(file.digest)).run();
  }
  Statement figure(database, "INSERT INTO figures VALUES(?1, ?2, ?3, ?4)");
  number = 0;
  for (const NamedValue& value : result.values) {
    figure.bind(1, slide).bind(2, number++).bind(3, std::string_view(value.name)).bind(4, value.value).run();
  }
  Statement select(database, select_all);
  return visit_rows(select, slide, [](const Statement&) {});
}

bool AttachmentReader::read(std::int64_t slide, std::uint64_t digest, SlideResult& result) {
  if (!select_) select_.emplace(database_, select_all);
  result.artifacts.clear();
  result.values.clear();
  const auto found = visit_rows(*select_, slide, [&result](const Statement& row) { add_row(row, result); });
  return found == digest && std::ranges::all_of(result.artifacts, can_be);
}

bool same_attachments(const SlideResult& a, const SlideResult& b) {
  const auto same_file = [](const Artifact& x, const Artifact& y) {
    return x.maker == y.maker && x.product == y.product && x.bytes == y.bytes && x.digest == y.digest;
  };
  const auto same_value = [](const NamedValue& x, const NamedValue& y) {
    return x.name == y.name && (x.value == y.value || (std::isnan(x.value) && std::isnan(y.value)));
  };
  return std::ranges::equal(a.artifacts, b.artifacts, same_file) && std::ranges::equal(a.values, b.values, same_value);
}

}  // namespace slidestream
