#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "slide/dicom/series.hpp"

namespace slidestream::dicom {

/// What of a file or folder tells that it is as it was.
struct Stamp {
  std::uint64_t device = 0;
  std::uint64_t number = 0;
  std::int64_t size = 0;
  std::int64_t modified = 0;  ///< nanoseconds since 1970
  std::int64_t changed = 0;   ///< by the system's clock, which no program sets

  bool operator==(const Stamp&) const = default;
};

/// Nothing where the path can't be looked at.
std::optional<Stamp> stamp_of(const std::filesystem::path& path);

/// A file's beginning.
struct Head {
  Stamp stamp;
  bool is_settled = false;         ///< a later change gives another stamp
  bool is_unreadable = false;      ///< though its name ends in .dcm
  bool is_no_slide = false;        ///< it is DICOM of another kind, and its name ends in .dcm
  std::optional<SeriesFile> file;  ///< of a whole-slide image; `path` is the name alone
};

/// What a folder has of whole-slide images, and what other files are named like them.
struct FolderHeads {
  std::vector<std::pair<std::string, Head>> heads;  ///< by name
  std::exception_ptr fault;  ///< of the storage, where it keeps a file from being looked at, for less than 2 s

  /// Null: the folder has no such file.
  const Head* find(const std::string& name) const;
};

/// Reads a file's beginning. \returns nothing for DICOM of another kind
/// \throws SlideError, also when it takes more than 1 s of processor time or 2^17 elements
std::optional<SeriesFile> read_head(const std::filesystem::path& path, const std::function<bool()>& give_up);

/// The files of a folder. Folders and files are read once per process as long as they stay as they are; what was read
/// when `give_up` ended a call is kept for the next one. A file whose place another one took under the same name may be
/// seen late, after twenty times what looking at the whole folder takes. Thread-safe; of a folder one thread reads, and
/// others wait.
/// \throws SlideError when the folder can't be listed, StorageError when that may pass
std::shared_ptr<const FolderHeads> heads_of(const std::filesystem::path& folder, const std::function<bool()>& give_up);

/// Files whose beginnings were read since the process began: for tests.
std::uint64_t heads_read() noexcept;
/// How often the process looked whether a file of a folder changed: for tests.
std::uint64_t files_looked_at() noexcept;

}  // namespace slidestream::dicom
