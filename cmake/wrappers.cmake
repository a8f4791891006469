# The compiler wrappers and pkg-config files. Each finds the tree that it is in by its own path, so the same files serve the build tree and
# an installed tree that has been moved.

# starling_wrapper(<name> <language> <variable> <compiler> <standard> <libraries>...): creates and installs one compiler wrapper.
function(starling_wrapper NAME LANGUAGE VARIABLE COMPILER STANDARD)
    list(JOIN ARGN " " LIBRARIES)
    list(TRANSFORM ARGN PREPEND -l OUTPUT_VARIABLE LINK)
    list(JOIN LINK " " LINK)
    string(REGEX REPLACE "^CC$" "C" FLAGS ${VARIABLE})  # the flags of CC are CFLAGS, of CXX CXXFLAGS, of FC FCFLAGS
    string(APPEND FLAGS FLAGS)
    set(FIND_MODULES ":")
    if(LANGUAGE STREQUAL Fortran)
        set(FIND_MODULES "modules=$(\"$prefix/${CMAKE_INSTALL_DATADIR}/starling/fortran/modules\" $compiler) || exit 1
    if [ -r \"$modules/flags\" ]; then read -r flags <\"$modules/flags\"; fi")
    endif()
    configure_file(${PROJECT_SOURCE_DIR}/tools/wrappers/compiler.in ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${NAME} @ONLY
        FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
    install(PROGRAMS ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${NAME} DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

function(starling_pkg_config NAME PC_NAME PC_VERSION PC_DESCRIPTION LINK)
    set(file ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/pkgconfig/${NAME}.pc)
    configure_file(${PROJECT_SOURCE_DIR}/tools/wrappers/starling.pc.in ${file} @ONLY)
    install(FILES ${file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

cmake_path(GET CMAKE_C_COMPILER FILENAME c_compiler)
cmake_path(GET CMAKE_CXX_COMPILER FILENAME cxx_compiler)
foreach(name mpicc mpicc_abi)
    starling_wrapper(${name} C CC ${c_compiler} MPI mpi_abi)
endforeach()
foreach(name mpicxx mpic++ mpiCC mpicxx_abi)
    starling_wrapper(${name} C++ CXX ${cxx_compiler} MPI mpi_abi)
endforeach()
starling_wrapper(oshcc C CC ${c_compiler} OpenSHMEM oshmem mpi_abi)
foreach(name oshcxx oshc++ oshCC)
    starling_wrapper(${name} C++ CXX ${cxx_compiler} OpenSHMEM oshmem mpi_abi)
endforeach()
foreach(name mpifort mpif90 mpif77 mpifort_abi)
    starling_wrapper(${name} Fortran FC gfortran MPI mpifort_abi mpi_abi)
endforeach()
set(finder ${CMAKE_BINARY_DIR}/${CMAKE_INSTALL_DATADIR}/starling/fortran/modules)
configure_file(${PROJECT_SOURCE_DIR}/tools/wrappers/fortran-modules ${finder} COPYONLY
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
install(PROGRAMS ${finder} DESTINATION ${CMAKE_INSTALL_DATADIR}/starling/fortran)
foreach(file descriptors.f90 descriptors-called.f90)
    configure_file(${PROJECT_SOURCE_DIR}/tools/wrappers/${file} ${CMAKE_BINARY_DIR}/${CMAKE_INSTALL_DATADIR}/starling/fortran/${file} COPYONLY)
    install(FILES ${PROJECT_SOURCE_DIR}/tools/wrappers/${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/starling/fortran)
endforeach()
starling_pkg_config(starling Starling ${PROJECT_VERSION} "Starling, an MPI runtime for jobs that grow and shrink" -lmpi_abi)
starling_pkg_config(mpi_abi mpi_abi 5.0 "The MPI standard ABI, as Starling provides it" -lmpi_abi)
starling_pkg_config(openshmem OpenSHMEM 1.5 "OpenSHMEM, as Starling provides it" "-loshmem -lmpi_abi")

# Files for find_package(OpenSHMEM), which define the target OpenSHMEM::OpenSHMEM.
set(package ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/cmake/OpenSHMEM)
foreach(file OpenSHMEMConfig.cmake OpenSHMEMConfigVersion.cmake)
    configure_file(${PROJECT_SOURCE_DIR}/tools/wrappers/${file}.in ${package}/${file} @ONLY)
    install(FILES ${package}/${file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/OpenSHMEM)
endforeach()
