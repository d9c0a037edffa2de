#pragma once

#include <string>
#include <string_view>

/// \file
/// Texts of slides' files and of lists in lines for people. Any value may have a patient's name, or control characters.
/// So a line quotes a value only where it is one of a few, or obeys a grammar that no name does; else it says
/// `unknown_value`.
/// Thread-safe.

namespace slidestream {

inline constexpr const char* unknown_value = "an unknown value";

/// A code that DICOM or ICC defines for what lines tell of. As it is.
std::string shown_code(std::string_view text);

/// A unique identifier of DICOM (UI): up to 64 digits and points. As it is.
std::string shown_uid(std::string_view text);

/// A decimal number that may have an exponent and a unit of one or two letters, up to 24 bytes: "0.25um", "20x". In
/// quotes. Dates are none.
std::string quoted_number(std::string_view text);

/// What OME calls a size without length: "pixel", "reference frame". In quotes.
std::string quoted_ome_unit(std::string_view text);

/// An identifier as OME writes it, of this kind: "Objective:0:1", up to 32 bytes. In quotes.
std::string quoted_ome_id(std::string_view text, std::string_view kind);

}  // namespace slidestream
