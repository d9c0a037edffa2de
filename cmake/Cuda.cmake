# CUDA is optional: with AUTO it is used where a compiler for it is found. The runtime is linked statically and the
# driver is looked for when the program runs, so one program serves machines with and without a GPU.
set(SLIDESTREAM_CUDA AUTO CACHE STRING "Build the GPU backend: AUTO, ON or OFF")
set_property(CACHE SLIDESTREAM_CUDA PROPERTY STRINGS AUTO ON OFF)
set(SLIDESTREAM_CUDA_ARCHITECTURES "80-real;86-real;89-real;90-real;90-virtual" CACHE STRING
    "GPU architectures to compile for: A100, A40, L40, H100, and PTX for those to come")

set(SLIDESTREAM_HAVE_CUDA OFF)
if(NOT SLIDESTREAM_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  set(CMAKE_CUDA_ARCHITECTURES "${SLIDESTREAM_CUDA_ARCHITECTURES}")
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit 12.8)
    if(CUDAToolkit_FOUND)
      set(SLIDESTREAM_HAVE_CUDA ON)
    endif()
  endif()
  if(SLIDESTREAM_CUDA STREQUAL "ON" AND NOT SLIDESTREAM_HAVE_CUDA)
    message(FATAL_ERROR "SLIDESTREAM_CUDA=ON, but no CUDA Toolkit (12.8 or newer) was found: put nvcc on the PATH or set CUDACXX")
  endif()
endif()

if(SLIDESTREAM_HAVE_CUDA)
  message(STATUS "slidestream: GPU backend with CUDA ${CUDAToolkit_VERSION}")
  # CMake before 3.26 doesn't know how nvcc takes C++20.
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  add_library(slidestream_cuda INTERFACE)
  target_compile_definitions(slidestream_cuda INTERFACE SLIDESTREAM_HAVE_CUDA=1)
  target_include_directories(slidestream_cuda SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
else()
  message(STATUS "slidestream: CPU only")
  add_library(slidestream_cuda INTERFACE)
endif()
# Line numbers for the profilers cost nothing when kernels run, and compressed for size next to no room: five architectures
# of a kernel take a ninth. Warnings of the host compiler reach kernels' files too. 554 is a conversion to its own type: of a
# view that is const already.
add_library(slidestream_cuda_flags INTERFACE)
target_compile_options(slidestream_cuda_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CUDA>:-lineinfo;--compress-mode=size;--expt-relaxed-constexpr;--diag-suppress=554;-Xcompiler=-Wall,-Wextra,-Wshadow>")
if(SLIDESTREAM_WERROR)
  target_compile_options(slidestream_cuda_flags INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:--Werror=all-warnings>)
endif()
