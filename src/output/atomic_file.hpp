#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace slidestream {

/// What a link in a file's place may lead to. The file replaces the link, never its target.
enum class LinkTarget {
  file,      ///< a regular file, a folder or nothing: /dev/stdout stays
  anything,  ///< also a pipe, socket or device: for names that are this program's alone
};

/// A file that appears whole or not at all: written to a temporary name in the same folder, synced, then renamed over
/// the old one. Every member throws OutputError, which names the path and the system's reason; the temporary is removed
/// unless `commit` succeeded.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path, LinkTarget target = LinkTarget::file);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Finds out whether such a file can be made; leaves nothing behind.
  static void check(const std::filesystem::path& path);

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

  /// Makes the file durable and gives it its name.
  void commit();

  /// Gives the file its name without waiting for storage: whole for whoever opens it, but not after a power failure.
  void replace();

 private:
  [[noreturn]] void fail(int code) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

/// Removes what processes that died left under temporary names in a folder. What can't be removed stays.
void remove_leftovers(const std::filesystem::path& folder) noexcept;

}  // namespace slidestream
