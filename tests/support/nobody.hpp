#pragma once

#include <unistd.h>

namespace slidestream::test {

/// While it lives, the superuser is nobody, to whom nothing here belongs. Others stay who they are.
class Nobody {
 public:
  Nobody() {
    if (::geteuid() != 0) return;
    changed_ = ::setegid(id) == 0 && ::seteuid(id) == 0;
  }
  ~Nobody() {
    if (changed_ && (::seteuid(0) != 0 || ::setegid(0) != 0)) ::_exit(1);
  }
  Nobody(const Nobody&) = delete;
  Nobody& operator=(const Nobody&) = delete;

  static constexpr unsigned id = 65534;

 private:
  bool changed_ = false;
};

}  // namespace slidestream::test
