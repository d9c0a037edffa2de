#include "output/atomic_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <slidestream/error.hpp>
#include <system_error>

#include "sink/file_calls.hpp"
#include "sink/temporary_name.hpp"
#include "system/denied.hpp"
#include "system/full_storage.hpp"
#include "system/process_state.hpp"

namespace slidestream {

AtomicFile::AtomicFile(std::filesystem::path path, LinkTarget target) : path_(std::move(path)) {
  // Renaming would put a file in the place of a device or a pipe.
  std::error_code ignored;
  const std::filesystem::file_status there = target == LinkTarget::anything
                                                 ? std::filesystem::symlink_status(path_, ignored)
                                                 : std::filesystem::status(path_, ignored);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there) &&
      !std::filesystem::is_directory(there) && !std::filesystem::is_symlink(there)) {
    throw OutputError(path_.string() + ": isn't a regular file");
  }
  do {
    temporary_ = temporary_name(path_);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    // A process with our number may have died here before.
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) fail(errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::check(const std::filesystem::path& path) {
  std::error_code code;
  // A link is replaced, be it to a folder.
  if (std::filesystem::is_directory(std::filesystem::symlink_status(path, code))) {
    throw OutputError(path.string() + ": " + std::make_error_code(std::errc::is_a_directory).message());
  }
  // Only making a file shows whether one can be made.
  const AtomicFile probe(path);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail(errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) fail(errno);
  replace();
  // The name lies in the folder, and is durable when the folder is.
  if (const int code = sync_folder_of(path_); code != 0) fail(code);
}

void AtomicFile::replace() {
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) fail(errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
  temporary_.clear();
}

void AtomicFile::fail(int code) const { throw_output_error(code, path_.string() + ": " + reason_of(code, path_)); }

namespace {

/// Whether the process that chose a temporary name is dead.
bool is_gone(const NamedProcess& process) {
  if (process.pid <= 0) return false;
  const bool is_number_of_this = process.pid == ::getpid();
  const ProcessState found = state_of(process.pid);
  if (!is_number_of_this && has_ended(process.pid, found)) return true;
  // Another process may have its number. Where /proc doesn't show both starts, or is another namespace's, the number
  // alone counts.
  const std::int64_t start = is_number_of_this ? own_start() : found.start;
  return process.start > 0 && start > 0 && start != process.start && own_start() > 0;
}

}  // namespace

void remove_leftovers(const std::filesystem::path& folder) noexcept {
  try {
    std::error_code code;
    for (const auto& entry : std::filesystem::directory_iterator(folder, code)) {
      const auto process = process_in(entry.path().filename().string());
      if (process && is_gone(*process)) std::filesystem::remove_all(entry.path(), code);
    }
  } catch (const std::exception&) {
    // They are in nobody's way.
  }
}

}  // namespace slidestream
