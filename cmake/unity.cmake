# Compiles the files of a room together, up to 16 at a time, which saves most of the time that their common headers cost.
option(STARLING_UNITY "Compile the files of a room together, in batches" OFF)

# Files that must be compiled alone, because their batch has an internal function or variable of the same name.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/unity_alone.txt STARLING_ALONE REGEX "^[a-z]")
list(TRANSFORM STARLING_ALONE PREPEND ${PROJECT_SOURCE_DIR}/)

function(starling_unity target)
    if(STARLING_UNITY)
        set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
        # GCC takes the batch for the main file, and the files that it includes for headers.
        target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
        set_source_files_properties(${STARLING_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
endfunction()
