#pragma once

#include <string>
#include <vector>

#include "cli/terminal.hpp"

namespace slidestream::cli {

/// Rows of text in aligned columns.
class Table {
 public:
  /// A title that begins with '<' stands left, others right; the mark isn't shown.
  explicit Table(std::vector<std::string> titles);

  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }

  /// Each line begins with `indent` and ends without blanks.
  std::string text(const Style& style, const std::string& indent = "") const;

 private:
  std::string line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const;

  std::vector<std::string> titles_;
  std::vector<bool> left_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace slidestream::cli
