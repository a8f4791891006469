# Builds the shims: libraries with the binary interface of another MPI. They are in separate folders where no linker looks for libraries
# (docs/compatibility.md).

# starling_shim(<interface> <file name> [<symbolic link>...]): adds the shim for an interface.
function(starling_shim interface library)
    set(abi ${PROJECT_SOURCE_DIR}/tools/abi)
    file(GLOB generator CONFIGURE_DEPENDS ${abi}/*.py ${abi}/*.tsv)
    set(generated ${STARLING_GENERATED}/compat/${interface})
    # The generated headers must be listed, or files that include them are compiled one build late. A file that is not generated must not be
    # listed, or the command runs in each build.
    set(headers callbacks.h library.h numbers.h)
    if(interface STREQUAL openmpi)
        list(APPEND headers objects.h)
    else()
        list(APPEND headers sections.cpp)
    endif()
    list(TRANSFORM headers PREPEND ${generated}/)
    add_custom_command(OUTPUT ${generated}/stamp
        COMMAND ${Python3_EXECUTABLE} -B ${abi}/generate.py compat ${interface} ${generated}
        COMMAND ${CMAKE_COMMAND} -E touch ${generated}/stamp
        BYPRODUCTS ${generated}/entries.cpp ${generated}/fortran.cpp ${headers}
        DEPENDS ${generator} COMMENT "Generating the shim for ${interface}" VERBATIM)
    set(src ${PROJECT_SOURCE_DIR}/src)
    file(GLOB sources CONFIGURE_DEPENDS ${src}/compat/*.cpp ${src}/compat/${interface}/*.cpp ${src}/fortran/*.cpp ${src}/fortran/${interface}/*.cpp)
    set(made ${generated}/entries.cpp ${generated}/fortran.cpp ${generated}/stamp)
    if(interface STREQUAL mpich)  # whose mpi_f08 passes descriptors
        file(GLOB sections CONFIGURE_DEPENDS ${src}/fortran/sections/*.cpp)
        list(APPEND made ${generated}/sections.cpp ${sections})
    endif()
    set(target compat_${interface})
    add_library(${target} SHARED ${sources} ${made} ${src}/mpi/library_mark.cpp)
    starling_source_settings(${target})
    set(found "$ORIGIN/../..:$ORIGIN")  # of libmpi_abi.so.1: a copy of the shim may lie beside it (tools/wheel)
    set(folder ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/compat/${interface})
    set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${library} SUFFIX "" NO_SONAME OFF
        LIBRARY_OUTPUT_DIRECTORY ${folder} BUILD_RPATH "${found}" INSTALL_RPATH "${found}" BUILD_WITH_INSTALL_RPATH ON)
    target_include_directories(${target} PRIVATE ${generated})
    target_compile_definitions(${target} PRIVATE COMPAT_ABI="compat/${interface}/abi.h" COMPAT_STATUS="compat/${interface}/status.h"
        COMPAT_PLACES="fortran/${interface}/places.h")
    if(interface STREQUAL mpich)
        target_compile_definitions(${target} PRIVATE COMPAT_DESCRIPTOR="fortran/mpich/descriptor.h" FORTRAN_OF_MPICH)
    endif()
    set(exports ${PROJECT_SOURCE_DIR}/cmake/compat-exports.map)
    target_link_options(${target} PRIVATE -Wl,-soname,${library} -Wl,--version-script=${exports} -static-libstdc++ -static-libgcc)
    target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
    set_target_properties(${target} PROPERTIES LINK_DEPENDS ${exports})
    add_dependencies(${target} mpi_abi)
    set(destination ${CMAKE_INSTALL_LIBDIR}/compat/${interface})
    install(TARGETS ${target} LIBRARY DESTINATION ${destination})
    foreach(name ${ARGN})
        add_custom_command(TARGET ${target} POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink ${library} ${folder}/${name} VERBATIM)
        install(FILES ${folder}/${name} DESTINATION ${destination})
    endforeach()
endfunction()

set_source_files_properties(${PROJECT_SOURCE_DIR}/src/launch/process/compat.cpp PROPERTIES COMPILE_DEFINITIONS STARLING_LIBDIR="${CMAKE_INSTALL_LIBDIR}")

# Fortran libraries of these MPIs are symbolic links to the same shim, so the loader recognizes it as already loaded.
starling_shim(mpich libmpi.so.12 libmpich.so.12 libmpi.so libmpifort.so.12 libmpichfort.so.12)
starling_shim(openmpi libmpi.so.40 libmpi.so libmpi_mpifh.so.40 libmpi_usempi_ignore_tkr.so.40 libmpi_usempif08.so.40)

# The library that replaces others at load (src/compat/redirect). It needs no C library, so nothing that expects one may be added to it.
set(redirect ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/compat/any)
add_library(compat_redirect SHARED ${PROJECT_SOURCE_DIR}/src/compat/redirect/redirect.cpp
    ${PROJECT_SOURCE_DIR}/src/compat/redirect/soname.cpp)
set_target_properties(compat_redirect PROPERTIES OUTPUT_NAME starling_redirect LIBRARY_OUTPUT_DIRECTORY ${redirect}
    CXX_VISIBILITY_PRESET hidden SKIP_BUILD_RPATH ON INSTALL_RPATH "")
target_include_directories(compat_redirect PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(compat_redirect PRIVATE -O2 -ffreestanding -fno-exceptions -fno-rtti -fno-stack-protector
    -fno-tree-loop-distribute-patterns -fno-sanitize=all)
set(loader ld-linux-x86-64.so.2)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
    set(loader ld-linux-aarch64.so.1)
endif()
target_link_options(compat_redirect PRIVATE -nostdlib -fno-sanitize=all -Wl,--hash-style=gnu -Wl,-z,defs)
target_link_libraries(compat_redirect PRIVATE -Wl,--no-as-needed -l:${loader})
install(TARGETS compat_redirect LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/compat/any)
