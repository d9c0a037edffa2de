// Texts of a file in lines: what doesn't obey its grammar isn't repeated, whatever it is.

#include "slide/quoted_text.hpp"

#include <doctest/doctest.h>

#include <string>

#include "slide/dicom_pictures.hpp"
#include "support/temporary_folder.hpp"

namespace slidestream::test {

TEST_CASE("values are shown where they obey their grammar") {
  CHECK(shown_code("YBR_FULL_422") == "YBR_FULL_422");
  CHECK(shown_code("PALETTE COLOR") == "PALETTE COLOR");
  CHECK(shown_uid("1.2.840.10008.1.2.4.57") == "1.2.840.10008.1.2.4.57");
  CHECK(shown_uid(std::string(64, '1')) == std::string(64, '1'));
  for (const char* number : {"0.25um", "20x", "-0.5", "0", "1e999", "0.5 mm", "0,25", "2.5E-7m", "++1", "nan", "inf"}) {
    CAPTURE(number);
    CHECK(quoted_number(number) == "'" + std::string(number) + "'");
  }
  CHECK(quoted_ome_unit("pixel") == "'pixel'");
  CHECK(quoted_ome_unit("reference frame") == "'reference frame'");
  CHECK(quoted_ome_id("Objective:0:1", "Objective:") == "'Objective:0:1'");
}

TEST_CASE("other values aren't repeated") {
  for (const std::string& text : {std::string("Doe^Jane"), std::string("DOE^JANE"), std::string(17, 'A'), std::string(),
                                  std::string("RGB\x1b[2J"), std::string("RGB\n"), std::string("rgb")}) {
    CAPTURE(text);
    CHECK(shown_code(text) == unknown_value);
  }
  for (const std::string& text :
       {std::string("Doe^Jane"), std::string("1.2 3"), std::string(65, '1'), std::string(), std::string("1.2\x1b")}) {
    CAPTURE(text);
    CHECK(shown_uid(text) == unknown_value);
  }
  for (const std::string& text : {std::string("Doe Jane"), std::string("1950-01-01"), std::string("01.02.1950"),
                                  std::string("01/02/1950"), std::string("1 Jane"), std::string("."), std::string("x"),
                                  std::string("0.5\x1b"), std::string(25, '1'), std::string()}) {
    CAPTURE(text);
    CHECK(quoted_number(text) == unknown_value);
  }
  for (const char* text : {"Doe", "mm", "pixel ", ""}) CHECK(quoted_ome_unit(text) == unknown_value);
  for (const char* text : {"Objective:Jane", "Objective:", "Doe:1", "1", ""}) {
    CHECK(quoted_ome_id(text, "Objective:") == unknown_value);
  }
  CHECK(quoted_ome_id("Objective:" + std::string(23, '1'), "Objective:") == unknown_value);
}

TEST_CASE("DICOM: a name in a coded value doesn't reach the line") {
  const TemporaryFolder folder;
  const auto says = [&](const DicomFile& file) { return open_error(folder.write("slide.dcm", file.encode())); };
  for (const char* name : {"Doe^Jane", "\x1b[2JDOE", "DOE\xC3\x84"}) {
    CAPTURE(name);
    DicomFile file = make_dicom(make_stained_picture(512, 384, 3));
    file.set.text(0x00280004, "CS", name);
    CHECK(says(file).ends_with(
        ": PhotometricInterpretation (0028,0004) an unknown value with 3 samples of jpeg isn't supported"));
    file = make_dicom(make_stained_picture(512, 384, 3));
    file.syntax = name;
    CHECK(says(file).find(": TransferSyntaxUID (0002,0010) an unknown value isn't supported; ") != std::string::npos);
  }
}

}  // namespace slidestream::test
