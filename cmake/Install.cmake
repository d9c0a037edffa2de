# `cmake --install`: the programs, the library with its headers and CMake package, and what a user reads. The man page and
# completions come from src/cli.
include(CMakePackageConfigHelpers)

set(SLIDESTREAM_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/slidestream")

install(TARGETS slidestream EXPORT slidestreamTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY include/slidestream DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.hpp")
install(EXPORT slidestreamTargets NAMESPACE slidestream:: DESTINATION "${SLIDESTREAM_CMAKE_DIR}")
configure_package_config_file(cmake/slidestreamConfig.cmake.in slidestreamConfig.cmake
  INSTALL_DESTINATION "${SLIDESTREAM_CMAKE_DIR}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(slidestreamConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/slidestreamConfig.cmake" "${PROJECT_BINARY_DIR}/slidestreamConfigVersion.cmake"
  DESTINATION "${SLIDESTREAM_CMAKE_DIR}")

# The component `program` is what the Debian package holds: no part for compilers.
# As they lie here, so that they lead to each other.
install(FILES LICENSE README.md ARCHITECTURE.md CONTRIBUTING.md SECURITY.md CHANGELOG.md CITATION.cff DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT program)
install(DIRECTORY docs examples DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT program)
install(DIRECTORY configs DESTINATION "${CMAKE_INSTALL_DATADIR}/slidestream" COMPONENT program)
if(TARGET pipeline)
  install(TARGETS pipeline RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT program)
  install(PROGRAMS scripts/slurm/slidestream-submit DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT program)
endif()
