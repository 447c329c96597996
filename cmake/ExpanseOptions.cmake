# Compiler settings that hold for every target.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 17)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

option(EXPANSE_TESTS "Build unit tests, test servers and benchmarks" ON)
option(EXPANSE_WERROR "Treat warnings as errors" ON)
set(EXPANSE_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread")
option(EXPANSE_FUZZ "Build the libFuzzer targets (clang only)" OFF)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # The base directory makes a second checkout hit the cache that the first one filled.
  set(expanse_launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${expanse_launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${expanse_launcher})
endif()

find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()

add_compile_options(-Wall -Wextra -Wnon-virtual-dtor -Wimplicit-fallthrough -Wswitch-enum
                    -Wno-missing-field-initializers)  # designated initializers leave the rest to defaults
if(EXPANSE_WERROR)
  add_compile_options(-Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wshadow=local)
  # GCC 12 reports these inside libstdc++ and Beast at -O2 where no such path exists.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict> $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
endif()
# For folders that call std::stable_sort: libstdc++ 12 deprecates, in C++23, what it calls itself, and clang
# reports that at the caller.
set(EXPANSE_STABLE_SORT_OPTIONS "")
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(EXPANSE_STABLE_SORT_OPTIONS $<$<COMPILE_LANGUAGE:CXX>:-Wno-deprecated-declarations>)
endif()
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)

if(EXPANSE_SANITIZE)
  add_compile_options(-fsanitize=${EXPANSE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${EXPANSE_SANITIZE})
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_options(-fstack-protector-strong -D_FORTIFY_SOURCE=2)
  add_link_options(-Wl,-z,relro,-z,now -Wl,--gc-sections)
  add_compile_options(-ffunction-sections -fdata-sections)
endif()
