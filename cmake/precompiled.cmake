# Precompiles the system headers that nearly every file includes, which saves half of the time of compiling a room. Builds with sanitizers
# do not, so that one of the builds of `make test` finds files that rely on a header they do not include.
option(STARLING_PRECOMPILED "Precompile headers that many files include" ON)
if(STARLING_SANITIZE)
    set(STARLING_PRECOMPILED OFF)
endif()

set(STARLING_COMMON_HEADERS <algorithm> <cstddef> <cstdint> <cstdlib> <cstring> <deque> <functional> <map> <memory>
    <optional> <string> <string_view> <unordered_map> <utility> <vector>)

# All rooms share one precompiled header, compiled with their settings.
function(starling_room_headers target)
    if(NOT STARLING_PRECOMPILED)
        return()
    endif()
    if(NOT TARGET precompiled)
        add_library(precompiled OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
        starling_source_settings(precompiled)
        target_precompile_headers(precompiled PRIVATE ${STARLING_COMMON_HEADERS})
    endif()
    target_precompile_headers(${target} REUSE_FROM precompiled)
endfunction()

# All unit tests share another precompiled header. Builds with sanitizers use it too, since most of what unit tests include is GoogleTest.
function(starling_unit_test_headers target)
    if(NOT TARGET unit_precompiled)
        add_executable(unit_precompiled EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
        starling_source_settings(unit_precompiled)
        starling_unit_test_settings(unit_precompiled)
        target_link_libraries(unit_precompiled PRIVATE GTest::gtest_main)
        target_precompile_headers(unit_precompiled PRIVATE <gtest/gtest.h>)
    endif()
    target_precompile_headers(${target} REUSE_FROM unit_precompiled)
endfunction()
