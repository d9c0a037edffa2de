// Texts of foreign files in lines: what doesn't obey its grammar isn't repeated, whatever it is.

#include "config/quoted_text.hpp"

#include <doctest/doctest.h>

#include <string>

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
                                  std::string("RGB\x1b[2J"), std::string("RGB\n"), std::string("rgb"),
                                  std::string("DOE JANE"), std::string("RGB ")}) {
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

}  // namespace slidestream::test
