#include "config/quoted_text.hpp"

#include <algorithm>

namespace slidestream {

namespace {

constexpr std::size_t most_of_uid = 64;
constexpr std::size_t most_of_number = 24;
constexpr std::size_t most_of_id = 32;
constexpr std::size_t most_of_unit = 2;

/// What DICOM defines for DimensionOrganizationType, PhotometricInterpretation and the flavours of ImageType, and ICC
/// for colour spaces, each between commas. Any other code may be a name.
constexpr std::string_view known_codes =
    ",TILED_FULL,TILED_SPARSE,3D,3D_TEMPORAL,"
    "MONOCHROME1,MONOCHROME2,PALETTE COLOR,RGB,HSV,ARGB,CMYK,XYB,"
    "YBR_FULL,YBR_FULL_422,YBR_PARTIAL_422,YBR_PARTIAL_420,YBR_ICT,YBR_RCT,"
    "VOLUME,LABEL,OVERVIEW,THUMBNAIL,LOCALIZER,NONE,"
    "GRAY,CMY,HLS,XYZ,Lab,Luv,YCbr,Yxy,2CLR,3CLR,4CLR,";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

/// Takes characters off the front while they are such. \returns how many
template <class Is>
std::size_t take(std::string_view& text, const Is& is) {
  const auto end = std::find_if_not(text.begin(), text.end(), is);
  const auto count = static_cast<std::size_t>(end - text.begin());
  text.remove_prefix(count);
  return count;
}

bool is_sign(char c) { return c == '+' || c == '-'; }

bool is_number(std::string_view text) {
  if (text == "nan" || text == "inf") return true;
  take(text, is_sign);
  if (take(text, is_digit) == 0) return false;
  if (!text.empty() && (text.front() == '.' || text.front() == ',')) {
    text.remove_prefix(1);
    take(text, is_digit);
  }
  if (text.size() > 1 && (text.front() == 'e' || text.front() == 'E') && !is_letter(text[1])) {
    text.remove_prefix(1);
    if (is_sign(text.front())) text.remove_prefix(1);
    take(text, is_digit);
  }
  if (text.size() > 1 && text.front() == ' ') text.remove_prefix(1);
  return text.size() <= most_of_unit && std::all_of(text.begin(), text.end(), is_letter);
}

}  // namespace

std::string shown_code(std::string_view text) {
  const bool is_known = !text.empty() && known_codes.find("," + std::string(text) + ",") != std::string_view::npos;
  return is_known ? std::string(text) : unknown_value;
}

std::string shown_uid(std::string_view text) {
  const bool is_uid = !text.empty() && text.size() <= most_of_uid &&
                      std::all_of(text.begin(), text.end(), [](char c) { return is_digit(c) || c == '.'; });
  return is_uid ? std::string(text) : unknown_value;
}

std::string quoted_number(std::string_view text) {
  return text.size() <= most_of_number && is_number(text) ? in_quotes(text) : unknown_value;
}

std::string quoted_ome_unit(std::string_view text) {
  return text == "pixel" || text == "reference frame" ? in_quotes(text) : unknown_value;
}

std::string quoted_ome_id(std::string_view text, std::string_view kind) {
  const std::string_view numbers = text.starts_with(kind) ? text.substr(kind.size()) : std::string_view();
  const bool is_id = !numbers.empty() && text.size() <= most_of_id &&
                     std::all_of(numbers.begin(), numbers.end(), [](char c) { return is_digit(c) || c == ':'; });
  return is_id ? in_quotes(text) : unknown_value;
}

}  // namespace slidestream
