#include "sink/ome_xml.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

namespace slidestream {

namespace {

constexpr std::uint32_t replacement = 0xFFFD;

/// Takes a character of UTF-8 from the front; U+FFFD for a byte that begins none.
std::uint32_t take_character(std::string_view& text) {
  const auto byte = [&text](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t first = byte(0);
  const std::size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  constexpr std::array<std::uint32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
  if (length == 0 || text.size() < length) {
    text.remove_prefix(1);
    return replacement;
  }
  std::uint32_t character = length == 1 ? first : first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) {
      text.remove_prefix(1);
      return replacement;
    }
    character = character << 6 | (byte(i) & 0x3F);
  }
  if (character < smallest[length]) {
    text.remove_prefix(1);
    return replacement;
  }
  text.remove_prefix(length);
  return character;
}

bool is_xml(std::uint32_t character) {
  const bool control = character < 0x20 && character != '\t' && character != '\n' && character != '\r';
  return !control && (character < 0xD800 || character > 0xDFFF) && character != 0xFFFE && character != 0xFFFF &&
         character <= 0x10FFFF;
}

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    std::uint32_t character = take_character(text);
    if (!is_xml(character)) character = replacement;
    const bool plain = character >= 0x20 && character < 0x7F && character != '<' && character != '>' &&
                       character != '&' && character != '"' && character != '\'';
    if (plain) {
      result += static_cast<char>(character);
    } else {
      result += "&#" + std::to_string(character) + ";";
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
  const bool annotated = description.magnification || !description.settings.empty();
  std::string xml =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\""
      " xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\""
      " xsi:schemaLocation=\"http://www.openmicroscopy.org/Schemas/OME/2016-06"
      " http://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd\">";
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
    const std::string size = shortest(*description.mpp);
    xml += attribute("PhysicalSizeX", size) + " PhysicalSizeXUnit=\"&#181;m\"" + attribute("PhysicalSizeY", size) +
           " PhysicalSizeYUnit=\"&#181;m\"";
  }
  xml += "><Channel ID=\"Channel:0:0\"" + attribute("SamplesPerPixel", channels);
  if (const std::string name = channel_name(description); !name.empty()) xml += attribute("Name", name);
  xml += "/><TiffData IFD=\"0\" PlaneCount=\"1\"/></Pixels>";
  if (annotated) xml += "<AnnotationRef ID=\"Annotation:0\"/>";
  xml += "</Image>";
  if (annotated) {
    xml += "<StructuredAnnotations><MapAnnotation ID=\"Annotation:0\" Namespace=\"slidestream\"><Value>";
    if (description.magnification) {
      xml += "<M K=\"magnification\">" + shortest(*description.magnification) + "</M>";
    }
    for (const auto& [key, value] : description.settings) {
      xml += "<M" + attribute("K", key) + ">" + escaped(value) + "</M>";
    }
    xml += "</Value></MapAnnotation></StructuredAnnotations>";
  }
  return xml + "</OME>";
}

}  // namespace slidestream
