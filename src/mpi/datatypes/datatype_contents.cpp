#include "mpi/datatypes/datatype_contents.h"

#include <algorithm>

#include "base/error.h"
#include "datatype/contents.h"
#include "mpi/common/check.h"

namespace starling::mpi {

using datatype::Contents;
using datatype::Datatype;

namespace {

/// The constructor arguments of a derived type. A named type has none; its `combiner` is MPI_COMBINER_NAMED.
struct Description {
    Contents contents;
    const std::vector<Datatype*>* types = nullptr;
    int combiner = MPI_COMBINER_NAMED;
};

// Describes a type. If `may_be_large` is false, a type made by a large-count constructor is described as if the int function had made it.
// Numbers that do not fit in an int are then an error.
int describe(MPI_Datatype handle, bool may_be_large, Description& out) {
    const Datatype* type = datatype::from_handle(handle);
    if (!type)
        return fail(
            MPI_ERR_TYPE, "%s",
            handle == MPI_DATATYPE_NULL ? "the datatype is MPI_DATATYPE_NULL" : "the datatype is not valid; was it freed?");
    if (!type->recipe) return MPI_SUCCESS;
    out.combiner = type->recipe->combiner;
    out.types = &type->recipe->types;
    if (!sort_contents(*type->recipe, may_be_large && type->recipe->large, out.contents))
        return fail(MPI_ERR_TYPE,
                    "the datatype was made with counts that do not fit in an int; use the _c form of this function");
    return MPI_SUCCESS;
}

int no_contents() { return fail(MPI_ERR_TYPE, "a predefined datatype has no contents; only derived datatypes do"); }

int too_short(const char* what, int64_t have, size_t need) {
    return fail(MPI_ERR_ARG, "the array of %s has room for %lld entries, but the datatype has %zu", what,
                static_cast<long long>(have), need);
}

int too_short(const Description& d, int64_t integers, int64_t addresses, int64_t counts, int64_t types) {
    const auto lacks = [](int64_t room, size_t need) { return room < 0 || static_cast<size_t>(room) < need; };
    if (lacks(integers, d.contents.integers.size())) return too_short("integers", integers, d.contents.integers.size());
    if (lacks(addresses, d.contents.addresses.size())) return too_short("addresses", addresses, d.contents.addresses.size());
    if (lacks(counts, d.contents.large_counts.size())) return too_short("large counts", counts, d.contents.large_counts.size());
    if (lacks(types, d.types->size())) return too_short("datatypes", types, d.types->size());
    return MPI_SUCCESS;
}

// Writes the handles of the constituents. The application must free each of them that is not predefined.
void return_types(const std::vector<Datatype*>& types, MPI_Datatype out[]) {
    for (size_t i = 0; i < types.size(); ++i) {
        if (!types[i]->permanent) {
            datatype::retain(*types[i]);
            ++types[i]->handles;
        }
        out[i] = datatype::to_handle(types[i]);
    }
}

int get_contents(MPI_Datatype handle, bool large, const int64_t room[4], int integers[], MPI_Aint addresses[],
                 MPI_Count counts[], MPI_Datatype types[]) {
    Lock lock;
    if (phase != LibraryPhase::running) return not_running();
    Description d;
    int error = describe(handle, large, d);
    if (!error && !d.types) error = no_contents();
    if (!error) error = too_short(d, room[0], room[1], room[2], room[3]);
    if (error) return raise(nullptr, error);
    std::copy(d.contents.integers.begin(), d.contents.integers.end(), integers);
    std::copy(d.contents.addresses.begin(), d.contents.addresses.end(), addresses);
    std::copy(d.contents.large_counts.begin(), d.contents.large_counts.end(), counts);
    return_types(*d.types, types);
    return MPI_SUCCESS;
}

}  // namespace

int Type_get_envelope(MPI_Datatype datatype, int* num_integers, int* num_addresses, int* num_datatypes, int* combiner) {
    Lock lock;
    if (phase != LibraryPhase::running) return not_running();
    if (!num_integers || !num_addresses || !num_datatypes || !combiner)
        return null_argument(nullptr, "num_integers, num_addresses, num_datatypes or combiner");
    Description d;
    if (const int error = describe(datatype, false, d)) return raise(nullptr, error);
    *num_integers = static_cast<int>(d.contents.integers.size());
    *num_addresses = static_cast<int>(d.contents.addresses.size());
    *num_datatypes = d.types ? static_cast<int>(d.types->size()) : 0;
    *combiner = d.combiner;
    return MPI_SUCCESS;
}

int Type_get_envelope_c(MPI_Datatype datatype, MPI_Count* num_integers, MPI_Count* num_addresses, MPI_Count* num_large_counts,
                        MPI_Count* num_datatypes, int* combiner) {
    Lock lock;
    if (phase != LibraryPhase::running) return not_running();
    if (!num_integers || !num_addresses || !num_large_counts || !num_datatypes || !combiner)
        return null_argument(nullptr, "num_integers, num_addresses, num_large_counts, num_datatypes or combiner");
    Description d;
    if (const int error = describe(datatype, true, d)) return raise(nullptr, error);
    *num_integers = static_cast<MPI_Count>(d.contents.integers.size());
    *num_addresses = static_cast<MPI_Count>(d.contents.addresses.size());
    *num_large_counts = static_cast<MPI_Count>(d.contents.large_counts.size());
    *num_datatypes = d.types ? static_cast<MPI_Count>(d.types->size()) : 0;
    *combiner = d.combiner;
    return MPI_SUCCESS;
}

int Type_get_contents(MPI_Datatype datatype, int max_integers, int max_addresses, int max_datatypes, int array_of_integers[],
                      MPI_Aint array_of_addresses[], MPI_Datatype array_of_datatypes[]) {
    const int64_t room[] = {max_integers, max_addresses, 0, max_datatypes};
    return get_contents(datatype, false, room, array_of_integers, array_of_addresses, nullptr, array_of_datatypes);
}

int Type_get_contents_c(MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses, MPI_Count max_large_counts,
                        MPI_Count max_datatypes, int array_of_integers[], MPI_Aint array_of_addresses[],
                        MPI_Count array_of_large_counts[], MPI_Datatype array_of_datatypes[]) {
    const int64_t room[] = {max_integers, max_addresses, max_large_counts, max_datatypes};
    return get_contents(datatype, true, room, array_of_integers, array_of_addresses, array_of_large_counts, array_of_datatypes);
}

}  // namespace starling::mpi
