// Control variables: the table of base/variables.def, as tools see it.
#include <cstdio>
#include <cstring>

#include "base/no_destroy.h"
#include "base/pool.h"
#include "base/state.h"
#include "mpi/common/check.h"
#include "mpi/tool/tool.h"
#include "mpi/tool/tool_common.h"

namespace starling::mpi {

namespace {

/// Maximum length of a text variable that a tool reads or writes, with the terminator.
constexpr int kTextLength = 1024;

struct ControlHandle {
    static constexpr uint32_t kMagic = 0x63766172;
    uint32_t magic = 0;
    uint32_t pool_index = 0;
    const Variable& variable;
    explicit ControlHandle(const Variable& its) : variable(its) {}
};

STARLING_STATE NoDestroy<Pool<ControlHandle>> control_handle_pool_storage;
constinit auto& control_handle_pool = control_handle_pool_storage.value;

ControlHandle* from_handle(MPI_T_cvar_handle handle) {
    auto* object = reinterpret_cast<ControlHandle*>(handle);
    return object && object->magic == ControlHandle::kMagic ? object : nullptr;
}

MPI_Datatype datatype_of(const Variable& variable) {
    switch (variable.type) {
        case VariableType::integer:
            return MPI_COUNT;
        case VariableType::size:
            return MPI_UNSIGNED_LONG_LONG;
        case VariableType::text:
            return MPI_CHAR;
        default:
            return MPI_INT;  // MPI_INT: the index of the value in its enumeration
    }
}

/// Returns whether the variable is STARLING_CONFIG, the name of the configuration file. A tool cannot set it, because the file has been
/// read before a tool can call.
bool names_the_file(const Variable& variable) { return !std::strcmp(variable.name, "STARLING_CONFIG"); }

int scope_of(const Variable& variable) {
    if (variable.scope == VariableScope::launcher || names_the_file(variable)) return MPI_T_SCOPE_READONLY;
    return variable.scope == VariableScope::job ? MPI_T_SCOPE_ALL_EQ : MPI_T_SCOPE_LOCAL;
}

int may_write(const Variable& variable) {
    if (scope_of(variable) == MPI_T_SCOPE_READONLY) return MPI_T_ERR_CVAR_SET_NEVER;
    if (variable.scope == VariableScope::live || phase == LibraryPhase::before) return MPI_SUCCESS;
    return MPI_T_ERR_CVAR_SET_NOT_NOW;
}

/// Formats a value that a tool has written as text, in the form that the environment variable would have.
void print_written(const Variable& variable, const void* buffer, char (&text)[kTextLength]) {
    long long number = 0;
    int item = 0;
    switch (variable.type) {
        case VariableType::integer:
        case VariableType::size:
            std::memcpy(&number, buffer, sizeof number);
            std::snprintf(text, sizeof text, "%lld", number);  // a size above 63 bits becomes negative, which is out of range
            return;
        case VariableType::flag:
            std::memcpy(&item, buffer, sizeof item);
            std::snprintf(text, sizeof text, "%d", item);
            return;
        case VariableType::choice: {
            std::memcpy(&item, buffer, sizeof item);
            int count = 0;
            while (variable.choices[count]) ++count;
            std::snprintf(text, sizeof text, "%s", item >= 0 && item < count ? variable.choices[item] : "?");
            return;
        }
        default:
            std::snprintf(text, sizeof text, "%.*s", kTextLength - 1, static_cast<const char*>(buffer));
    }
}

/// Returns the text to store. A text variable gets a copy that is never freed, because another thread that has read the variable may still
/// use the pointer.
const char* lasting(const Variable& variable, const char* text) {
    return variable.type == VariableType::text ? strdup(text) : text;
}

template <class T>
const T& value_in(const Variable& variable) {
    return *reinterpret_cast<const T*>(reinterpret_cast<const char*>(&config()) + variable.offset);
}

}  // namespace

const Variable* control_variable(int index) {
    size_t count = 0;
    const Variable* rows = variables(count);
    for (const Variable* row = rows; row != rows + count; ++row)
        if (row->type != VariableType::reserved && index-- == 0) return row;
    return nullptr;
}

int control_variable_count() {
    int count = 0;
    while (control_variable(count)) ++count;
    return count;
}

int T_cvar_get_num(int* num_cvar) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    if (!num_cvar) return MPI_T_ERR_INVALID;
    *num_cvar = control_variable_count();
    return MPI_SUCCESS;
}

