# The tree-sitter runtime (Debian's, linked statically: the command line needs no package for it) and the grammars
# as one library. Generated C: no warnings, no sanitizers for the tables, whose coverage no fuzzer needs.
find_path(TREE_SITTER_INCLUDE_DIR tree_sitter/api.h REQUIRED)
find_library(TREE_SITTER_LIBRARY NAMES libtree-sitter.a tree-sitter REQUIRED)
set(EXPANSE_GRAMMARS "${CMAKE_SOURCE_DIR}/build/tools/grammars" CACHE PATH "Where dev/fetch-grammars keeps the grammars")
execute_process(COMMAND "${CMAKE_SOURCE_DIR}/dev/fetch-grammars" "${EXPANSE_GRAMMARS}" RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the tree-sitter grammars could not be fetched: see above; "
                      "on a machine without network copy build/tools/grammars from another checkout")
endif()
set(python "${EXPANSE_GRAMMARS}/python-0.21.0/src")
add_library(expanse_grammars STATIC ${python}/parser.c ${python}/scanner.c)
target_include_directories(expanse_grammars PRIVATE ${python})
target_include_directories(expanse_grammars SYSTEM PUBLIC ${TREE_SITTER_INCLUDE_DIR})
target_link_libraries(expanse_grammars PUBLIC ${TREE_SITTER_LIBRARY})
target_compile_options(expanse_grammars PRIVATE -w -O1)
if(EXPANSE_SANITIZE)
  set_source_files_properties(${python}/parser.c PROPERTIES COMPILE_OPTIONS -fno-sanitize=all)
endif()
