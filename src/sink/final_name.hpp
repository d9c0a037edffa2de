#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

namespace slidestream {

/// A name that a file or folder gets once it is whole, which may take hours. What has the name when this is made may be
/// replaced: whoever asked for the file was told of it. What somebody gives the name later stays.
class FinalName {
 public:
  explicit FinalName(std::filesystem::path path);

  /// Right before it is replaced. \throws OutputError naming what somebody else put there meanwhile, or what can't be
  /// looked at
  void check() const;

 private:
  /// A new file may get the number of one that was deleted. When it was made tells them apart, where the file system
  /// keeps that. Its other times change with the file's rights, for which nothing is refused.
  struct Identity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::optional<std::pair<std::int64_t, std::uint32_t>> made = {};  ///< seconds and nanoseconds; nothing: unknown
    bool may_be(const Identity& other) const noexcept {
      return device == other.device && inode == other.inode && (!made || !other.made || made == other.made);
    }
  };
  /// Of what has the name, a link itself; nothing where nothing has it. \param code  of errno, where that can't be
  /// said; else 0
  std::optional<Identity> identity(int& code) const noexcept;

  std::filesystem::path path_;
  std::optional<Identity> first_;  ///< nothing also where that couldn't be said
};

}  // namespace slidestream
