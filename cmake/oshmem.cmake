# liboshmem: generated entry points of OpenSHMEM on top of libmpi_abi, which contains the runtime (docs/openshmem.md).
set(shmem_tables ${PROJECT_SOURCE_DIR}/tools/shmem)
file(GLOB generator CONFIGURE_DEPENDS ${shmem_tables}/*.py ${shmem_tables}/*.tsv)
file(GLOB chapters CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/oshmem/*.h)
set(entries)
foreach(part rma atomics collectives sync setup)
    list(APPEND entries ${STARLING_GENERATED}/oshmem_${part}.cpp)
endforeach()
add_custom_command(OUTPUT ${STARLING_GENERATED}/oshmem.stamp
    COMMAND ${Python3_EXECUTABLE} -B ${shmem_tables}/generate.py header ${STARLING_INCLUDE}
    COMMAND ${Python3_EXECUTABLE} -B ${shmem_tables}/generate.py entries ${PROJECT_SOURCE_DIR}/src/oshmem ${STARLING_GENERATED}
    COMMAND ${CMAKE_COMMAND} -E touch ${STARLING_GENERATED}/oshmem.stamp
    BYPRODUCTS ${entries} ${STARLING_GENERATED}/shmem_function_list.inc ${STARLING_INCLUDE}/shmem.h ${STARLING_INCLUDE}/pshmem.h
        ${STARLING_INCLUDE}/shmemx.h ${STARLING_INCLUDE}/mpp/shmem.h
    DEPENDS ${generator} ${chapters} COMMENT "Generating OpenSHMEM's entry points" VERBATIM)
add_custom_target(oshmem_entries DEPENDS ${STARLING_GENERATED}/oshmem.stamp)

add_library(oshmem SHARED ${entries} ${PROJECT_SOURCE_DIR}/src/oshmem/extensions.cpp ${PROJECT_SOURCE_DIR}/src/oshmem/fork_handlers.cpp)
starling_source_settings(oshmem)
add_dependencies(oshmem oshmem_entries)
set(exports ${PROJECT_SOURCE_DIR}/cmake/oshmem-exports.map)
set_target_properties(oshmem PROPERTIES VERSION 1 SOVERSION 1 LINK_DEPENDS ${exports} BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN")
target_include_directories(oshmem INTERFACE ${STARLING_INCLUDE})
target_link_libraries(oshmem PUBLIC mpi_abi)
target_link_options(oshmem PRIVATE -Wl,--version-script=${exports} -Wl,--gc-sections -Wl,-O1 -Wl,--hash-style=gnu -Wl,-z,noseparate-code)
if(NOT STARLING_SANITIZE)
    target_link_options(oshmem PRIVATE -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL -Wl,-z,defs)
endif()
