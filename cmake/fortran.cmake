# The Fortran interfaces: generated entry points on top of libmpi_abi; mpif.h; and the sources of the modules, which the user's compiler
# compiles when mpifort is first called (docs/fortran.md). No Fortran compiler is needed to build them.
set(abi ${PROJECT_SOURCE_DIR}/tools/abi)
file(GLOB generator CONFIGURE_DEPENDS ${abi}/*.py ${abi}/*.tsv)
set(generated ${STARLING_GENERATED}/fortran)
set(modules ${CMAKE_BINARY_DIR}/${CMAKE_INSTALL_DATADIR}/starling/fortran)
set(module_sources mpi.f90 mpi_f08.f90 mpi_f08_by_reference.f90 mpi_ext.f90 mpi_f08_ext.f90)
list(TRANSFORM module_sources PREPEND ${modules}/)
add_custom_command(OUTPUT ${generated}/stamp
    COMMAND ${Python3_EXECUTABLE} -B ${abi}/generate.py fortran ${generated} ${STARLING_INCLUDE} ${modules}
    COMMAND ${CMAKE_COMMAND} -E touch ${generated}/stamp
    BYPRODUCTS ${generated}/entries.cpp ${generated}/sections.cpp ${generated}/library.h ${generated}/numbers.h ${STARLING_INCLUDE}/mpif.h ${STARLING_INCLUDE}/mpif-ext.h
        ${module_sources}
    DEPENDS ${generator} COMMENT "Generating the Fortran interfaces" VERBATIM)
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/fortran/*.cpp ${PROJECT_SOURCE_DIR}/src/fortran/native/*.cpp
    ${PROJECT_SOURCE_DIR}/src/fortran/sections/*.cpp)
add_library(mpifort_abi SHARED ${sources} ${PROJECT_SOURCE_DIR}/src/compat/deferred_handles.cpp ${PROJECT_SOURCE_DIR}/src/compat/degree.cpp
    ${generated}/entries.cpp ${generated}/sections.cpp ${generated}/stamp)
starling_source_settings(mpifort_abi)
target_include_directories(mpifort_abi PRIVATE ${generated})
target_compile_definitions(mpifort_abi PRIVATE COMPAT_ABI="fortran/native/abi.h" COMPAT_STATUS="fortran/native/status.h"
    COMPAT_PLACES="fortran/native/places.h" COMPAT_DESCRIPTOR="fortran/native/descriptor.h")
set(exports ${PROJECT_SOURCE_DIR}/cmake/fortran-exports.map)
set_target_properties(mpifort_abi PROPERTIES VERSION 1 SOVERSION 1 LINK_DEPENDS ${exports} BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN")
target_link_libraries(mpifort_abi PUBLIC mpi_abi)
target_link_options(mpifort_abi PRIVATE -Wl,--version-script=${exports} -Wl,-O1 -Wl,--hash-style=gnu)
if(NOT STARLING_SANITIZE)
    target_link_options(mpifort_abi PRIVATE -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL -Wl,-z,defs)
endif()

install(TARGETS mpifort_abi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${STARLING_INCLUDE}/mpif.h ${STARLING_INCLUDE}/mpif-ext.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${module_sources} DESTINATION ${CMAKE_INSTALL_DATADIR}/starling/fortran)
