// Categories: one root; below it one for the control variables and one for each group of counters.
#include <cstring>

#include "base/counters.h"
#include "mpi/tool/tool.h"
#include "mpi/tool/tool_common.h"

namespace starling::mpi {

namespace {

enum : int { kRoot, kSettings, kFirstGroup };

int category_count() {
    size_t groups = 0;
    counter_groups(groups);
    return kFirstGroup + static_cast<int>(groups);
}

bool valid(int category) { return category >= 0 && category < category_count(); }

CounterGroupInfo describe(int category) {
    size_t groups = 0;
    if (category == kRoot) return {"starling", "all variables and events of Starling"};
    if (category == kSettings) return {"settings", "the STARLING_ variables: how the library works"};
    return counter_groups(groups)[category - kFirstGroup];
}

/// Stores the first `length` indices in the tool's array, and counts all.
struct Collector {
    int length = 0;
    int* indices = nullptr;
    int count = 0;
    void add(int index) {
        if (count < length) indices[count] = index;
        ++count;
    }
};

void collect_settings(int category, Collector& to) {
    if (category != kSettings) return;
    for (int i = 0; control_variable(i); ++i) to.add(i);
}

void collect_counters(int category, Collector& to) {
    size_t count = 0;
    const Counter* rows = counter_table(count);
    for (size_t i = 0; i < count; ++i)
        if (kFirstGroup + static_cast<int>(rows[i].group) == category) to.add(static_cast<int>(i));
}

void collect_categories(int category, Collector& to) {
    if (category != kRoot) return;
    for (int i = kRoot + 1; i < category_count(); ++i) to.add(i);
}

void collect_events(int category, Collector& to) {
    for (int i = 0; i < event_count(); ++i)
        if (kFirstGroup + static_cast<int>(event_group(i)) == category) to.add(i);
}

int get_indices(int category, int length, int* indices, void (*collect)(int, Collector&)) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    if (!valid(category)) return MPI_T_ERR_INVALID_INDEX;
    if (length < 0 || (length > 0 && !indices)) return MPI_T_ERR_INVALID;
    Collector to{length, indices};
    collect(category, to);
    return MPI_SUCCESS;
}

int count_of(int category, void (*collect)(int, Collector&)) {
    Collector counter;
    collect(category, counter);
    return counter.count;
}

}  // namespace

int T_category_get_num(int* num_cat) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    if (!num_cat) return MPI_T_ERR_INVALID;
    *num_cat = category_count();
    return MPI_SUCCESS;
}

int T_category_get_info(int cat_index, char* name, int* name_len, char* desc, int* desc_len, int* num_cvars, int* num_pvars,
                        int* num_categories) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    if (!valid(cat_index)) return MPI_T_ERR_INVALID_INDEX;
    const CounterGroupInfo category = describe(cat_index);
    return_string(category.name, name, name_len);
    return_string(category.doc, desc, desc_len);
    store_out(num_cvars, count_of(cat_index, collect_settings));
    store_out(num_pvars, count_of(cat_index, collect_counters));
    store_out(num_categories, count_of(cat_index, collect_categories));
    return MPI_SUCCESS;
}

int T_category_get_index(const char* name, int* cat_index) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    if (!name || !cat_index) return MPI_T_ERR_INVALID;
    for (int i = 0; i < category_count(); ++i) {
        if (std::strcmp(describe(i).name, name) != 0) continue;
        *cat_index = i;
        return MPI_SUCCESS;
    }
    return MPI_T_ERR_INVALID_NAME;
}

int T_category_get_num_events(int cat_index, int* num_events) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    if (!valid(cat_index)) return MPI_T_ERR_INVALID_INDEX;
    if (!num_events) return MPI_T_ERR_INVALID;
    *num_events = count_of(cat_index, collect_events);
    return MPI_SUCCESS;
}

int T_category_get_cvars(int cat_index, int len, int indices[]) {
    return get_indices(cat_index, len, indices, collect_settings);
}

int T_category_get_pvars(int cat_index, int len, int indices[]) {
    return get_indices(cat_index, len, indices, collect_counters);
}

int T_category_get_events(int cat_index, int len, int indices[]) {
    return get_indices(cat_index, len, indices, collect_events);
}

int T_category_get_categories(int cat_index, int len, int indices[]) {
    return get_indices(cat_index, len, indices, collect_categories);
}

int T_category_changed(int* update_number) {
    const ToolScope scope;
    if (!scope) return MPI_T_ERR_NOT_INITIALIZED;
    if (!update_number) return MPI_T_ERR_INVALID;
    *update_number = 0;  // the number never increases, because the tables never change
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
