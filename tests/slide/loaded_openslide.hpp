#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include "slide/made_up_openslide.hpp"

namespace slidestream::test {

/// The library that stands in for OpenSlide's, as the program loads it.
inline MadeUpOpenSlide& library() {
  static MadeUpOpenSlide* const made = [] {
    void* const handle = dlopen(SLIDESTREAM_MADE_UP_OPENSLIDE, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(handle != nullptr);
    const auto give = reinterpret_cast<MadeUpOpenSlide* (*)()>(dlsym(handle, "made_up_openslide"));
    REQUIRE((give != nullptr));
    return give();
  }();
  return *made;
}

}  // namespace slidestream::test
