#pragma once

#include <spdlog/sinks/base_sink.h>

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/forked.hpp"

namespace slidestream::python {

/// Keeps messages until Python fetches them: threads of a run never touch Python.
class MessageSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  /// Level (as `logging` counts) and text of each.
  std::vector<std::pair<int, std::string>> take() {
    // The lock may never be free there, and there are no runs that might say anything.
    if (runtime::forked_at_work()) return {};
    const std::lock_guard lock(mutex_);
    return std::exchange(messages_, {});
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    constexpr std::size_t most = 100000;
    if (messages_.size() < most)
      messages_.emplace_back(level_of(message.level), std::string(message.payload.data(), message.payload.size()));
  }
  void flush_() override {}

 private:
  static int level_of(spdlog::level::level_enum level) {
    if (level >= spdlog::level::err) return 40;
    if (level == spdlog::level::warn) return 30;
    return level == spdlog::level::info ? 20 : 10;
  }

  std::vector<std::pair<int, std::string>> messages_;  // guarded by mutex_
};

}  // namespace slidestream::python
