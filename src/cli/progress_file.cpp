#include "cli/progress_file.hpp"

#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <slidestream/error.hpp>
#include <system_error>
#include <utility>

#include "cli/image_file.hpp"
#include "cli/shortage.hpp"
#include "config/dump_json.hpp"
#include "config/read_file.hpp"
#include "output/atomic_file.hpp"

namespace slidestream::cli {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr auto time_between_files = std::chrono::seconds(1);

Json image_json(const ImageProgress& image) {
  return {{"slide", image.slide},
          {"file", image.file},
          {"tiles", image.tiles},
          {"tiles_total", image.tiles_total},
          {"bytes", image.bytes}};
}

}  // namespace

fs::path progress_file_of(const fs::path& folder_or_image) {
  const std::string file = folder_or_image.string();
  std::error_code ignored;
  const bool is_file = image_file(file) || features_file(file);
  if (!is_file || fs::exists(folder_or_image / "run.sqlite", ignored)) return folder_or_image / "progress.json";
  return progress_file_beside(folder_or_image);
}

fs::path progress_file_beside(const fs::path& image) {
  return image.parent_path() / (output_name(image.string()) + ".partial.progress.json");
}

Json progress_json(const Progress& progress, const Share& share, const ProcessIdentity& process) {
  Json images = Json::array();
  for (const ImageProgress& image : progress.images) images.push_back(image_json(image));
  const std::optional<double> left = seconds_left(progress, share.start);
  return {{"version", 1},
          {"process",
           {{"host", process.host},
            {"boot", process.boot},
            {"pid_space", process.pid_space},
            {"pid", process.pid},
            {"start", process.start}}},
          {"updated", unix_now()},
          {"seconds", progress.seconds},
          {"seconds_left", left ? Json(*left) : Json()},
          {"share", share.all},
          {"slides",
           {{"total", progress.slides_total},
            {"done", progress.slides_done},
            {"failed", progress.slides_failed},
            {"skipped", progress.slides_skipped}}},
          {"pixels", progress.pixels},
          {"bytes_read", progress.bytes_read},
          {"tiles_written", progress.tiles_written},
          {"bytes_written", progress.bytes_written},
          {"files_made", progress.files_made},
          {"busiest_stage", progress.busiest_stage},
          {"images", std::move(images)}};
}

std::optional<ToldProgress> read_progress(const fs::path& file) {
  constexpr std::size_t largest = std::size_t{1} << 20;
  try {
    const std::string text = read_file(file, largest, FileOrigin::own);
    ToldProgress told;
    told.json = Json::parse(text);
    const Json& json = told.json;
    if (json.at("version") != 1) return std::nullopt;
    const Json& process = json.at("process");
    told.process = {process.at("host"), process.at("boot"), process.at("pid_space"), process.at("pid"),
                    process.at("start")};
    told.updated = json.at("updated");
    told.share = json.at("share");
    if (!json.at("seconds_left").is_null()) told.seconds_left = json.at("seconds_left");
    told.progress.seconds = json.at("seconds");
    told.progress.tiles_written = json.at("tiles_written");
    told.progress.bytes_written = json.at("bytes_written");
    told.progress.files_made = json.at("files_made");
    for (const Json& image : json.at("images")) {
      told.progress.images.push_back(
          {image.at("slide"), image.at("file"), image.at("tiles"), image.at("tiles_total"), image.at("bytes")});
    }
    return told;
  } catch (const Json::exception&) {
    return std::nullopt;
  } catch (const ConfigError&) {
    // It isn't there, or isn't what a run writes: nothing is known then.
    return std::nullopt;
  }
}

bool is_of_another(const fs::path& file) {
  constexpr std::int64_t a_minute = 60;
  const auto told = read_progress(file);
  if (!told || told->process == this_process()) return false;
  return is_alive(told->process).value_or(unix_now() - told->updated < a_minute);
}

ProgressFile::ProgressFile(fs::path file, std::function<bool()> ours) : file_(std::move(file)), ours_(std::move(ours)) {
  remove();
  thread_ = std::thread([this] { loop(); });
}

void ProgressFile::update(const Progress& progress, const Share& share) {
  const std::lock_guard lock(mutex_);
  progress_ = progress;
  share_ = share;
  is_there_ = true;
}

void ProgressFile::end() noexcept {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
  remove();
}

void ProgressFile::loop() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, time_between_files, [this] { return ended_; })) {
    if (!std::exchange(is_there_, false)) continue;
    const Progress progress = progress_;
    const Share share = share_;
    lock.unlock();
    write(progress, share);
    lock.lock();
  }
}

void ProgressFile::write(const Progress& progress, const Share& share) {
  if (!ours_()) return;
  try {
    AtomicFile file(file_, LinkTarget::anything);
    file.write(dump_json(progress_json(progress, share, process_), 2) + "\n");
    file.replace();
  } catch (const std::exception& error) {
    // Once: nobody's results depend on it.
    if (!std::exchange(told_, true)) spdlog::warn("{}", cause_of(error, file_.string()));
  }
}

void ProgressFile::remove() const noexcept {
  std::error_code ignored;
  const fs::file_type type = fs::symlink_status(file_, ignored).type();
  // Nothing else is a run's.
  const bool is_file = type == fs::file_type::regular || type == fs::file_type::symlink;
  if (is_file && ours_()) fs::remove(file_, ignored);
}

}  // namespace slidestream::cli
