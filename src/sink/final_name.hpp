#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <utility>

namespace slidestream {

/// A name that a file or folder gets once it is whole, which may take hours. What has the name when this is made may be
/// replaced: whoever asked for the file was told of it. What somebody gives the name later stays.
class FinalName {
 public:
  explicit FinalName(std::filesystem::path path);

  /// Right before it is replaced. \throws OutputError naming what somebody else put there meanwhile
  void check() const;

 private:
  using Identity = std::pair<dev_t, ino_t>;
  /// Of what has the name, a link itself; nothing where nothing has it.
  std::optional<Identity> identity() const noexcept;

  std::filesystem::path path_;
  std::optional<Identity> first_;
};

}  // namespace slidestream
