# Compiles files in batches (unity builds). A batch parses its headers once, which saves half of the processor time of the first build. An
# edit recompiles the batch of the edited file, so the preset `develop` compiles each file alone. Builds with sanitizers do too, so that one
# of the builds of `make test` finds files that rely on other files of their batch.
#
# Files of a batch share one anonymous namespace, so a name in an anonymous namespace is defined once in a room. The test rooms_batches names
# violations.
option(STARLING_UNITY "Compile the files of a room in batches" OFF)
if(STARLING_SANITIZE)
    set(STARLING_UNITY OFF)
endif()
set(STARLING_BATCH 16)  # files in a batch at most

# starling_batches(<target>): compiles the target's files in batches, except those for which SKIP_UNITY_BUILD_INCLUSION is set or that have
# definitions or options of their own.
function(starling_batches target)
    if(STARLING_UNITY)
        set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${STARLING_BATCH})
        # GCC warns about types with members of types in the anonymous namespace, unless they are in the main file.
        target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
    endif()
endfunction()
