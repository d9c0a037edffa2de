#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <slidestream/config.hpp>
#include <slidestream/network.hpp>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "networks/onnx_session.hpp"

/// \file
/// What a network takes and gives, by its own shapes and the settings.

namespace slidestream::networks {

/// "m.onnx: what"
std::string of_file(const std::string& file, const std::string& what);

/// Bytes as people read them: what is taken, rounded up.
std::string mib_text(std::size_t bytes);
/// What is left or may be taken, rounded down: less than `mib_text` of anything larger.
std::string mib_left_text(std::size_t bytes);

/// While it lives, what a network computes to be looked at beforehand is interrupted once `input.max_seconds` are over.
class TimeLimit {
 public:
  /// \param seconds  0: none
  TimeLimit(int seconds, std::function<void()> interrupt) : seconds_(seconds) {
    if (seconds == 0) return;
    thread_ = std::jthread([this, interrupt = std::move(interrupt)](const std::stop_token& ends) {
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any ended;
      ended.wait_for(lock, ends, std::chrono::seconds(seconds_), [] { return false; });
      if (ends.stop_requested()) return;
      over_ = true;
      interrupt();
    });
  }

  bool is_over() const noexcept { return over_; }
  std::string text() const { return "it takes longer than input.max_seconds = " + std::to_string(seconds_); }

 private:
  int seconds_;
  std::atomic<bool> over_ = false;
  std::jthread thread_;
};

/// What a network takes and gives.
struct Shapes {
  NetworkTiles tiles;
  NetworkOutput output;
  /// Of a batch.
  std::vector<std::int64_t> input_shape;
  std::vector<std::int64_t> output_shape;
};

/// Tiles of a batch where neither settings nor the network say it.
inline constexpr int usual_batch = 16;

/// Finds it from settings and a network's own shapes. \param open_batch  tiles of a batch where these leave it open
/// \throws ConfigError that begins with the file.
Shapes find_shapes(const OnnxSession& session, const Config& config, int open_batch);

/// Which of a network's outputs is used: the one of `model.output_name`, else the only one, else the only one whose
/// type and shape fit `model.output`. \throws ConfigError that lists them, where that is none
std::size_t choose_output(const std::vector<OnnxTensor>& outputs, const ModelConfig& model);

}  // namespace slidestream::networks
