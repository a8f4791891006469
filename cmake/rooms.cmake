# Builds the ABI's generated files and the rooms (folders) of src/.

set(STARLING_GENERATED ${PROJECT_BINARY_DIR}/generated)
set(STARLING_INCLUDE ${PROJECT_BINARY_DIR}/include)

# Generates mpi.h, the entry points (STARLING_ENTRIES) and the list of implemented functions.
function(starling_generate_abi)
    set(abi ${PROJECT_SOURCE_DIR}/tools/abi)
    file(GLOB generator CONFIGURE_DEPENDS ${abi}/*.py ${abi}/*.tsv)
    file(GLOB chapters CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/mpi/*/*.h ${PROJECT_SOURCE_DIR}/src/mpi/*/*.cpp)
    set(entries)
    foreach(part point_to_point collective communicator datatype window file tool environment fortran)
        list(APPEND entries ${STARLING_GENERATED}/entries_${part}.cpp)
    endforeach()
    list(APPEND entries ${STARLING_GENERATED}/collectives.cpp)
    set(generate ${Python3_EXECUTABLE} -B ${abi}/generate.py)
    # Stamp files stand for the generated files: the generator does not touch files that would not change, so that ninja rebuilds nothing.
    add_custom_command(OUTPUT ${STARLING_GENERATED}/header.stamp
        COMMAND ${generate} header ${STARLING_INCLUDE}/mpi.h
        COMMAND ${CMAKE_COMMAND} -E touch ${STARLING_GENERATED}/header.stamp
        BYPRODUCTS ${STARLING_INCLUDE}/mpi.h ${STARLING_INCLUDE}/mpi-ext.h DEPENDS ${generator} COMMENT "Generating mpi.h" VERBATIM)
    add_custom_target(mpi_header DEPENDS ${STARLING_GENERATED}/header.stamp)
    add_custom_command(OUTPUT ${STARLING_GENERATED}/entries.stamp
        COMMAND ${generate} entries ${PROJECT_SOURCE_DIR}/src/mpi ${STARLING_GENERATED}
        COMMAND ${CMAKE_COMMAND} -E touch ${STARLING_GENERATED}/entries.stamp
        BYPRODUCTS ${entries} ${STARLING_GENERATED}/collectives.h ${STARLING_GENERATED}/function_list.inc
        DEPENDS ${generator} ${chapters} COMMENT "Generating the entry points" VERBATIM)
    add_custom_target(mpi_entries DEPENDS ${STARLING_GENERATED}/entries.stamp)
    set(STARLING_ENTRIES ${entries} PARENT_SCOPE)
endfunction()

# Compiler settings of everything in src/.
function(starling_source_settings target)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${STARLING_INCLUDE} ${STARLING_GENERATED})
    target_compile_options(${target} PRIVATE -fvisibility=hidden -fvisibility-inlines-hidden -ffunction-sections)
    target_compile_definitions(${target} PRIVATE STARLING_VERSION="${PROJECT_VERSION}")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    add_dependencies(${target} mpi_header)
endfunction()

# The binaries contain their versions (base/this_version.cpp).
string(REPLACE "." ";" wire "${STARLING_WIRE}")
list(GET wire 0 wire_major)
list(GET wire 1 wire_minor)
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/base/this_version.cpp PROPERTIES
    COMPILE_DEFINITIONS "STARLING_WIRE_MAJOR=${wire_major};STARLING_WIRE_MINOR=${wire_minor}")

# starling_rooms(<table>): adds each room (folder of src/) in the table, together with the rooms that it may include.
# STARLING_LIBRARIES_<room> has further libraries of a room.
function(starling_rooms table)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
    file(STRINGS ${table} lines REGEX "^[a-z]")
    set(rooms)
    foreach(line ${lines})
        string(REGEX MATCH "^([a-z]+)[a-z/]*: *(.*)$" line "${line}")
        set(room ${CMAKE_MATCH_1})
        string(REGEX REPLACE "/[a-z]+" "" needs "${CMAKE_MATCH_2}")
        string(REPLACE " " ";" needs "${needs}")
        list(REMOVE_ITEM needs ${room})
        list(APPEND rooms ${room})
        list(APPEND needs_${room} ${needs})
    endforeach()
    list(REMOVE_DUPLICATES rooms)
    list(REMOVE_ITEM rooms plugins compat fortran oshmem)  # plugins and libraries of their own, each with a file here
    foreach(room ${rooms})
        list(REMOVE_DUPLICATES needs_${room})
        starling_room(${room} NEEDS ${needs_${room}} LIBRARIES ${STARLING_LIBRARIES_${room}})
    endforeach()
endfunction()

# starling_room(<name> [NEEDS <rooms>...] [LIBRARIES <targets>...]): compiles src/<name> once. The library links the object files. Tests and
# tools link the archive room_<name>, which depends on the archives of the rooms that it needs.
function(starling_room name)
    cmake_parse_arguments(ROOM "" "" "NEEDS;LIBRARIES" ${ARGN})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
    list(TRANSFORM ROOM_NEEDS PREPEND room_)
    file(GLOB kernels ${PROJECT_SOURCE_DIR}/src/${name}/kernels*.cpp)  # the same code for several instruction sets
    set_source_files_properties(${kernels} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    if(NOT sources)
        add_library(room_${name} INTERFACE)
        target_link_libraries(room_${name} INTERFACE ${ROOM_NEEDS})
        return()
    endif()
    add_library(objects_${name} OBJECT ${sources})
    starling_source_settings(objects_${name})
    starling_room_headers(objects_${name})
    starling_batches(objects_${name})
    target_link_libraries(objects_${name} PRIVATE ${ROOM_LIBRARIES})
    add_library(room_${name} STATIC $<TARGET_OBJECTS:objects_${name}>)
    set_target_properties(room_${name} PROPERTIES LINKER_LANGUAGE CXX)
    target_link_libraries(room_${name} PUBLIC ${ROOM_NEEDS} ${ROOM_LIBRARIES} Threads::Threads)
endfunction()

function(starling_add_room_objects target room)
    if(TARGET objects_${room})
        target_sources(${target} PRIVATE $<TARGET_OBJECTS:objects_${room}>)
    endif()
endfunction()

# Settings of libmpi_abi.so.1. It exports only the standard's names and those of extensions.tsv, contains libstdc++, and depends on libc
# alone.
function(starling_library_settings target)
    starling_source_settings(${target})
    add_dependencies(${target} mpi_entries)
    set(exports ${PROJECT_SOURCE_DIR}/cmake/exports.map)
    set_target_properties(${target} PROPERTIES VERSION 1 SOVERSION 1 LINK_DEPENDS ${exports})
    target_include_directories(${target} INTERFACE ${STARLING_INCLUDE})
    target_link_libraries(${target} PRIVATE Threads::Threads)
    # Measured: the start of a program that only loads the library. Fewer mappings save 2 % of 740 us; binding all symbols at load costs 2
    # %; -Bsymbolic changes nothing, because the version script binds the symbols already.
    target_link_options(${target} PRIVATE -Wl,--version-script=${exports} -Wl,--gc-sections -Wl,-O1
        -Wl,--hash-style=gnu -Wl,-z,noseparate-code)
    if(NOT STARLING_SANITIZE)
        target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL)
        if(NOT STARLING_DRAFT)
            target_link_options(${target} PRIVATE -Wl,-z,defs)
        endif()
    endif()
    if(STARLING_DRAFT)
        target_link_options(${target} INTERFACE -Wl,--unresolved-symbols=ignore-in-shared-libs -Wl,-z,lazy)
    endif()
endfunction()