int T_cvar_get_info(int cvar_index, char* name, int* name_len, int* verbosity, MPI_Datatype* datatype, MPI_T_enum* enumtype,
                    char* desc, int* desc_len, int* bind, int* scope) {
    const ToolScope here;
    if (!here) return MPI_T_ERR_NOT_INITIALIZED;
    const Variable* variable = control_variable(cvar_index);
    if (!variable) return MPI_T_ERR_INVALID_INDEX;
    return_string(variable->name, name, name_len);
    store_out(verbosity, variable->scope == VariableScope::job ? MPI_T_VERBOSITY_USER_BASIC : MPI_T_VERBOSITY_TUNER_BASIC);
    store_out(datatype, datatype_of(*variable));
    store_out(enumtype, enum_of(*variable));
    return_string(variable->doc, desc, desc_len);
    store_out(bind, MPI_T_BIND_NO_OBJECT);
    store_out(scope, scope_of(*variable));
    return MPI_SUCCESS;
}

int T_cvar_get_index(const char* name, int* cvar_index) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    if (!name || !cvar_index) return MPI_T_ERR_INVALID;
    for (int i = 0; const Variable* variable = control_variable(i); ++i) {
        if (std::strcmp(variable->name, name) != 0) continue;
        *cvar_index = i;
        return MPI_SUCCESS;
    }
    return MPI_T_ERR_INVALID_NAME;
}

int T_cvar_handle_alloc(int cvar_index, void*, MPI_T_cvar_handle* handle, int* count) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    const Variable* variable = control_variable(cvar_index);
    if (!variable) return MPI_T_ERR_INVALID_INDEX;
    if (!handle) return MPI_T_ERR_INVALID;
    *handle = reinterpret_cast<MPI_T_cvar_handle>(control_handle_pool.create(*variable));
    store_out(count, variable->type == VariableType::text ? kTextLength : 1);
    return MPI_SUCCESS;
}

int T_cvar_handle_free(MPI_T_cvar_handle* handle) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    ControlHandle* object = handle ? from_handle(*handle) : nullptr;
    if (!object) return MPI_T_ERR_INVALID_HANDLE;
    control_handle_pool.destroy(object);
    *handle = MPI_T_CVAR_HANDLE_NULL;
    return MPI_SUCCESS;
}

int T_cvar_read(MPI_T_cvar_handle handle, void* buf) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    const ControlHandle* object = from_handle(handle);
    if (!object) return MPI_T_ERR_INVALID_HANDLE;
    if (!buf) return MPI_T_ERR_INVALID;
    const Variable& variable = object->variable;
    int item = 0;
    switch (variable.type) {
        case VariableType::integer:
        case VariableType::size:
            std::memcpy(buf, &value_in<uint64_t>(variable), sizeof(uint64_t));
            break;
        case VariableType::flag:
            item = value_in<bool>(variable);
            std::memcpy(buf, &item, sizeof item);
            break;
        case VariableType::choice:
            item = value_in<uint8_t>(variable);
            std::memcpy(buf, &item, sizeof item);
            break;
        default:
            print_value(variable, config(), static_cast<char*>(buf), kTextLength);
    }
    return MPI_SUCCESS;
}

int T_cvar_write(MPI_T_cvar_handle handle, const void* buf) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    const ControlHandle* object = from_handle(handle);
    if (!object) return MPI_T_ERR_INVALID_HANDLE;
    if (!buf) return MPI_T_ERR_INVALID;
    if (const int error = may_write(object->variable)) return error;
    char text[kTextLength];
    print_written(object->variable, buf, text);
    const char* value = lasting(object->variable, text);
    if (!value) return MPI_T_ERR_MEMORY;
    return set_variable(object->variable.name, value) == MPI_SUCCESS ? MPI_SUCCESS : MPI_T_ERR_INVALID;
}

}  // namespace starling::mpi
