#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "slide/file.hpp"
#include "slide/open_budget.hpp"

namespace slidestream {

/// One tag of a directory as it stands in the file.
struct RawEntry {
  std::uint16_t tag = 0;
  std::uint16_t type = 0;
  std::uint64_t count = 0;
  std::uint64_t value_at = 0;  ///< file offset of the values
};

struct RawDirectory {
  std::uint64_t offset = 0;
  std::vector<RawEntry> entries;
  std::uint64_t next = 0;  ///< 0: the last of its chain

  const RawEntry* find(std::uint16_t tag) const noexcept;
  /// Whether more than one entry is called so: then nobody knows which is meant.
  bool has_twice(std::uint16_t tag) const noexcept;
  /// Tiles, not strips, by the tags that libtiff goes by.
  bool has_tiles() const noexcept;
};

/// The bare structure of a TIFF or BigTIFF: where directories lie, and unsigned values exactly as they are stored.
/// libtiff repairs silently what it thinks is wrong (a palette without colours becomes grey, counts that disagree are
/// filled up, byte counts of 0 estimated), so that numbers which decide what is read come from here; and loops and ends
/// of file are found before libtiff follows them.
class RawTiff {
 public:
  /// Reads the header. \throws SlideError when it isn't TIFF's. The other functions throw what `budget` does.
  RawTiff(const File& file, OpenBudget& budget);

  bool big() const noexcept { return big_; }
  /// Where the first directory of the main chain lies, as the header says.
  std::uint64_t first() const noexcept { return first_; }

  /// The directories of the main chain. \throws SlideError for a loop or a directory outside the file.
  std::vector<RawDirectory> main_chain() const;

  RawDirectory directory(std::uint64_t offset) const;

  /// The directories that `first` leads to, up to one that is in `seen`; they are added to it. `is_whole` becomes false
  /// where one of them can't be read, which ends the chain.
  std::vector<RawDirectory> chain_behind(const RawDirectory& first, std::unordered_set<std::uint64_t>& seen,
                                         bool& is_whole) const;

  /// The first value of an unsigned entry; none when the tag is missing, empty, of another type or outside the file.
  std::optional<std::uint64_t> number(const RawDirectory& directory, std::uint16_t tag) const;

  /// The same for a tag that has one value by its meaning. `fault` becomes what is wrong with it: "is missing", "has 3
  /// values, expected 1", ...
  std::optional<std::uint64_t> only_number(const RawDirectory& directory, std::uint16_t tag, std::string& fault) const;

  /// All values of an unsigned entry (BYTE, SHORT, LONG, LONG8, IFD, IFD8). `name` is the tag's, for the error.
  std::vector<std::uint64_t> values(const RawEntry& entry, const std::string& name) const;
  /// Calls `take` with each of them in turn.
  void for_each_value(const RawEntry& entry, const std::string& name,
                      const std::function<void(std::uint64_t)>& take) const;

  /// The first `most` bytes of an entry of bytes (BYTE, ASCII, SBYTE, UNDEFINED); none when it is of another type or
  /// outside the file.
  std::optional<std::vector<std::byte>> bytes(const RawEntry& entry, std::uint64_t most) const;
  /// The same as text, up to its first NUL and without a byte order mark; UTF-16 becomes UTF-8. Empty when the tag is
  /// missing or has none.
  std::string text(const RawDirectory& directory, std::uint16_t tag, std::uint64_t most) const;

  /// The first value of a number of any type, as libtiff gives it: in single precision. A fraction by 0 is 0.
  std::optional<float> real(const RawDirectory& directory, std::uint16_t tag) const;
  /// The same for a tag that has one value by its meaning, as `only_number`.
  std::optional<float> only_real(const RawDirectory& directory, std::uint16_t tag, std::string& fault) const;

 private:
  std::uint64_t assemble(const std::byte* from, unsigned bytes) const noexcept;
  std::uint64_t number_at(std::uint64_t offset, unsigned bytes) const;

  const File& file_;
  OpenBudget& budget_;
  bool big_ = false;
  bool little_endian_ = true;
  std::uint64_t first_ = 0;
};

}  // namespace slidestream
