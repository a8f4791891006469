# What `make install` puts where. Everything finds everything else relative to itself: the tree can be moved.
install(TARGETS mpi_abi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${STARLING_INCLUDE}/mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
