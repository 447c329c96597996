# expanse_library(NAME [DEPS targets...]): the sources of the calling directory as one static library
# expanse_NAME, and its *_test.cc files as one test program NAME_test. Adding a file needs no edit here.

# What the sanitizer builds need: every unit test, and those labelled `threads` (for ThreadSanitizer).
add_custom_target(unit_tests)
add_custom_target(thread_tests)
add_custom_target(fuzz_targets)

function(expanse_library name)
  cmake_parse_arguments(ARG "" "" "DEPS;TEST_DEPS;TEST_LABELS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc *.c)
  list(FILTER sources EXCLUDE REGEX "(_test|_bench|_fuzz|_testing|main)\\.(cc|c)$")
  add_library(expanse_${name} STATIC ${sources})
  target_include_directories(expanse_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(expanse_${name} PUBLIC ${ARG_DEPS})
  if(NOT EXPANSE_TESTS)
    return()
  endif()
  file(GLOB testing CONFIGURE_DEPENDS *_testing.cc)
  if(testing)  # fakes and helpers that tests of other folders use too
    add_library(expanse_${name}_testing STATIC ${testing})
    target_link_libraries(expanse_${name}_testing PUBLIC expanse_${name} GTest::gtest GTest::gmock)
    list(APPEND ARG_TEST_DEPS expanse_${name}_testing)
  endif()
  file(GLOB tests CONFIGURE_DEPENDS *_test.cc)
  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE expanse_${name} ${ARG_TEST_DEPS} GTest::gtest_main GTest::gmock)
    target_compile_definitions(${name}_test PRIVATE EXPANSE_SOURCE_DIR="${CMAKE_CURRENT_SOURCE_DIR}")
    add_dependencies(unit_tests ${name}_test)
    if("threads" IN_LIST ARG_TEST_LABELS)
      add_dependencies(thread_tests ${name}_test)
    endif()
    # One ctest entry per program: hundreds of process starts would cost more than the tests.
    add_test(NAME ${name} COMMAND ${name}_test)
    set_tests_properties(${name} PROPERTIES LABELS "unit;${ARG_TEST_LABELS}" TIMEOUT 300)
  endif()
endfunction()

# expanse_program(NAME OUTPUT binary SOURCES files DEPS targets): an executable that is installed.
function(expanse_program name)
  cmake_parse_arguments(ARG "" "OUTPUT" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES OUTPUT_NAME ${ARG_OUTPUT}
                        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  install(TARGETS ${name} RUNTIME DESTINATION bin)
endfunction()

# expanse_fuzzer(NAME SOURCE file DEPS targets): a libFuzzer target, run by tests/fuzz/smoke.
function(expanse_fuzzer name)
  cmake_parse_arguments(ARG "" "SOURCE" "DEPS" ${ARGN})
  if(NOT EXPANSE_FUZZ)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCE})
  add_dependencies(fuzz_targets ${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endfunction()
