# The plugin for InfiniBand and RoCE. It is built if the headers of libibverbs and librdmacm are installed, and the library loads it on
# hosts with a device.
pkg_check_modules(verbs IMPORTED_TARGET libibverbs librdmacm)
if(verbs_FOUND)
    file(GLOB verbs_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/plugins/verbs/*.cpp)
    add_library(objects_plugins OBJECT ${verbs_sources})
    starling_source_settings(objects_plugins)
    add_library(starling_verbs MODULE $<TARGET_OBJECTS:objects_plugins>)
    target_link_libraries(starling_verbs PRIVATE PkgConfig::verbs)
    target_link_options(starling_verbs PRIVATE -Wl,--gc-sections)
    if(NOT STARLING_SANITIZE)
        target_link_options(starling_verbs PRIVATE -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL -Wl,-z,defs)
    endif()
    install(TARGETS starling_verbs LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
else()
    message(STATUS "libibverbs-dev or librdmacm-dev is not installed: Starling will use InfiniBand and RoCE adapters only through their IP interfaces")
endif()

# A variant of the plugin for tests: the same object files, linked with a fake of both libraries.
if(verbs_FOUND AND STARLING_TESTS)
    file(GLOB fake_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/verbs/fake/*.cpp)
    set(own_memory ${PROJECT_SOURCE_DIR}/tests/verbs/fake/own_memory.cpp)
    list(REMOVE_ITEM fake_sources ${own_memory})
    add_library(verbs_fake STATIC EXCLUDE_FROM_ALL ${fake_sources})
    target_include_directories(verbs_fake PUBLIC ${PROJECT_SOURCE_DIR}/tests/verbs)
    set_target_properties(verbs_fake PROPERTIES POSITION_INDEPENDENT_CODE ON)
    # The fake as a shared library, for tests with several processes. LD_LIBRARY_PATH names its directory, so that programs linked with the
    # real libraries load it.
    set(fake_directory ${PROJECT_BINARY_DIR}/tests/verbs)
    add_library(verbs_fake_shared SHARED EXCLUDE_FROM_ALL ${fake_sources} ${own_memory})
    target_include_directories(verbs_fake_shared PRIVATE ${PROJECT_SOURCE_DIR}/tests/verbs)
    set_target_properties(verbs_fake_shared PROPERTIES LIBRARY_OUTPUT_NAME ibverbs SOVERSION 1 LIBRARY_OUTPUT_DIRECTORY ${fake_directory}
        LINK_DEPENDS ${PROJECT_SOURCE_DIR}/tests/verbs/fake/libraries.map)
    target_link_options(verbs_fake_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/tests/verbs/fake/libraries.map
        -static-libstdc++ -static-libgcc)
    target_link_libraries(verbs_fake_shared PRIVATE Threads::Threads)
    add_custom_command(TARGET verbs_fake_shared POST_BUILD
        COMMAND ${CMAKE_COMMAND} -E create_symlink libibverbs.so.1 ${fake_directory}/librdmacm.so.1)
    add_library(room_plugins STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:objects_plugins>)
    target_link_libraries(room_plugins PUBLIC verbs_fake Threads::Threads)
endif()
