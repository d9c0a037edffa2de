#include "sweep/sweep_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <map>
#include <slidestream/error.hpp>
#include <string_view>
#include <system_error>

#include "config/csv.hpp"
#include "output/folders.hpp"
#include "output/text.hpp"
#include "sweep/grid.hpp"
#include "system/denied.hpp"

namespace slidestream {

namespace {

/// Far above any sweep.
constexpr std::size_t largest_file = std::size_t{256} << 20;

constexpr std::array<std::string_view, 9> stage_names = {"source", "read",    "decode",  "upload", "decode-gpu",
                                                         "carry",  "compute", "collect", "reduce"};

using Field = std::pair<std::string, std::string>;

std::string text_of(const std::optional<double>& value) { return value ? to_decimal(*value) : ""; }
std::string text_of(const std::optional<std::uint64_t>& value) { return value ? std::to_string(*value) : ""; }

std::string rate_text(std::uint64_t amount, double seconds) {
  return seconds > 0 ? to_decimal(static_cast<double>(amount) / seconds / 1e9) : "";
}

/// Columns and values of a row, in order.
std::vector<Field> fields_of(const SweepRow& row) {
  const bool done = row.status == "done";
  const auto if_done = [done](std::string text) { return done ? std::move(text) : std::string(); };
  std::vector<Field> fields = {{"date", row.date},           {"version", row.version}, {"host", row.host},
                               {"processor", row.processor}, {"gpu", row.gpu},         {"inputs", row.inputs},
                               {"swept", row.swept},         {"cache", row.cache},     {"phase", row.phase},
                               {"base", row.base},           {"status", row.status},   {"reason", row.reason}};
  const std::vector<const ConfigKey*> keys = sweep_keys();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    fields.emplace_back(keys[i]->full_name(), i < row.settings.size() ? row.settings[i] : "");
  }
  fields.emplace_back("backend", row.backend);
  fields.emplace_back("seconds", if_done(to_decimal(row.seconds)));
  fields.emplace_back("gpx_per_s", if_done(rate_text(row.pixels, row.seconds)));
  fields.emplace_back("gb_per_s", if_done(rate_text(row.bytes_read, row.seconds)));
  fields.emplace_back("slides", if_done(std::to_string(row.slides)));
  fields.emplace_back("pixels", if_done(std::to_string(row.pixels)));
  fields.emplace_back("bytes_read", if_done(std::to_string(row.bytes_read)));
  for (const std::string_view name : stage_names) {
    std::string busy;
    std::string wait;
    for (const SweepRow::Stage& stage : row.stages) {
      if (stage.name != name) continue;
      busy = to_decimal(stage.busy);
      wait = to_decimal(stage.wait);
    }
    fields.emplace_back(std::string(name) + "_busy", busy);
    fields.emplace_back(std::string(name) + "_wait", wait);
  }
  fields.emplace_back("gpu_busy", text_of(row.gpu_busy));
  fields.emplace_back("copies_hidden", text_of(row.copies_hidden));
  fields.emplace_back("copies_covered", text_of(row.copies_covered));
  fields.emplace_back("peak_host_bytes", text_of(row.peak_host_bytes));
  fields.emplace_back("gpu_bytes", row.gpu_bytes > 0 ? std::to_string(row.gpu_bytes) : "");
  fields.emplace_back("cached_before", text_of(row.cached_before));
  fields.emplace_back("results", row.results);
  return fields;
}

std::string record(const std::vector<Field>& fields, std::string Field::*part) {
  std::string text;
  for (const Field& field : fields) text += csv_field(field.*part) + ",";
  text.pop_back();
  return text + "\r\n";
}

std::string header() { return record(fields_of({}), &Field::first); }

template <class Number>
Number number_in(const std::string& text) {
  Number number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// What a sweep that goes on wants to know of a row.
SweepRow row_of(const std::map<std::string, std::string>& fields) {
  const auto field = [&fields](const std::string& name) { return fields.at(name); };
  SweepRow row;
  row.date = field("date");
  row.version = field("version");
  row.host = field("host");
  row.processor = field("processor");
  row.gpu = field("gpu");
  row.inputs = field("inputs");
  row.swept = field("swept");
  row.cache = field("cache");
  row.phase = field("phase");
  row.base = field("base");
  row.status = field("status");
  row.reason = field("reason");
  row.backend = field("backend");
  row.results = field("results");
  for (const ConfigKey* key : sweep_keys()) row.settings.push_back(field(key->full_name()));
  row.seconds = number_in<double>(field("seconds"));
  row.pixels = number_in<std::uint64_t>(field("pixels"));
  row.bytes_read = number_in<std::uint64_t>(field("bytes_read"));
  return row;
}

}  // namespace

SweepFile::SweepFile(const std::filesystem::path& folder) : path_(folder / "sweep.csv") {
  make_folder(folder);
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (descriptor_ < 0) fail(errno);
  try {
    struct ::stat about {};
    if (::fstat(descriptor_, &about) != 0) fail(errno);
    if (!S_ISREG(about.st_mode)) throw OutputError(path_.string() + ": not a regular file");
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      throw ConfigError(path_.string() + ": another sweep is writing it");
    }
    read();
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

SweepFile::~SweepFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void SweepFile::fail(int code) const { throw OutputError(path_.string() + ": " + reason_of(code, path_)); }

void SweepFile::read() {
  std::string text;
  char buffer[65536];
  ssize_t got = 0;
  while ((got = ::read(descriptor_, buffer, sizeof(buffer))) > 0) {
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > largest_file) throw OutputError(path_.string() + ": larger than 256 MiB");
  }
  if (got < 0) fail(errno);
  // A row's texts have no line ends (they were made one line), so the last one in the file ends the last whole row.
  const std::size_t whole = text.rfind("\r\n") == std::string::npos ? 0 : text.rfind("\r\n") + 2;
  const bool begun_header = whole == 0 && header().starts_with(text);
  if (whole == 0 && !begun_header) throw OutputError(path_.string() + ": isn't a table of this program's sweeps");
  text.resize(whole);
  if (!text.empty() && !text.starts_with(header())) {
    throw OutputError(path_.string() + ": has other columns than this version's; --fresh starts anew");
  }
  std::vector<CsvRecord> records;
  try {
    records = parse_csv(text, path_.string());
  } catch (const ConfigError& error) {
    throw OutputError(error.what());
  }
  for (std::size_t i = 1; i < records.size(); ++i) {
    if (records[i].fields.size() != records[0].fields.size()) {
      throw OutputError(path_.string() + ":" + std::to_string(records[i].line) + ": has " +
                        std::to_string(records[i].fields.size()) + " fields, not " +
                        std::to_string(records[0].fields.size()));
    }
    std::map<std::string, std::string> fields;
    for (std::size_t k = 0; k < records[i].fields.size(); ++k) fields[records[0].fields[k]] = records[i].fields[k];
    rows_.push_back(row_of(fields));
    const SweepRow& row = rows_.back();
    if (row.status == "done" && !(row.seconds > 0 && row.seconds < 1e9)) {
      throw OutputError(path_.string() + ":" + std::to_string(records[i].line) + ": has no time");
    }
  }
  if (::ftruncate(descriptor_, static_cast<off_t>(whole)) != 0) fail(errno);
  if (::lseek(descriptor_, 0, SEEK_END) < 0) fail(errno);
  if (whole == 0) write(header());
}

/// Nobody reads half a row.
void SweepFile::take_back(off_t end) noexcept {
  // What stays is taken away by the next start.
  if (end >= 0 && ::ftruncate(descriptor_, end) == 0) ::lseek(descriptor_, end, SEEK_SET);
}

void SweepFile::write(const std::string& text) {
  const off_t before = ::lseek(descriptor_, 0, SEEK_CUR);
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t put = ::write(descriptor_, rest.data(), rest.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      const int code = errno;
      take_back(before);
      fail(code);
    }
    rest.remove_prefix(static_cast<std::size_t>(put));
  }
  if (::fdatasync(descriptor_) != 0 && errno != EINVAL) fail(errno);
}

void SweepFile::add(const SweepRow& row) {
  write(record(fields_of(row), &Field::second));
  rows_.push_back(row);
}

}  // namespace slidestream
