#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// \file
/// Headers of NIfTI-1 and NIfTI-2 files (https://nifti.nimh.nih.gov/: nifti1.h, nifti2.h), read and written field by
/// field. Samples lie in the order x, y, z: x is the fastest.

namespace slidestream::volume {

/// Types of samples that are read. Complex numbers, colours and float128 aren't.
enum class ScalarType { uint8, int8, uint16, int16, uint32, int32, uint64, int64, float32, float64 };

std::size_t bytes_of(ScalarType type) noexcept;
/// Such as "int16".
std::string name_of(ScalarType type);

/// Where voxels lie in space, as the header says it. A written file gets the same values.
struct NiftiGeometry {
  std::array<double, 4> pixdim{};  ///< qfac, and the sides of a voxel along x, y, z
  int dim_info = 0;
  int units = 0;  ///< of space alone: bits 0 to 2 of xyzt_units
  int qform_code = 0;
  int sform_code = 0;
  std::array<double, 3> quatern{};  ///< b, c, d
  std::array<double, 3> qoffset{};  ///< x, y, z
  std::array<double, 12> srow{};    ///< the affine's rows x, y, z

  /// Volume of a voxel in mm^3: the affine's determinant if sform_code is set, else the product of the sides. NaN if
  /// the header has no finite volume above 0. Without a unit the header's numbers are millimetres.
  double voxel_mm3() const noexcept;
  /// Millimetres between samples along z, y, x: lengths of the affine's columns if sform_code is set, else the sides.
  /// Any numbers: the header may be wrong.
  std::array<double, 3> spacing_mm() const noexcept;
  /// Says in a line that a qform with a code is no rotation; or that sform and qform, of which both have codes, give
  /// sides of a voxel that differ by more than 1 %, or turn an axis by more than 45 degrees from each other. Empty:
  /// none of that. The sform counts.
  std::string doubt() const;
};

/// A header that was checked: sizes are positive, and samples can be read.
struct NiftiHeader {
  static constexpr std::size_t largest = 540;  ///< bytes of either version, at most

  int version = 1;                            ///< 1 or 2
  bool swapped = false;                       ///< the other byte order than this machine's
  std::array<std::int64_t, 3> size{1, 1, 1};  ///< x, y, z
  ScalarType type = ScalarType::uint8;
  bool scaled = false;  ///< a value is slope x sample + inter; else the sample
  double slope = 1.0;
  double inter = 0.0;
  std::uint64_t offset = 0;  ///< of the first sample, in bytes
  NiftiGeometry geometry;

  std::int64_t voxels() const noexcept { return size[0] * size[1] * size[2]; }
  /// Bytes of all samples.
  std::uint64_t sample_bytes() const noexcept;
};

/// Whether bytes begin as a header of either version does, in either byte order.
bool begins_as_nifti(std::span<const std::byte> bytes) noexcept;

/// Reads a header. \param bytes  the file's first bytes: `NiftiHeader::largest` of them, or all there are
/// \throws Error that says what is wrong, without the file's name
NiftiHeader parse_nifti(std::span<const std::byte> bytes);

/// The bytes in front of the samples of a file that has the version, size and geometry of `like`, and samples of `type`
/// without scaling. It names no person, program or path: text fields are empty. \param labels  sets the intent code
std::vector<std::byte> nifti_head(const NiftiHeader& like, ScalarType type, bool labels);

}  // namespace slidestream::volume
