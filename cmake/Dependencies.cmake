# Every dependency comes from the distribution. Those without CMake packages are found by pkg-config.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(TBB REQUIRED)
find_package(TIFF REQUIRED)
find_package(JPEG REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
pkg_check_modules(OPENJPEG REQUIRED IMPORTED_TARGET libopenjp2)
# JPEG-LS, of DICOM slides: refused by name where CharLS isn't there.
pkg_check_modules(CHARLS IMPORTED_TARGET charls>=2.1)
set(SLIDESTREAM_CHARLS)
if(CHARLS_FOUND)
  set(SLIDESTREAM_CHARLS PkgConfig::CHARLS)
endif()
pkg_check_modules(PUGIXML REQUIRED IMPORTED_TARGET pugixml>=1.9)
pkg_check_modules(LCMS REQUIRED IMPORTED_TARGET lcms2>=2.12)
pkg_check_modules(KISSFFT REQUIRED IMPORTED_TARGET kissfft-float)
pkg_check_modules(HIGHWAY REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(TOMLPLUSPLUS REQUIRED IMPORTED_TARGET tomlplusplus)
find_package(ZLIB REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(BLOSC REQUIRED IMPORTED_TARGET blosc)
pkg_check_modules(LIBURING REQUIRED IMPORTED_TARGET liburing>=2.2)
pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3>=3.37)
pkg_search_module(HDF5 REQUIRED IMPORTED_TARGET hdf5-serial hdf5)

# Programs have HDF5 in them where it is there as an archive: Debian's shared one brings libcurl and all that it needs, for
# files in the cloud. Shared libraries can't, as that archive isn't made for them: they have another one in them where it is
# named, as scripts/build-wheel.sh does.
find_library(SLIDESTREAM_HDF5_ARCHIVE NAMES libhdf5_serial.a libhdf5.a HINTS ${HDF5_LIBRARY_DIRS}
             DOC "HDF5 as an archive; without it programs link the shared library")
set(SLIDESTREAM_HDF5_PIC_ARCHIVE "" CACHE FILEPATH
  "HDF5 as an archive for shared libraries, which scripts/build-hdf5.sh makes; without it those link the shared library")
find_library(SLIDESTREAM_SZIP sz)
set(SLIDESTREAM_HDF5 PkgConfig::HDF5)
if(SLIDESTREAM_HDF5_PIC_ARCHIVE)
  add_library(slidestream_hdf5_pic_archive INTERFACE)
  target_link_libraries(slidestream_hdf5_pic_archive INTERFACE "${SLIDESTREAM_HDF5_PIC_ARCHIVE}" ${CMAKE_DL_LIBS} m)
  set(SLIDESTREAM_HDF5 "$<BUILD_INTERFACE:slidestream_hdf5_pic_archive>$<INSTALL_INTERFACE:PkgConfig::HDF5>")
elseif(SLIDESTREAM_HDF5_ARCHIVE AND SLIDESTREAM_SZIP)
  add_library(slidestream_hdf5_archive INTERFACE)
  target_link_libraries(slidestream_hdf5_archive INTERFACE
    "${SLIDESTREAM_HDF5_ARCHIVE}" "${SLIDESTREAM_SZIP}" ZLIB::ZLIB ${CMAKE_DL_LIBS} m)
  set(is_program "$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>")
  set(SLIDESTREAM_HDF5
    "$<BUILD_INTERFACE:$<IF:${is_program},slidestream_hdf5_archive,PkgConfig::HDF5>>$<INSTALL_INTERFACE:PkgConfig::HDF5>")
endif()

# moodycamel's header lies in a folder whose name differs between releases.
find_path(CONCURRENTQUEUE_INCLUDE_DIR concurrentqueue.h
          PATH_SUFFIXES concurrentqueue concurrentqueue/moodycamel moodycamel REQUIRED)
add_library(slidestream_concurrentqueue INTERFACE)
target_include_directories(slidestream_concurrentqueue SYSTEM INTERFACE "${CONCURRENTQUEUE_INCLUDE_DIR}")

# The library that draws the charts of `pipeline report`; it becomes part of the program.
find_file(SLIDESTREAM_CHART_JS NAMES chart.min.js Chart.min.js PATHS /usr/share/javascript/chart.js NO_DEFAULT_PATH
          DOC "Chart.js 3, minified, as one script")
if(NOT SLIDESTREAM_CHART_JS)
  message(FATAL_ERROR "Chart.js 3 isn't there: install libjs-chart.js (scripts/install-deps.sh does), or set "
                      "SLIDESTREAM_CHART_JS to its chart.min.js")
endif()
# The library that shows a pyramid of tiles in a page beside it; it becomes part of the program.
find_path(SLIDESTREAM_LEAFLET leaflet.min.js PATHS /usr/share/javascript/leaflet NO_DEFAULT_PATH
          DOC "Folder of Leaflet 1: leaflet.min.js and leaflet.css")
if(NOT SLIDESTREAM_LEAFLET)
  message(FATAL_ERROR "Leaflet isn't there: install libjs-leaflet (scripts/install-deps.sh does), or set "
                      "SLIDESTREAM_LEAFLET to the folder of its leaflet.min.js")
endif()
