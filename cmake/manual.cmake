# Generates manual pages, the texts of `starling help` and completion for shells (tools/manual), from the same tables as the programs.
set(STARLING_MANUAL ${CMAKE_BINARY_DIR}/${CMAKE_INSTALL_MANDIR})
set(manual ${PROJECT_SOURCE_DIR}/tools/manual)
set(generate ${Python3_EXECUTABLE} -B ${manual}/build.py)
file(GLOB manual_sources CONFIGURE_DEPENDS ${manual}/*.py ${manual}/*.tsv ${PROJECT_SOURCE_DIR}/tools/abi/*.py ${PROJECT_SOURCE_DIR}/tools/abi/*.tsv
    ${PROJECT_SOURCE_DIR}/tools/shmem/*.py ${PROJECT_SOURCE_DIR}/tools/shmem/*.tsv ${PROJECT_SOURCE_DIR}/src/mpi/*/*.h
    ${PROJECT_SOURCE_DIR}/tools/starling/help/*.txt)

# The compressed help texts, which become a part of the program starling.
set(STARLING_HELP ${STARLING_GENERATED}/help.z)
add_custom_command(OUTPUT ${STARLING_HELP} COMMAND ${generate} help ${STARLING_HELP}
    DEPENDS ${manual_sources} COMMENT "Generating the texts of starling help" VERBATIM)

add_custom_target(starling_help DEPENDS ${STARLING_HELP})

add_custom_command(OUTPUT ${STARLING_GENERATED}/manual_functions.stamp
    COMMAND ${generate} functions "${PROJECT_VERSION} ${STARLING_RELEASED}" ${STARLING_MANUAL}
    COMMAND ${CMAKE_COMMAND} -E touch ${STARLING_GENERATED}/manual_functions.stamp
    DEPENDS ${manual_sources} COMMENT "Generating manual pages of functions" VERBATIM)
# Manual pages of commands, generated from the tables that the built program prints.
add_custom_command(OUTPUT ${STARLING_GENERATED}/manual_commands.stamp
    COMMAND starling help --tables > ${STARLING_GENERATED}/tables.json
    COMMAND ${generate} commands "${PROJECT_VERSION} ${STARLING_RELEASED}" ${STARLING_GENERATED}/tables.json ${STARLING_MANUAL} ${CMAKE_BINARY_DIR}/${CMAKE_INSTALL_DATADIR}
    COMMAND ${CMAKE_COMMAND} -E touch ${STARLING_GENERATED}/manual_commands.stamp
    DEPENDS starling ${manual_sources} COMMENT "Generating manual pages of commands" VERBATIM)
add_custom_target(manual ALL DEPENDS ${STARLING_GENERATED}/manual_functions.stamp ${STARLING_GENERATED}/manual_commands.stamp)
