#pragma once

#include <string>
#include <string_view>

/// \file
/// What the terminal can show, and how numbers are written for people.

namespace slidestream::cli {

/// How text may be decorated on one of the standard streams.
struct Style {
  bool terminal = false;  ///< a terminal that can redraw a line
  bool colour = false;    ///< a terminal, and NO_COLOR is unset
  bool unicode = false;   ///< the locale is UTF-8

  static Style of(int descriptor);

  std::string bold(std::string_view text) const { return paint("1", text); }
  std::string dim(std::string_view text) const { return paint("2", text); }
  std::string red(std::string_view text) const { return paint("31", text); }
  std::string green(std::string_view text) const { return paint("32", text); }
  std::string yellow(std::string_view text) const { return paint("33", text); }
  std::string cyan(std::string_view text) const { return paint("36", text); }

 private:
  std::string paint(std::string_view code, std::string_view text) const;
};

/// Columns of the terminal behind `descriptor`; 80 when it doesn't say.
int terminal_width(int descriptor);

/// Columns that UTF-8 text takes, counting one for each code point.
std::size_t display_width(std::string_view text);

/// A path whose middle a mark takes the place of when it is longer than `width` columns: its folder and its name's end
/// tell it from others. Control characters and bytes that aren't UTF-8 become '?'.
std::string shortened_path(std::string_view path, std::size_t width, const Style& style);

std::string fixed(double value, int decimals);
std::string seconds_text(double seconds);      ///< "4.21 s", "1:23", "1:02:03"
std::string clock_text(double seconds);        ///< "0:04", "1:23", "1:02:03"
std::string count_text(unsigned long long n);  ///< "172,544"
/// "1 slide", "172,544 slides"
std::string count_of(unsigned long long n, const std::string& one);
std::string bytes_text(double bytes);            ///< "479 MB"
std::string pixel_rate_text(double per_second);  ///< "1.23 Gpx/s"
std::string voxel_rate_text(double per_second);  ///< "4.21 Mvoxels/s"

}  // namespace slidestream::cli
