#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "slide/file.hpp"
#include "slide/open_budget.hpp"

/// \file
/// Elements of a DICOM file (PS3.5, section 7), read forwards through a window: nothing is allocated by a length that
/// the file says.

namespace slidestream::dicom {

/// Group in the upper 16 bits, element in the lower ones.
using Tag = std::uint32_t;

constexpr Tag item_tag = 0xFFFEE000;
constexpr Tag item_end_tag = 0xFFFEE00D;
constexpr Tag sequence_end_tag = 0xFFFEE0DD;
constexpr Tag pixel_data_tag = 0x7FE00010;

constexpr std::uint32_t undefined_length = 0xFFFFFFFF;

struct Element {
  Tag tag = 0;
  std::array<char, 2> vr{};  ///< zeros where it is implicit
  std::uint64_t value_at = 0;
  std::uint32_t length = 0;  ///< or `undefined_length`
  bool implicit = false;     ///< so are the data sets inside it
};

/// Where a data set lies: until `end`, or until a delimiter before it.
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool implicit = false;
  bool delimited = false;
};

class Reader {
 public:
  /// Elements that are read of a file: descriptions of two million frames.
  static constexpr std::uint64_t most_elements = std::uint64_t{1} << 25;

  /// `name`: of the file in errors. `elements`: more are refused.
  Reader(const File& file, std::string name, OpenBudget& budget, std::uint64_t elements = most_elements)
      : file_(file), name_(std::move(name)), budget_(budget), elements_allowed_(elements) {}

  const File& file() const noexcept { return file_; }

  /// \throws SlideError "NAME: CAUSE"
  [[noreturn]] void refuse(const std::string& cause) const;
  /// \throws SlideError "NAME: KEYWORD (gggg,eeee) CAUSE"
  [[noreturn]] void refuse(const Element& element, const char* keyword, const std::string& cause) const;

  /// Bytes of the file, valid until the next call. \throws SlideError when the file ends before
  std::span<const std::byte> bytes(std::uint64_t at, std::size_t count);
  std::uint32_t number(std::uint64_t at, unsigned count);
  /// Reads bytes that lie in the file and aren't near others that are wanted.
  void read_apart(std::uint64_t at, std::span<std::byte> to);

  /// What is called for an element: it returns where the element ends, if it has read it to its end, else 0.
  using Take = std::function<std::uint64_t(const Element&)>;
  /// Calls `take` for each element of a data set in turn. An element for which `take` returns `stop` is the last.
  /// \returns where the data set ends
  std::uint64_t read_data_set(const Extent& extent, const Take& take);
  static constexpr std::uint64_t stop = ~std::uint64_t{0};

  /// Calls `take` for each element of the explicit data set at `begin` that is of this group, up to the first that
  /// isn't. \returns where that one begins
  std::uint64_t read_group(std::uint64_t begin, std::uint32_t group, const Take& take);

  /// Calls `take` with the extent of each item of a sequence; it returns where the item ends if it has read it, else 0.
  /// Where it returns `stop`, neither that item nor those behind it are wanted. \returns where the sequence ends
  std::uint64_t read_items(const Element& sequence, const std::function<std::uint64_t(const Extent&)>& take);

  // Values. \throws SlideError where an element isn't of this kind; `keyword` names it
  std::uint32_t unsigned_value(const Element& element, const char* keyword);
  std::int32_t signed_value(const Element& element, const char* keyword);
  /// Without padding; text that is longer than `most` bytes is refused.
  std::string text(const Element& element, const char* keyword, std::size_t most = 1024);
  /// Values between backslashes.
  std::vector<std::string> texts(const Element& element, const char* keyword, std::size_t most = 1024);
  std::int64_t integer_text(const Element& element, const char* keyword);
  std::vector<double> decimal_texts(const Element& element, const char* keyword);

 private:
  static constexpr int most_depth = 64;

  Element element_at(std::uint64_t at, bool implicit);
  std::uint64_t skip(const Element& element);

  const File& file_;
  std::string name_;
  OpenBudget& budget_;
  std::vector<std::byte> window_;
  std::uint64_t window_at_ = 0;
  const std::uint64_t elements_allowed_;
  std::uint64_t elements_ = 0;
  int depth_ = 0;
};

/// A finite decimal number without spaces around it (DS); nothing if it is none.
std::optional<double> decimal_number(std::string value);

/// "(gggg,eeee)"
std::string tag_text(Tag tag);

}  // namespace slidestream::dicom
