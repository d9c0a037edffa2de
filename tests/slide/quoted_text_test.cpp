// Texts of a slide's file in lines: what doesn't obey its grammar isn't repeated, whatever it is.

#include <doctest/doctest.h>

#include <string>

#include "slide/dicom_pictures.hpp"
#include "support/temporary_folder.hpp"

namespace slidestream::test {

TEST_CASE("DICOM: a name in a coded value doesn't reach the line") {
  const TemporaryFolder folder;
  const auto says = [&](const DicomFile& file) { return open_error(folder.write("slide.dcm", file.encode())); };
  for (const char* name : {"Doe^Jane", "DOE JANE", "\x1b[2JDOE", "DOE\xC3\x84"}) {
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
