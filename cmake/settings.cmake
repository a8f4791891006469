# Compiler and build-wide settings.
#
# The library directory is lib everywhere, so that the build tree and the installed tree have one layout. The cache variable has no type
# when it is set by -DCMAKE_INSTALL_LIBDIR=…; a type would turn the value into an absolute path below the current folder.
if(NOT DEFINED CMAKE_INSTALL_LIBDIR)
    set(CMAKE_INSTALL_LIBDIR lib CACHE PATH "Where libraries go, below the prefix")
endif()
include(GNUInstallDirs)
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    message(FATAL_ERROR "CMAKE_INSTALL_LIBDIR is ${CMAKE_INSTALL_LIBDIR}: give it relative to the prefix, as in -DCMAKE_INSTALL_LIBDIR=lib64, because installed files find each other by relative paths")
endif()
find_package(Threads REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwloc IMPORTED_TARGET hwloc)
# Linked statically, because one more shared library would delay each start of mpiexec, and only a few of its functions are used.
pkg_check_modules(sodium REQUIRED libsodium)
find_library(STARLING_SODIUM libsodium.a HINTS ${sodium_LIBRARY_DIRS} REQUIRED)

pkg_check_modules(zlib REQUIRED zlib)
find_library(STARLING_ZLIB libz.a HINTS ${zlib_LIBRARY_DIRS} REQUIRED)

option(STARLING_TESTS "Build the tests, examples and benchmarks" ON)
option(STARLING_WERROR "Warnings are errors; packages turn that off, since other compilers and flags have other warnings" ON)
option(STARLING_DRAFT "Let the library link while functions it calls are not written yet" OFF)
set(STARLING_SKIP_ROOMS "" CACHE STRING "With STARLING_DRAFT: rooms to leave out of the library")
set(STARLING_COUNTER_START 0 CACHE STRING "For tests: numbers that wrap begin so many before that (src/base/counter_start.h); 0: at 0")
set(STARLING_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=: address,undefined or thread")

option(STARLING_DELAYS "Processes stop at marked places now and then (src/base/delay.h): for tests" OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

# One layout for the build tree and for the installed tree, so that tools find each other the same way in both.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR})
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

find_program(STARLING_CCACHE ccache)
if(STARLING_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_C_COMPILER_LAUNCHER ${STARLING_CCACHE})
    # ccache requires these settings before it caches files compiled with precompiled headers.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${STARLING_CCACHE})
endif()

add_compile_options(-Wall -Wextra)
if(STARLING_WERROR)
    add_compile_options(-Werror)
endif()
if(STARLING_COUNTER_START)
    add_compile_definitions(STARLING_COUNTER_START=${STARLING_COUNTER_START})
endif()
if(STARLING_DELAYS)
    add_compile_definitions(STARLING_DELAYS)
endif()
if(STARLING_SANITIZE)
    add_compile_options(-fsanitize=${STARLING_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${STARLING_SANITIZE})
    if(STARLING_SANITIZE MATCHES thread)
        add_compile_options(-Wno-tsan)  # fences, which the sanitizer does not model
    endif()
    # GCC 12 warns about its own sanitizer instrumentation.
    add_compile_options(-Wno-maybe-uninitialized)
endif()
