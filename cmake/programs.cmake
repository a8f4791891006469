# Programs on top of the rooms: tools, unit tests and MPI programs.

# starling_tool(<name> <sources>... [LIBRARIES <targets>...]): adds an executable in bin/.
function(starling_tool name)
    cmake_parse_arguments(TOOL "" "" "LIBRARIES" ${ARGN})
    add_executable(${name} ${TOOL_UNPARSED_ARGUMENTS})
    starling_source_settings(${name})
    target_link_libraries(${name} PRIVATE ${TOOL_LIBRARIES})
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# Unit tests are compiled with -O1, which takes a third less time than -O2, and makes warnings about uninitialized variables unreliable. What
# they test is compiled as in an installation, except inline functions.
function(starling_unit_test_settings target)
    if(CMAKE_BUILD_TYPE STREQUAL RelWithDebInfo AND NOT STARLING_SANITIZE)
        target_compile_options(${target} PRIVATE -O1 -Wno-maybe-uninitialized)
    endif()
endfunction()

# starling_unit_test(<file>): adds the GoogleTest executable and test unit_<file>, linked with the rooms whose headers the file includes.
function(starling_unit_test file)
    find_package(GTest REQUIRED)
    cmake_path(GET file STEM LAST_ONLY name)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(STRINGS ${file} includes REGEX "^#include \"[a-z]+/")
    list(TRANSFORM includes REPLACE "^#include \"([a-z]+)/.*" "room_\\1")
    list(REMOVE_DUPLICATES includes)
    set(rooms)
    foreach(room ${includes})
        if(TARGET ${room})
            list(APPEND rooms ${room})
        endif()
    endforeach()
    add_executable(unit_${name} ${file})
    starling_source_settings(unit_${name})
    starling_unit_test_settings(unit_${name})
    target_link_libraries(unit_${name} PRIVATE ${rooms} GTest::gtest_main)
    starling_unit_test_headers(unit_${name})
    set_target_properties(unit_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/unit)
    add_test(NAME unit_${name} COMMAND unit_${name})
    set_tests_properties(unit_${name} PROPERTIES TIMEOUT 900 LABELS unit)
endfunction()

# starling_mpi_program(<target> <sources>... [DIRECTORY <below the build tree>]): adds a program that uses only the public interface.
function(starling_mpi_program target)
    cmake_parse_arguments(PROGRAM "" "DIRECTORY" "LIBRARIES" ${ARGN})
    add_executable(${target} ${PROGRAM_UNPARSED_ARGUMENTS})
    target_link_libraries(${target} PRIVATE mpi_abi Threads::Threads ${PROGRAM_LIBRARIES})
    if(PROGRAM_DIRECTORY)
        set_target_properties(${target} PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${PROGRAM_DIRECTORY})
    endif()
endfunction()

# Adds one program per C or C++ file of the current directory, <prefix><file>, in <directory> below the build tree.
function(starling_mpi_programs prefix directory)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
    foreach(source ${sources})
        cmake_path(GET source STEM LAST_ONLY name)
        starling_mpi_program(${prefix}${name} ${source} DIRECTORY ${directory})
        set_target_properties(${prefix}${name} PROPERTIES OUTPUT_NAME ${name})
    endforeach()
endfunction()

# Adds each subdirectory that has a CMakeLists.txt. A subdirectory created later is found by the next build.
function(starling_add_subdirectories)
    file(GLOB lists CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
    foreach(list ${lists})
        cmake_path(GET list PARENT_PATH directory)
        add_subdirectory(${directory})
    endforeach()
endfunction()
