#include "sink/ome_xml.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

#include "image/label_names.hpp"

namespace slidestream {

namespace {

constexpr std::uint32_t replacement = 0xFFFD;

/// Takes a character of UTF-8 from the front; U+FFFD for a byte that begins none.
std::uint32_t take_character(std::string_view& text) {
  const auto byte = [&text](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t first = byte(0);
  const std::size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  constexpr std::array<std::uint32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
  bool whole = length > 0 && text.size() >= length;
  std::uint32_t character = length == 1 ? first : first & (0x7FU >> length);
  for (std::size_t i = 1; whole && i < length; ++i) {
    whole = byte(i) >> 6 == 2;
    character = character << 6 | (byte(i) & 0x3F);
  }
  whole = whole && character >= smallest[length];
  text.remove_prefix(whole ? length : 1);
  return whole ? character : replacement;
}

bool is_xml(std::uint32_t character) {
  return character >= 0x20 && (character < 0xD800 || character > 0xDFFF) && character != 0xFFFE &&
         character != 0xFFFF && character <= 0x10FFFF;
}

/// Named references only: Bio-Formats takes others for text.
std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::string_view before = text;
    const std::uint32_t character = take_character(text);
    switch (character) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\t':
      case '\n':
      case '\r':
        result += ' ';
        break;
      default:
        if (character == replacement || !is_xml(character)) {
          result += "\xEF\xBF\xBD";  // U+FFFD
        } else {
          result += before.substr(0, before.size() - text.size());
        }
    }
  }
  return result;
}

std::string shortest(double number) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  return {text.data(), end};
}

std::string attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + escaped(value) + "\"";
}

const char* type_name(SampleType sample) {
  return sample == SampleType::uint8 ? "uint8" : sample == SampleType::uint16 ? "uint16" : "float";
}

std::string channel_name(const ImageDescription& description) {
  std::string all;
  for (const std::string& name : description.channel_names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

}  // namespace

std::string ome_xml(const ImageDescription& description) {
  const std::string channels = std::to_string(description.format.channels);
  const bool annotated = description.magnification || !description.settings.empty() || !description.figures.empty();
  std::string xml =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\""
      " xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\""
      " xsi:schemaLocation=\"http://www.openmicroscopy.org/Schemas/OME/2016-06"
      " http://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd\"";
  if (!description.creator.empty()) xml += attribute("Creator", description.creator);
  xml += ">";
  if (description.magnification) {
    xml += "<Instrument ID=\"Instrument:0\"><Objective ID=\"Objective:0\"" +
           attribute("NominalMagnification", shortest(*description.magnification)) + "/></Instrument>";
  }
  xml += "<Image ID=\"Image:0\"" + attribute("Name", description.name) + ">";
  if (description.magnification) xml += "<InstrumentRef ID=\"Instrument:0\"/><ObjectiveSettings ID=\"Objective:0\"/>";
  xml += "<Pixels ID=\"Pixels:0\" DimensionOrder=\"XYCZT\"" + attribute("Type", type_name(description.format.sample)) +
         " BigEndian=\"false\"";
  if (description.format.channels > 1) xml += " Interleaved=\"true\"";
  xml += attribute("SizeX", std::to_string(description.size.width)) +
         attribute("SizeY", std::to_string(description.size.height)) + attribute("SizeC", channels) +
         " SizeZ=\"1\" SizeT=\"1\"";
  if (description.mpp) {
    // The schema's unit, when none is given, is the micrometre.
    xml += attribute("PhysicalSizeX", shortest(*description.mpp)) +
           attribute("PhysicalSizeY", shortest(description.mpp_y.value_or(*description.mpp)));
  }
  xml += "><Channel ID=\"Channel:0:0\"" + attribute("SamplesPerPixel", channels);
  if (const std::string name = channel_name(description); !name.empty()) xml += attribute("Name", name);
  xml += "/><TiffData IFD=\"0\" PlaneCount=\"1\"/></Pixels>";
  if (annotated) xml += "<AnnotationRef ID=\"Annotation:0\"/>";
  xml += "</Image>";
  if (annotated) {
    xml += "<StructuredAnnotations><MapAnnotation ID=\"Annotation:0\"" + attribute("Namespace", own_annotation) +
           "><Value>";
    if (description.magnification) {
      xml += "<M K=\"magnification\">" + shortest(*description.magnification) + "</M>";
    }
    const auto say = [&xml](const std::string& key, const std::string& value) {
      xml += "<M" + attribute("K", key) + ">" + escaped(value) + "</M>";
    };
    for (const auto& [key, value] : description.settings) say(key, value);
    // A setting and a figure may have one name.
    for (const auto& [key, value] : description.figures) say("figure." + key, value);
    xml += "</Value></MapAnnotation></StructuredAnnotations>";
  }
  return xml + "</OME>";
}

}  // namespace slidestream
