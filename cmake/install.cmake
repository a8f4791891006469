# Installs the files of `make install`. All of them find each other by relative paths, so the installed tree can be moved.
install(TARGETS mpi_abi oshmem starling_keep LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libmpi.so DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${STARLING_INCLUDE}/mpi.h ${STARLING_INCLUDE}/mpi-ext.h ${STARLING_INCLUDE}/shmem.h
    ${STARLING_INCLUDE}/pshmem.h ${STARLING_INCLUDE}/shmemx.h ${PROJECT_SOURCE_DIR}/src/keep/starling_keep.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${STARLING_INCLUDE}/mpp/shmem.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mpp)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Targets that an installation needs, without tests and benchmarks.
set(installed mpi_abi oshmem starling_keep mpifort_abi compat_mpich compat_openmpi compat_redirect mpiexec starlingd starling)
foreach(plugin starling_pmix starling_verbs)
    if(TARGET ${plugin})
        list(APPEND installed ${plugin})
    endif()
endforeach()
if(NOT STARLING_SANITIZE)
    list(APPEND installed manual)
    install(DIRECTORY ${STARLING_MANUAL}/ DESTINATION ${CMAKE_INSTALL_MANDIR})
    foreach(folder bash-completion zsh fish)
        install(DIRECTORY ${CMAKE_BINARY_DIR}/${CMAKE_INSTALL_DATADIR}/${folder} DESTINATION ${CMAKE_INSTALL_DATADIR})
    endforeach()
endif()
add_custom_target(starling_installed DEPENDS ${installed})
