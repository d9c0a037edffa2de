#include "sink/dicom_attributes.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "config/printable.hpp"
#include "config/read_file.hpp"
#include "config/suggest.hpp"
#include "config/toml_text.hpp"

namespace slidestream {

namespace {

using Json = nlohmann::json;

constexpr std::size_t largest_attributes = std::size_t{1} << 20;
constexpr int most_nested = 8;

/// Where an attribute belongs.
enum class Place {
  image,
  specimen,  ///< in the item of the one specimen
  items,     ///< in items of sequences alone
};

struct Keyword {
  std::string_view name;
  DicomTag tag;
  std::string_view vr;
  Place place = Place::image;
};

constexpr std::array keywords = {
    // Patient
    Keyword{"PatientName", 0x00100010, "PN"},
    Keyword{"PatientID", 0x00100020, "LO"},
    Keyword{"IssuerOfPatientID", 0x00100021, "LO"},
    Keyword{"PatientBirthDate", 0x00100030, "DA"},
    Keyword{"PatientSex", 0x00100040, "CS"},
    Keyword{"PatientAge", 0x00101010, "AS"},
    Keyword{"PatientSize", 0x00101020, "DS"},
    Keyword{"PatientWeight", 0x00101030, "DS"},
    Keyword{"EthnicGroup", 0x00102160, "SH"},
    Keyword{"PatientComments", 0x00104000, "LT"},
    Keyword{"PatientIdentityRemoved", 0x00120062, "CS"},
    Keyword{"DeidentificationMethod", 0x00120063, "LO"},
    // Study
    Keyword{"StudyInstanceUID", 0x0020000D, "UI"},
    Keyword{"StudyID", 0x00200010, "SH"},
    Keyword{"StudyDate", 0x00080020, "DA"},
    Keyword{"StudyTime", 0x00080030, "TM"},
    Keyword{"StudyDescription", 0x00081030, "LO"},
    Keyword{"AccessionNumber", 0x00080050, "SH"},
    Keyword{"ReferringPhysicianName", 0x00080090, "PN"},
    Keyword{"AdmissionID", 0x00380010, "LO"},
    // Series and equipment
    Keyword{"SeriesNumber", 0x00200011, "IS"},
    Keyword{"SeriesDate", 0x00080021, "DA"},
    Keyword{"SeriesTime", 0x00080031, "TM"},
    Keyword{"SeriesDescription", 0x0008103E, "LO"},
    Keyword{"ProtocolName", 0x00181030, "LO"},
    Keyword{"OperatorsName", 0x00081070, "PN"},
    Keyword{"Manufacturer", 0x00080070, "LO"},
    Keyword{"ManufacturerModelName", 0x00081090, "LO"},
    Keyword{"DeviceSerialNumber", 0x00181000, "LO"},
    Keyword{"SoftwareVersions", 0x00181020, "LO"},
    Keyword{"InstitutionName", 0x00080080, "LO"},
    Keyword{"InstitutionAddress", 0x00080081, "ST"},
    Keyword{"InstitutionalDepartmentName", 0x00081040, "LO"},
    Keyword{"StationName", 0x00081010, "SH"},
    Keyword{"AcquisitionDateTime", 0x0008002A, "DT"},
    Keyword{"ContentDate", 0x00080023, "DA"},
    Keyword{"ContentTime", 0x00080033, "TM"},
    // Container and specimen
    Keyword{"ContainerIdentifier", 0x00400512, "LO"},
    Keyword{"IssuerOfTheContainerIdentifierSequence", 0x00400513, "SQ"},
    Keyword{"ContainerDescription", 0x0040051A, "LO"},
    Keyword{"ContainerTypeCodeSequence", 0x00400518, "SQ"},
    Keyword{"SpecimenIdentifier", 0x00400551, "LO", Place::specimen},
    Keyword{"SpecimenUID", 0x00400554, "UI", Place::specimen},
    Keyword{"IssuerOfTheSpecimenIdentifierSequence", 0x00400562, "SQ", Place::specimen},
    Keyword{"SpecimenTypeCodeSequence", 0x0040059A, "SQ", Place::specimen},
    Keyword{"SpecimenShortDescription", 0x00400600, "LO", Place::specimen},
    Keyword{"SpecimenDetailedDescription", 0x00400602, "UT", Place::specimen},
    Keyword{"SpecimenPreparationSequence", 0x00400610, "SQ", Place::specimen},
    Keyword{"PrimaryAnatomicStructureSequence", 0x00082228, "SQ", Place::specimen},
    // In items
    Keyword{"CodeValue", 0x00080100, "SH", Place::items},
    Keyword{"CodingSchemeDesignator", 0x00080102, "SH", Place::items},
    Keyword{"CodingSchemeVersion", 0x00080103, "SH", Place::items},
    Keyword{"CodeMeaning", 0x00080104, "LO", Place::items},
    Keyword{"LocalNamespaceEntityID", 0x00400031, "UT", Place::items},
    Keyword{"UniversalEntityID", 0x00400032, "UT", Place::items},
    Keyword{"UniversalEntityIDType", 0x00400033, "CS", Place::items},
    Keyword{"SpecimenPreparationStepContentItemSequence", 0x00400612, "SQ", Place::items},
    Keyword{"PrimaryAnatomicStructureModifierSequence", 0x00082230, "SQ", Place::items},
    Keyword{"ValueType", 0x0040A040, "CS", Place::items},
    Keyword{"ConceptNameCodeSequence", 0x0040A043, "SQ", Place::items},
    Keyword{"ConceptCodeSequence", 0x0040A168, "SQ", Place::items},
    Keyword{"TextValue", 0x0040A160, "UT", Place::items},
    Keyword{"DateTime", 0x0040A120, "DT", Place::items},
};

/// Those that an image must have a value of.
constexpr std::array never_empty = {std::string_view("StudyInstanceUID"),
                                    std::string_view("Manufacturer"),
                                    std::string_view("ManufacturerModelName"),
                                    std::string_view("DeviceSerialNumber"),
                                    std::string_view("SoftwareVersions"),
                                    std::string_view("AcquisitionDateTime"),
                                    std::string_view("ContentDate"),
                                    std::string_view("ContentTime"),
                                    std::string_view("ContainerIdentifier"),
                                    std::string_view("SpecimenIdentifier"),
                                    std::string_view("SpecimenUID")};

bool consists_of(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == std::string_view::npos;
}

constexpr std::string_view decimal_digits = "0123456789";

int number_of(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

bool is_date(std::string_view text) {
  if (text.size() != 8 || !consists_of(text, decimal_digits)) return false;
  const int year = number_of(text.substr(0, 4));
  const int month = number_of(text.substr(4, 2));
  const int day = number_of(text.substr(6, 2));
  constexpr std::array days = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (month < 1 || month > 12) return false;
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return day >= 1 && day <= days[static_cast<std::size_t>(month) - 1] + (leap && month == 2 ? 1 : 0);
}

/// HH, HHMM, HHMMSS, and up to six digits of a fraction behind a point.
bool is_time(std::string_view text) {
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  if (point != std::string_view::npos) {
    const std::string_view fraction = text.substr(point + 1);
    if (whole.size() != 6 || fraction.empty() || fraction.size() > 6 || !consists_of(fraction, decimal_digits))
      return false;
  }
  if (whole.empty() || whole.size() > 6 || whole.size() % 2 != 0 || !consists_of(whole, decimal_digits)) return false;
  constexpr std::array most = {23, 59, 60};
  for (std::size_t i = 0; i < whole.size(); i += 2) {
    if (number_of(whole.substr(i, 2)) > most[i / 2]) return false;
  }
  return true;
}

/// A date, a time behind it, and a zone such as +0100 behind that.
bool is_date_time(std::string_view text) {
  const std::size_t zone = text.find_first_of("+-");
  if (zone != std::string_view::npos) {
    const std::string_view behind = text.substr(zone + 1);
    if (behind.size() != 4 || !is_time(behind)) return false;
    text = text.substr(0, zone);
  }
  return is_date(text.substr(0, 8)) && (text.size() == 8 || is_time(text.substr(8)));
}

bool is_uid(std::string_view text) {
  if (text.empty() || text.size() > 64) return false;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('.', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    if (part.empty() || !consists_of(part, decimal_digits) || (part.size() > 1 && part.front() == '0')) return false;
    at = end + 1;
  }
  return text.find('.') != std::string_view::npos;
}

bool is_integer(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_decimal(std::string_view text) {
  if (text.size() > 16 || !consists_of(text, "0123456789+-.eE")) return false;
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_age(std::string_view text) {
  return text.size() == 4 && consists_of(text.substr(0, 3), decimal_digits) && consists_of(text.substr(3), "DWMY");
}

bool is_code(std::string_view text) {
  return text.size() <= 16 && consists_of(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_ ");
}

std::size_t characters_of(std::string_view utf8) {
  return static_cast<std::size_t>(
      std::ranges::count_if(utf8, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// Up to three groups of 64 characters.
bool is_name(std::string_view text) {
  std::size_t groups = 0;
  for (std::size_t at = 0; at <= text.size(); ++groups) {
    const std::size_t end = std::min(text.find('=', at), text.size());
    if (characters_of(text.substr(at, end - at)) > 64) return false;
    at = end + 1;
  }
  return groups <= 3;
}

struct Rule {
  std::string_view vr;
  bool (*fits)(std::string_view);
  const char* expected;
};

/// PS3.5, table 6.2-1.
constexpr std::array rules = {
    Rule{"AS", is_age, "an age such as 042Y"},
    Rule{"CS", is_code, "at most 16 capital letters, digits, spaces and _"},
    Rule{"DA", is_date, "a date as YYYYMMDD"},
    Rule{"DS", is_decimal, "a number of at most 16 characters"},
    Rule{"DT", is_date_time, "a date and time as YYYYMMDDHHMMSS"},
    Rule{"IS", is_integer, "an integer"},
    Rule{"LO", [](std::string_view text) { return characters_of(text) <= 64; }, "at most 64 characters"},
    Rule{"LT", [](std::string_view text) { return characters_of(text) <= 10240; }, "at most 10240 characters"},
    Rule{"PN", is_name, "a name of at most three groups of 64 characters"},
    Rule{"SH", [](std::string_view text) { return characters_of(text) <= 16; }, "at most 16 characters"},
    Rule{"ST", [](std::string_view text) { return characters_of(text) <= 1024; }, "at most 1024 characters"},
    Rule{"TM", is_time, "a time as HHMMSS"},
    Rule{"UI", is_uid, "a UID of at most 64 characters"},
    Rule{"UT", [](std::string_view) { return true; }, "text"},
};

Json json_of(const toml::node& node) {
  if (const auto* table = node.as_table()) {
    Json object = Json::object();
    for (const auto& [key, value] : *table) object[std::string(key.str())] = json_of(value);
    return object;
  }
  if (const auto* array = node.as_array()) {
    Json list = Json::array();
    for (const toml::node& each : *array) list.push_back(json_of(each));
    return list;
  }
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto number = node.value_exact<std::int64_t>()) return *number;
  if (const auto number = node.value_exact<double>()) return *number;
  if (const auto flag = node.value_exact<bool>()) return *flag;
  return nullptr;
}

class AttributeReader {
 public:
  explicit AttributeReader(const std::filesystem::path& file) : file_(file.string()) {}

  DicomAttributes read() {
    const Json all = parse(read_file(file_, largest_attributes, FileOrigin::given));
    if (!all.is_object()) fail("holds no attributes: expected keywords and values");
    DicomAttributes attributes;
    for (const auto& [name, value] : all.items()) {
      const Keyword& keyword = find(name, name, false);
      add(keyword.place == Place::specimen ? attributes.specimen : attributes.image, keyword, name, value, 1);
    }
    if (all.contains("ContainerIdentifier")) attributes.container = all["ContainerIdentifier"].get<std::string>();
    return attributes;
  }

 private:
  [[noreturn]] void fail(const std::string& cause) const { throw ConfigError(file_ + ": " + cause); }

  Json parse(const std::string& text) const {
    if (file_.ends_with(".json")) {
      try {
        return Json::parse(text);
      } catch (const Json::parse_error& error) {
        fail("isn't JSON: wrong at byte " + std::to_string(error.byte));
      }
    }
    refuse_deep_keys(text, file_);
    try {
      return json_of(toml::parse(text));
    } catch (const toml::parse_error& error) {
      throw ConfigError(file_ + ":" + std::to_string(error.source().begin.line) + ": " + one_line(error.description()));
    }
  }

  const Keyword& find(const std::string& name, const std::string& path, bool in_item) const {
    const auto found = std::ranges::find(keywords, std::string_view(name), &Keyword::name);
    if (found == keywords.end()) {
      std::vector<std::string> known;
      known.reserve(keywords.size());
      for (const Keyword& each : keywords) known.emplace_back(each.name);
      fail("'" + printable(path) + "' is no attribute of patient, study, series, equipment or specimen" +
           did_you_mean(name, known));
    }
    if ((found->place == Place::items) != in_item) {
      fail(path + (in_item ? " doesn't belong into a sequence" : " belongs into a sequence's items"));
    }
    return *found;
  }

  void add(DicomItem& to, const Keyword& keyword, const std::string& path, const Json& value, int depth) const {
    if (keyword.vr == "SQ") return add_items(to, keyword, path, value, depth);
    const bool is_number = value.is_number() && (keyword.vr == "DS" || keyword.vr == "IS");
    if (!value.is_string() && !is_number) fail(path + " isn't a text");
    const std::string text = !is_number                  ? value.get<std::string>()
                             : value.is_number_integer() ? value.dump()
                                                         : decimal_text(value.get<double>());
    check(keyword, path, text);
    to.text(keyword.tag, keyword.vr, text);
  }

  void check(const Keyword& keyword, const std::string& path, const std::string& text) const {
    if (text.empty()) {
      if (std::ranges::find(never_empty, keyword.name) != never_empty.end()) fail(path + " must not be empty");
      return;
    }
    const bool is_long = keyword.vr == "LT" || keyword.vr == "ST" || keyword.vr == "UT";
    const bool has_control = std::ranges::any_of(text, [&](char c) {
      const bool layout = is_long && (c == '\n' || c == '\r' || c == '\t' || c == '\f');
      return (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) && !layout;
    });
    if (has_control) fail(path + " holds a control character");
    if (!is_long && text.find('\\') != std::string::npos) fail(path + " holds a backslash, which parts values");
    const auto rule = std::ranges::find(rules, keyword.vr, &Rule::vr);
    // Values may be of a patient, and lines of errors go anywhere.
    if (!rule->fits(text)) fail(path + " isn't " + rule->expected + " (" + std::string(keyword.vr) + ")");
    if (keyword.name == "PatientSex" && text != "M" && text != "F" && text != "O") fail(path + " isn't M, F or O");
  }

  void add_items(DicomItem& to, const Keyword& keyword, const std::string& path, const Json& value, int depth) const {
    if (!value.is_array()) fail(path + " isn't a list of tables");
    if (depth > most_nested) fail(path + " is nested more than " + std::to_string(most_nested) + " deep");
    std::vector<DicomItem> items;
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string at = path + "[" + std::to_string(i) + "]";
      if (!value[i].is_object()) fail(at + " isn't a table");
      DicomItem& item = items.emplace_back();
      for (const auto& [name, inner] : value[i].items()) {
        const std::string below = at + "." + name;
        add(item, find(name, below, true), below, inner, depth + 1);
      }
    }
    to.sequence(keyword.tag, items);
  }

  std::string file_;
};

}  // namespace

DicomAttributes read_dicom_attributes(const std::filesystem::path& file) { return AttributeReader(file).read(); }

}  // namespace slidestream
