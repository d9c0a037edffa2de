#include "output/npy.hpp"

#include <bit>

namespace slidestream {

std::string npy_header(std::string_view type, std::initializer_list<std::uint64_t> shape) {
  std::string sizes;
  for (const std::uint64_t size : shape) sizes += std::to_string(size) + ", ";
  std::string fields = "{'descr': '";
  fields += std::endian::native == std::endian::little ? '<' : '>';
  fields += type;
  fields += "', 'fortran_order': False, 'shape': (" + sizes + "), }";
  // Magic, version and length take 10 bytes; the data begin at a multiple of 64.
  const std::size_t length = (10 + fields.size() + 1 + 63) / 64 * 64 - 10;
  fields.resize(length - 1, ' ');
  fields += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(length & 0xff);
  header += static_cast<char>(length >> 8);
  return header + fields;
}

}  // namespace slidestream
