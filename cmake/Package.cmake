# `cpack -G DEB`: a Debian package of the program, its documents and what shells read. scripts/release.sh makes and tries it.
# dpkg-shlibdeps finds the packages of the libraries that the program links.
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGE_CONTACT "The slidestream authors")
set(CPACK_DEBIAN_PROGRAM_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
# For slidestream-submit.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS python3)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME slidestream)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "The program pipeline reads whole-slide pathology images once and converts them,
normalises stains, finds tissue, runs networks and analyses spectra.")
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/debian.cmake")
if(SLIDESTREAM_HAVE_CUDA)
  # The same program with kernels: one of the two can be installed.
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME slidestream-cuda)
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_PROVIDES slidestream)
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONFLICTS slidestream)
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_REPLACES slidestream)
  string(APPEND CPACK_DEBIAN_PROGRAM_DESCRIPTION "
This build also uses NVIDIA GPUs; the driver is looked for when it starts.")
endif()

# Terms of the software that the compiler puts into the program, by the distribution's packages. Libraries that it only
# links have packages of their own.
set(SLIDESTREAM_CUDA_LICENCE "" CACHE FILEPATH "Licence of CUDA's runtime, which a program with CUDA has in it")
foreach(package IN ITEMS libcli11-dev libconcurrentqueue-dev libhdf5-dev libjs-chart.js libjs-leaflet nlohmann-json3-dev)
  if(EXISTS "/usr/share/doc/${package}/copyright")
    install(FILES "/usr/share/doc/${package}/copyright" RENAME "${package}"
      DESTINATION "${CMAKE_INSTALL_DOCDIR}/licences" COMPONENT program)
  endif()
endforeach()
if(SLIDESTREAM_HAVE_CUDA AND SLIDESTREAM_CUDA_LICENCE)
  install(FILES "${SLIDESTREAM_CUDA_LICENCE}" RENAME cuda DESTINATION "${CMAKE_INSTALL_DOCDIR}/licences" COMPONENT program)
endif()
include(CPack)
