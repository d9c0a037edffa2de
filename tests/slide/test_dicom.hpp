#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "slide/test_images.hpp"
#include "slide/test_tiff.hpp"

/// \file
/// DICOM files for tests: written element by element, so that each can be wrong.

namespace slidestream::test {

/// A data set. Elements are written in the order of their tags.
class DicomSet {
 public:
  DicomSet& text(std::uint32_t tag, const std::string& vr, std::string value);
  DicomSet& number(std::uint32_t tag, const std::string& vr, std::int64_t value);  ///< US, UL, SL
  DicomSet& real(std::uint32_t tag, float value);                                  ///< FL
  DicomSet& bytes(std::uint32_t tag, const std::string& vr, Bytes value);
  DicomSet& items(std::uint32_t tag, std::vector<DicomSet> items);
  /// Pixels in items, without a length of their own.
  DicomSet& encapsulated(std::uint32_t tag, std::vector<Bytes> items);
  DicomSet& remove(std::uint32_t tag);

  struct Coding {
    bool implicit = false;
    bool undefined_lengths = false;  ///< of sequences and items
  };
  Bytes encode(const Coding& coding) const;

 private:
  struct Value {
    std::string vr;
    Bytes bytes;
    std::vector<DicomSet> items;
    std::vector<Bytes> pieces;  ///< of encapsulated pixels
  };
  std::map<std::uint32_t, Value> values_;
};

/// A whole-slide image of one file, whose parts may be changed before it is written.
struct DicomFile {
  enum class Table { none, basic, extended };

  DicomSet set;
  std::vector<Bytes> frames;
  std::string syntax;
  DicomSet::Coding coding;
  Table table = Table::basic;
  int fragments = 1;                ///< items a frame
  std::vector<std::int64_t> moved;  ///< added to the offsets of the table's first frames
  std::uint64_t longer = 0;         ///< added to the lengths of the extended table but the last
  std::string media_class;          ///< MediaStorageSOPClassUID; empty: it isn't there

  Bytes encode() const;
};

struct DicomOptions {
  enum class Codec { jpeg, jpeg_rgb, jpeg_grey, jpeg2000, jpegls, none } codec = Codec::jpeg;
  int tile = 64;
  bool sparse = false;
  std::string flavour = "VOLUME";
  std::string series = "1.2.3";
  std::string instance = "1.2.3.1";
  std::string spacing = "0.0005\\0.0005";  ///< PixelSpacing, millimetres
};

constexpr std::uint32_t dicom_pixels = 0x7FE00010;

/// How the samples of JPEG-LS follow each other: a component after the other, row by row, pixel by pixel.
enum class JpeglsOrder { components, rows, pixels };

/// \param near  by how much a sample may differ; 0: lossless. \return nothing where CharLS isn't there
Bytes encode_jpegls(const Picture& picture, JpeglsOrder order = JpeglsOrder::rows, int near = 0, int bits = 8);

/// A picture cut into tiles, all of which are there.
DicomFile make_dicom(const Picture& picture, const DicomOptions& options = {});

/// The functional groups of a frame whose first pixel is at this place, from 1.
DicomSet dicom_frame_at(std::int64_t column, std::int64_t row);

/// The picture's tiles as `make_dicom` codes them, in a TIFF: what a DICOM slide is compared with.
TestTiff make_same_tiff(const Picture& picture, const DicomOptions& options = {});

}  // namespace slidestream::test
