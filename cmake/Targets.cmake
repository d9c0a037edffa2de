# Flags that every target of the project shares, and the two kinds of targets: modules and tests.
add_library(slidestream_flags INTERFACE)
target_compile_options(slidestream_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wno-sign-conversion>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # GCC 12 warns of std::string's own code (its bug 105651).
  target_compile_options(slidestream_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  if(CMAKE_UNITY_BUILD)
    # It takes a source that another one includes for a header.
    target_compile_options(slidestream_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
  if(SLIDESTREAM_SANITIZE MATCHES thread)
    # moodycamel's queues have fences, which ThreadSanitizer doesn't know; the queues' own atomics are order enough for it.
    target_compile_options(slidestream_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>)
  endif()
endif()
if(SLIDESTREAM_WERROR)
  target_compile_options(slidestream_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(SLIDESTREAM_SANITIZE)
  add_compile_options(
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${SLIDESTREAM_SANITIZE};-fno-sanitize-recover=all;-fno-omit-frame-pointer>")
  add_link_options(-fsanitize=${SLIDESTREAM_SANITIZE})
  # For tests that try less where everything takes several times as long.
  add_compile_definitions(SLIDESTREAM_SANITIZED)
endif()
if(SLIDESTREAM_FUZZERS)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
endif()

# Tests and commands compute little, and most of the time that they take to compile goes into making them fast.
# AddressSanitizer and UBSan make that several times as long.
add_library(slidestream_quick_to_compile INTERFACE)
if(SLIDESTREAM_SANITIZE MATCHES address)
  target_compile_options(slidestream_quick_to_compile INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
elseif(NOT SLIDESTREAM_SANITIZE)
  target_compile_options(slidestream_quick_to_compile INTERFACE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
endif()

# Programs look beside themselves for libraries, so that scripts/bundle.sh need only copy them. RPATH
# rather than RUNPATH, because libraries' own libraries are to be found there too.
set(CMAKE_INSTALL_RPATH "\$ORIGIN/../lib")
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
add_link_options("LINKER:--disable-new-dtags")

# slidestream_module(NAME SOURCES ... ALONE ... LINK ...): a folder of src/ as objects of the library.
function(slidestream_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ALONE;LINK" ${ARGN})
  add_library(slidestream_${name} OBJECT ${ARG_SOURCES})
  target_include_directories(slidestream_${name} PUBLIC
    "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}")
  target_link_libraries(slidestream_${name} PRIVATE slidestream_flags slidestream_cuda_flags PUBLIC slidestream_cuda ${ARG_LINK})
  # Where several sources are compiled as one (CMAKE_UNITY_BUILD), those stay alone that are compiled once for each vector
  # unit, that have names that another one has, too, or parts for GPUs, which the linter sees in another build.
  foreach(source IN LISTS ARG_SOURCES)
    if(source MATCHES "[.]cpp$" AND EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${source}")
      file(STRINGS "${CMAKE_CURRENT_SOURCE_DIR}/${source}" vectors REGEX "foreach_target" LIMIT_COUNT 1)
      if(vectors OR source IN_LIST ARG_ALONE)
        set_source_files_properties("${source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      endif()
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY SLIDESTREAM_MODULES ${name})
endfunction()

# slidestream_test(NAME SOURCES ... LINK ... LABELS ... FIXTURE ...): a doctest program, one CTest entry a test case.
function(slidestream_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;FIXTURE" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  # Tests of several files have helpers of the same names.
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  # CTest would cut the name in two, and run neither half.
  foreach(source IN LISTS ARG_SOURCES)
    if(NOT IS_ABSOLUTE "${source}")
      set(source "${CMAKE_CURRENT_SOURCE_DIR}/${source}")
    endif()
    if(EXISTS "${source}")
      file(READ "${source}" text)
      if(text MATCHES "TEST_CASE\\(\"[^\"]*;")
        message(FATAL_ERROR "${source}: the name of a test case holds a semicolon")
      endif()
    endif()
  endforeach()
  target_include_directories(${name} PRIVATE
    "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE
    slidestream_flags slidestream_quick_to_compile slidestream_cuda slidestream_test_main slidestream
    slidestream_concurrentqueue ${ARG_LINK})
  if(NOT ARG_TIMEOUT)
    # Sanitizers make everything several times as long, and machines differ.
    if(SLIDESTREAM_SANITIZE)
      set(ARG_TIMEOUT 900)
    else()
      set(ARG_TIMEOUT 300)
    endif()
  endif()
  set(properties TIMEOUT ${ARG_TIMEOUT} SKIP_REGULAR_EXPRESSION "SKIPPED: ")
  if(ARG_LABELS)
    list(APPEND properties LABELS "${ARG_LABELS}")
  endif()
  if(ARG_FIXTURE)
    list(APPEND properties FIXTURES_REQUIRED "${ARG_FIXTURE}")
  endif()
  doctest_discover_tests(${name} TEST_PREFIX "${name}: " PROPERTIES ${properties})
endfunction()
