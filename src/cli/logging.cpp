#include "cli/logging.hpp"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <memory>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "cli/terminal.hpp"
#include "config/dump_json.hpp"
#include "config/printable.hpp"

namespace slidestream::cli {

namespace {

void write_to_stderr(std::string_view left) {
  while (!left.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, left.data(), left.size());
    // Nobody could be told.
    if (written <= 0) return;
    left.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string time_text(std::chrono::system_clock::time_point time, const char* format) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 40> buffer{};
  return std::string(buffer.data(), std::strftime(buffer.data(), buffer.size(), format, &parts));
}

class StderrSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit StderrSink(const LogOptions& options) : options_(options) {}

  void add_time() {
    const std::lock_guard lock(mutex_);
    with_time_ = !style_.terminal;
  }

  void show(const std::string& line) {
    const std::lock_guard lock(mutex_);
    // One write: a line that is cleared and drawn in two flickers.
    if (!live_.empty() || !line.empty()) write_to_stderr("\r\x1b[K" + line);
    live_ = line;
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    try {
      const std::string text = (options_.json ? json_line(message) : plain_line(message)) + "\n";
      write_to_stderr(live_.empty() ? text : "\r\x1b[K" + text + live_);
    } catch (const std::bad_alloc&) {
      write_without_memory(message);
    }
  }
  void flush_() override {}

 private:
  /// What can be said where no memory is left for a line: its beginning, and `?` for what isn't plain ASCII.
  void write_without_memory(const spdlog::details::log_msg& message) const noexcept {
    std::array<char, 1024> line;
    std::size_t size = 0;
    const auto add = [&](std::string_view text) {
      for (const char c : text.substr(0, line.size() - size)) line[size++] = c;
    };
    const std::string_view level = message.level >= spdlog::level::err    ? "error"
                                   : message.level == spdlog::level::warn ? "warning"
                                                                          : "info";
    add(options_.json ? R"({"level":")" : "");
    add(options_.json || message.level >= spdlog::level::warn ? level : "");
    add(options_.json ? R"(","message":")" : message.level >= spdlog::level::warn ? ": " : "");
    for (const char c : std::string_view(message.payload.data(), message.payload.size()).substr(0, 900)) {
      line[size++] = c < ' ' || c > '~' || c == '"' || c == '\\' ? '?' : c;
    }
    add(options_.json ? "\"}\n" : "\n");
    write_to_stderr({line.data(), size});
  }

  static std::string json_line(const spdlog::details::log_msg& message) {
    const auto level = spdlog::level::to_string_view(message.level);
    const nlohmann::ordered_json json = {{"time", time_text(message.time, "%Y-%m-%dT%H:%M:%SZ")},
                                         {"level", std::string(level.data(), level.size())},
                                         {"message", std::string(message.payload.data(), message.payload.size())}};
    return dump_json(json, -1);
  }

  std::string plain_line(const spdlog::details::log_msg& message) const {
    std::string text(message.payload.data(), message.payload.size());
    // File names may hold anything; a message is one line, and doesn't steer the terminal.
    std::ranges::replace(text, '\t', ' ');
    text = printable(text);
    if (message.level >= spdlog::level::err) text.insert(0, style_.red("error:") + " ");
    if (message.level == spdlog::level::warn) text.insert(0, style_.yellow("warning:") + " ");
    return with_time_ ? time_text(message.time, "%Y-%m-%dT%H:%M:%SZ ") + text : text;
  }

  LogOptions options_;
  Style style_ = Style::of(STDERR_FILENO);
  bool with_time_ = false;  // guarded by mutex_
  std::string live_;        // guarded by mutex_
};

std::shared_ptr<StderrSink>& current_sink() {
  static std::shared_ptr<StderrSink> sink;
  return sink;
}

}  // namespace

void set_up_logging(const LogOptions& options) {
  current_sink() = std::make_shared<StderrSink>(options);
  auto logger = std::make_shared<spdlog::logger>("pipeline", current_sink());
  logger->set_level(options.level);
  spdlog::set_default_logger(std::move(logger));
}

void log_with_time() {
  if (current_sink()) current_sink()->add_time();
}

void show_live_line(const std::string& line) {
  if (current_sink()) current_sink()->show(line);
}

}  // namespace slidestream::cli
