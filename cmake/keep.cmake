# libstarling_keep: a store of blocks that survive failures, on top of MPI's public functions (docs/keep.md).
configure_file(${PROJECT_SOURCE_DIR}/src/keep/starling_keep.h ${STARLING_INCLUDE}/starling_keep.h COPYONLY)
target_link_libraries(room_keep PUBLIC mpi_abi)  # for unit tests
add_library(starling_keep SHARED $<TARGET_OBJECTS:objects_keep>)
set(exports ${PROJECT_SOURCE_DIR}/cmake/keep-exports.map)
set_target_properties(starling_keep PROPERTIES VERSION 1 SOVERSION 1 LINKER_LANGUAGE CXX LINK_DEPENDS ${exports}
    BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN")
target_include_directories(starling_keep INTERFACE ${STARLING_INCLUDE})
target_link_libraries(starling_keep PUBLIC mpi_abi)
target_link_options(starling_keep PRIVATE -Wl,--version-script=${exports} -Wl,--gc-sections -Wl,-O1 -Wl,--hash-style=gnu -Wl,-z,noseparate-code)
if(NOT STARLING_SANITIZE)
    target_link_options(starling_keep PRIVATE -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL -Wl,-z,defs)
endif()
