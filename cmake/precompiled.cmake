# Headers of others that nearly every file of a kind includes, read once: half of what compiling a room takes. Not with
# sanitizers, so that one of the builds of `make test` shows a file that leans on what it does not include.
option(STARLING_PRECOMPILED "Precompile headers that many files include" ON)
if(STARLING_SANITIZE)
    set(STARLING_PRECOMPILED OFF)
endif()

set(STARLING_COMMON_HEADERS <algorithm> <cstddef> <cstdint> <cstdlib> <cstring> <deque> <functional> <map> <memory>
    <optional> <string> <string_view> <unordered_map> <utility> <vector>)

# The rooms share one, compiled with their settings.
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

# So do the unit tests; with sanitizers too, since GoogleTest is most of what they read.
function(starling_unit_test_headers target)
    if(NOT TARGET unit_precompiled)
        add_executable(unit_precompiled EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
        starling_source_settings(unit_precompiled)
        target_link_libraries(unit_precompiled PRIVATE GTest::gtest_main)
        target_precompile_headers(unit_precompiled PRIVATE <gtest/gtest.h>)
    endif()
    target_precompile_headers(${target} REUSE_FROM unit_precompiled)
endfunction()
