#pragma once

#include <filesystem>

#include "sink/dicom_head.hpp"

namespace slidestream {

/// Attributes of patient, study, series, equipment, container and specimen by DICOM keyword, from a file of TOML, or of
/// JSON where its name ends in `.json`. Sequences are lists of tables. \throws ConfigError that names the file, the
/// keyword and what is wrong with it.
DicomAttributes read_dicom_attributes(const std::filesystem::path& file);

}  // namespace slidestream
