#include "system/descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <vector>

namespace slidestream {

std::size_t free_descriptors(std::size_t most) {
  std::vector<int> opened;
  opened.reserve(most);
  while (opened.size() < most) {
    const int descriptor = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) break;
    opened.push_back(descriptor);
  }
  for (const int descriptor : opened) ::close(descriptor);
  return opened.size();
}

}  // namespace slidestream
