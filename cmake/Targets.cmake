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
# Modules that fuzz targets go through, whose branches are counted for the fuzzer.
set(SLIDESTREAM_FUZZED codec config encode_core jpeg_core jpeg2000_core ledger networks output slide statistics volume)

# Tests and commands compute little, and most of the time that they take to compile goes into making them fast.
# AddressSanitizer and UBSan make that several times as long.
add_library(slidestream_quick_to_compile INTERFACE)
if(SLIDESTREAM_SANITIZE MATCHES address)
  target_compile_options(slidestream_quick_to_compile INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
elseif(NOT SLIDESTREAM_SANITIZE)
  target_compile_options(slidestream_quick_to_compile INTERFACE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
endif()

# UBSan looks at the library and the commands: tests take a quarter longer to compile with its checks.
add_library(slidestream_test_flags INTERFACE)
target_link_libraries(slidestream_test_flags INTERFACE slidestream_flags slidestream_quick_to_compile)
if(SLIDESTREAM_SANITIZE MATCHES undefined)
  target_compile_options(slidestream_test_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=undefined>)
endif()

# Where multiply-adds are part of every processor, as on 64-bit Arm, GCC makes them of any product and sum, and results
# would differ from x86's in their last digits. Loops that want them say so.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
endif()

# Programs look beside themselves for libraries, so that scripts/bundle.sh need only copy them. RPATH
# rather than RUNPATH, because libraries' own libraries are to be found there too.
set(CMAKE_INSTALL_RPATH "\$ORIGIN/../lib")
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
add_link_options("LINKER:--disable-new-dtags")

# With precompiled headers ccache keeps nothing unless it is told to (CONTRIBUTING.md).
set(use_precompiled "${SLIDESTREAM_PCH}")
if("${CMAKE_CXX_COMPILER_LAUNCHER}" MATCHES "ccache" AND NOT "$ENV{CCACHE_SLOPPINESS}" MATCHES "pch_defines")
  set(use_precompiled OFF)
endif()
set(SLIDESTREAM_COMMON_HEADERS <algorithm> <array> <atomic> <chrono> <condition_variable> <cstddef> <cstdint> <filesystem>
    <functional> <map> <memory> <mutex> <optional> <span> <string> <thread> <utility> <vector>)
if(use_precompiled AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # So that ccache sees what is in them.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
elseif(use_precompiled AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # So that they have the same bytes in every clone: times of headers would be in them.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endif()
# Compilers know a header that is precompiled by its bytes. ccache's preprocessor mode knows it without its comments, and would
# take the result of a file that differs in them. Depend mode looks at the bytes.
function(slidestream_precompile target)
  if("${CMAKE_CXX_COMPILER_LAUNCHER}" MATCHES "ccache")
    set_target_properties(${target} PROPERTIES
      CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND};-E;env;CCACHE_DEPEND=1;${CMAKE_CXX_COMPILER_LAUNCHER}")
  endif()
  target_precompile_headers(${target} PRIVATE ${SLIDESTREAM_COMMON_HEADERS} ${ARGN})
endfunction()
# slidestream_common_headers(TARGET): compiles headers that nearly every source wants once, for all targets. Sources still
# include what they use: scripts/check-deep.sh compiles each alone.
function(slidestream_common_headers target)
  if(NOT use_precompiled)
    return()
  endif()
  if(NOT TARGET slidestream_precompiled)
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompiled.cpp" CONTENT "")
    add_library(slidestream_precompiled OBJECT "${PROJECT_BINARY_DIR}/precompiled.cpp")
    set_target_properties(slidestream_precompiled PROPERTIES UNITY_BUILD OFF)
    target_include_directories(slidestream_precompiled PRIVATE "${PROJECT_SOURCE_DIR}/include")
    target_link_libraries(slidestream_precompiled PRIVATE slidestream_flags)
    slidestream_precompile(slidestream_precompiled
      <slidestream/config.hpp> <slidestream/image.hpp> <slidestream/results.hpp>)
  endif()
  target_precompile_headers(${target} REUSE_FROM slidestream_precompiled)
endfunction()

# A program's sources compiled as a library's: precompiled headers serve one kind alone.
function(slidestream_position_independent target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fPIC>)
endfunction()

# The same for tests, with doctest.
function(slidestream_common_headers_of_tests target)
  if(NOT use_precompiled)
    return()
  endif()
  if(NOT TARGET slidestream_precompiled_tests)
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompiled_tests.cpp" CONTENT "")
    add_library(slidestream_precompiled_tests OBJECT "${PROJECT_BINARY_DIR}/precompiled_tests.cpp")
    set_target_properties(slidestream_precompiled_tests PROPERTIES UNITY_BUILD OFF)
    slidestream_position_independent(slidestream_precompiled_tests)
    target_include_directories(slidestream_precompiled_tests PRIVATE "${PROJECT_SOURCE_DIR}/include")
    target_link_libraries(slidestream_precompiled_tests PRIVATE
      slidestream_test_flags slidestream_cuda doctest::doctest)
    slidestream_precompile(slidestream_precompiled_tests
      <fstream> <doctest/doctest.h> <slidestream/operator.hpp> <slidestream/pipeline.hpp>)
  endif()
  target_precompile_headers(${target} REUSE_FROM slidestream_precompiled_tests)
endfunction()

# slidestream_module(NAME [CUDA] SOURCES ... ALONE ... LINK ...): a folder of src/ as objects of the library. CUDA: some of
# its sources differ where kernels are compiled. Objects of the others are the same in either build.
function(slidestream_module name)
  cmake_parse_arguments(ARG "CUDA" "" "SOURCES;ALONE;LINK" ${ARGN})
  add_library(slidestream_${name} OBJECT ${ARG_SOURCES})
  target_include_directories(slidestream_${name} PUBLIC
    "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}")
  target_link_libraries(slidestream_${name} PRIVATE slidestream_flags PUBLIC ${ARG_LINK})
  if(ARG_CUDA)
    target_link_libraries(slidestream_${name} PRIVATE slidestream_cuda_flags slidestream_cuda)
  endif()
  # Where several sources are compiled as one (CMAKE_UNITY_BUILD), those stay alone that are compiled once for each vector
  # unit, that have names that another one has, too, or parts for GPUs, which tests with made-up GPUs replace one by one.
  foreach(source IN LISTS ARG_SOURCES)
    if(source MATCHES "[.]cpp$" AND EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${source}")
      file(STRINGS "${CMAKE_CURRENT_SOURCE_DIR}/${source}" vectors REGEX "foreach_target" LIMIT_COUNT 1)
      if(vectors OR source IN_LIST ARG_ALONE)
        set_source_files_properties("${source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      endif()
    endif()
  endforeach()
  if(NOT CMAKE_UNITY_BUILD)
    slidestream_common_headers(slidestream_${name})
  endif()
  if(SLIDESTREAM_FUZZERS AND SLIDESTREAM_FUZZ_COUNTERS AND name IN_LIST SLIDESTREAM_FUZZED)
    target_compile_options(slidestream_${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
  endif()
  set_property(GLOBAL APPEND PROPERTY SLIDESTREAM_MODULES ${name})
endfunction()

# What tests link in place of slidestream: the library as a shared one, as to link it takes longer than most tests; those
# with the property SLIDESTREAM_WHOLE have it in them, to replace parts of it or to be passed on.
add_library(slidestream_for_tests INTERFACE)
target_link_libraries(slidestream_for_tests INTERFACE
  $<IF:$<BOOL:$<TARGET_PROPERTY:SLIDESTREAM_WHOLE>>,slidestream,slidestream_shared>)

# What slidestream_test and slidestream_test_objects share.
function(slidestream_test_sources name)
  # Tests of several files have helpers of the same names.
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  # CTest would cut the name in two, and run neither half.
  foreach(source IN LISTS ARG_SOURCES)
    if(NOT IS_ABSOLUTE "${source}")
      set(source "${CMAKE_CURRENT_SOURCE_DIR}/${source}")
    endif()
    if(EXISTS "${source}")
      file(READ "${source}" text)
      if(text MATCHES "TEST_CASE[A-Z_]*\\([ \n]*\"[^\"]*;")
        message(FATAL_ERROR "${source}: the name of a test case holds a semicolon")
      endif()
    endif()
  endforeach()
  target_include_directories(${name} PRIVATE
    "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE
    slidestream_test_flags slidestream_cuda slidestream_test_main slidestream_for_tests
    slidestream_concurrentqueue ${ARG_LINK})
  slidestream_position_independent(${name})
  slidestream_common_headers_of_tests(${name})
endfunction()

# slidestream_test_objects(NAME SOURCES ... LINK ...): tests that several programs have, compiled once.
function(slidestream_test_objects name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} OBJECT ${ARG_SOURCES})
  slidestream_test_sources(${name})
endfunction()

# The programs whose tests are labelled `graph`.
add_custom_target(graph_tests)

# slidestream_test(NAME SOURCES ... LINK ... LABELS ... FIXTURE ... [WHOLE]): a doctest program, one CTest entry a test case.
# A test is skipped by its status: an expression for what it prints would hide that it failed.
function(slidestream_test name)
  cmake_parse_arguments(ARG "WHOLE" "TIMEOUT;FIXTURE" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES SLIDESTREAM_WHOLE ${ARG_WHOLE} BUILD_WITH_INSTALL_RPATH ${ARG_WHOLE})
  slidestream_test_sources(${name})
  if(NOT ARG_TIMEOUT)
    # Sanitizers make everything several times as long, emulators more so, and machines differ.
    if(CMAKE_CROSSCOMPILING)
      set(ARG_TIMEOUT 3600)
    elseif(SLIDESTREAM_SANITIZE)
      set(ARG_TIMEOUT 900)
    else()
      set(ARG_TIMEOUT 600)
    endif()
  endif()
  if(graph IN_LIST ARG_LABELS)
    add_dependencies(graph_tests ${name})
  endif()
  set(properties TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 77)
  if(ARG_LABELS)
    list(APPEND properties LABELS "${ARG_LABELS}")
  endif()
  if(ARG_FIXTURE)
    list(APPEND properties FIXTURES_REQUIRED "${ARG_FIXTURE}")
  endif()
  doctest_discover_tests(${name} TEST_PREFIX "${name}: " PROPERTIES ${properties})
endfunction()

# slidestream_script_test(NAME SCRIPT [PARTS ...] [ARGS ...] [ENVIRONMENT ...] [LABELS ...] [BYTECODE] [PROPERTY VALUE]...): a
# test in Python, skipped by its status too. PARTS: one CTest entry for each of these classes of the script, which stands
# for the asterisk in NAME. BYTECODE: Python may keep what it compiles.
function(slidestream_script_test name script)
  set(properties TIMEOUT PROCESSORS COST FIXTURES_SETUP FIXTURES_REQUIRED)
  cmake_parse_arguments(ARG "BYTECODE" "${properties}" "PARTS;ARGS;CONFIGURATIONS;ENVIRONMENT;LABELS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${name}: ${ARG_UNPARSED_ARGUMENTS} is nothing that slidestream_script_test takes")
  endif()
  set(command Python3::Interpreter -B "${CMAKE_CURRENT_SOURCE_DIR}/${script}" ${ARG_ARGS})
  if(ARG_BYTECODE)
    list(REMOVE_ITEM command -B)
  endif()
  set(names)
  foreach(part IN LISTS ARG_PARTS)
    string(REPLACE "*" "${part}" test "${name}")
    add_test(NAME "${test}" COMMAND ${command} -q ${part} CONFIGURATIONS ${ARG_CONFIGURATIONS})
    list(APPEND names "${test}")
  endforeach()
  if(NOT names)
    add_test(NAME "${name}" COMMAND ${command} CONFIGURATIONS ${ARG_CONFIGURATIONS})
    set(names "${name}")
  endif()
  set_tests_properties(${names} PROPERTIES SKIP_RETURN_CODE 77)
  # Sanitizers make everything several times as long: scripts wait longer, too (tests/support/time_limits.py).
  if(SLIDESTREAM_SANITIZE)
    list(APPEND ARG_ENVIRONMENT SANITIZED=1)
    if(NOT ARG_TIMEOUT)
      set(ARG_TIMEOUT 600)
    endif()
    math(EXPR ARG_TIMEOUT "3 * ${ARG_TIMEOUT}")
  endif()
  foreach(property IN LISTS properties ITEMS ENVIRONMENT LABELS)
    if(DEFINED ARG_${property})
      set_property(TEST ${names} PROPERTY ${property} ${ARG_${property}})
    endif()
  endforeach()
endfunction()

# slidestream_wide_test(PROGRAM [PART NAME] CASE...): cases of a test program that the deep check has go over everything of
# a kind. A case is the beginning of its name, with a question mark for a comma. That none of them is missing is looked at,
# too. A program with many has them in parts.
function(slidestream_wide_test program)
  cmake_parse_arguments(ARG "" "PART" "" ${ARGN})
  set(name "wide: ${program}")
  if(ARG_PART)
    string(APPEND name ", ${ARG_PART}")
  endif()
  set(cases ${ARG_UNPARSED_ARGUMENTS})
  list(LENGTH cases count)
  list(TRANSFORM cases APPEND "*")
  list(JOIN cases "," cases)
  add_test(NAME "${name}" COMMAND ${program} "--test-case=${cases}")
  set_tests_properties("${name}" PROPERTIES TIMEOUT 900 LABELS slow SKIP_RETURN_CODE 77
    ENVIRONMENT "SLIDESTREAM_TEST_WIDE=1;SLIDESTREAM_TEST_CASES=${count}")
endfunction()
