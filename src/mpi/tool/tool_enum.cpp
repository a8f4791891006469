// Enumerations: the names of the values of a control variable. The handle is the variable's row.
#include "mpi/tool/tool.h"
#include "mpi/tool/tool_common.h"

namespace starling::mpi {

namespace {

constexpr const char* kFlagNames[] = {"off", "on", nullptr};

const char* const* names_of(const Variable& variable) {
    if (variable.type == VariableType::flag) return kFlagNames;
    return variable.type == VariableType::choice ? variable.choices : nullptr;
}

const Variable* from_handle(MPI_T_enum handle) {
    size_t count = 0;
    const Variable* rows = variables(count);
    for (const Variable* row = rows; row != rows + count; ++row)
        if (reinterpret_cast<MPI_T_enum>(const_cast<Variable*>(row)) == handle && names_of(*row)) return row;
    return nullptr;
}

int count_of(const char* const* names) {
    int count = 0;
    while (names[count]) ++count;
    return count;
}

}  // namespace

MPI_T_enum enum_of(const Variable& variable) {
    return names_of(variable) ? reinterpret_cast<MPI_T_enum>(const_cast<Variable*>(&variable)) : MPI_T_ENUM_NULL;
}

int T_enum_get_info(MPI_T_enum enumtype, int* num, char* name, int* name_len) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    const Variable* variable = from_handle(enumtype);
    if (!variable) return MPI_T_ERR_INVALID_HANDLE;
    store_out(num, count_of(names_of(*variable)));
    return_string(variable->name, name, name_len);
    return MPI_SUCCESS;
}

int T_enum_get_item(MPI_T_enum enumtype, int indx, int* value, char* name, int* name_len) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    const Variable* variable = from_handle(enumtype);
    if (!variable) return MPI_T_ERR_INVALID_HANDLE;
    const char* const* names = names_of(*variable);
    if (indx < 0 || indx >= count_of(names)) return MPI_T_ERR_INVALID_INDEX;
    store_out(value, indx);
    return_string(names[indx], name, name_len);
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
