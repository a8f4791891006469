// Communicators: queries, names, info, and freeing. comm_create.cpp creates them.
#include "mpi/comm/comm.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "collective/channel_exchange.h"
#include "collective/collective.h"
#include "collective/collective_request.h"
#include "mpi/comm/comm_hints.h"
#include "mpi/common/check.h"
#include "mpi/common/handles.h"
#include "mpi/pt2pt/buffered.h"

namespace starling::mpi {

using comm::Comm;

namespace {

// Frees a communicator. Attribute callbacks run first: they may still use the communicator, and may refuse.
int release_handle(MPI_Comm& handle, Comm* comm) {
    const comm::ReferenceGuard kept(comm);
    if (const int error = comm->attributes.clear(comm::AttributeHolder(handle))) return raise(comm, error);
    comm::drop(comm);
    handle = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

bool is_predefined(MPI_Comm handle) { return handle == MPI_COMM_WORLD || handle == MPI_COMM_SELF; }

int not_to_be_freed(Comm* comm) { return raise(comm, fail(MPI_ERR_COMM, "%s can't be freed", comm->name.c_str())); }

struct HintName {
    const char* key;
    bool comm::Hints::*value;
};
constexpr HintName kCommHints[] = {
    {"mpi_assert_no_any_tag", &comm::Hints::no_any_tag},
    {"mpi_assert_no_any_source", &comm::Hints::no_any_source},
    {"mpi_assert_exact_length", &comm::Hints::exact_length},
    {"mpi_assert_allow_overtaking", &comm::Hints::allow_overtaking},
    {"starling_connect", &comm::Hints::connect},
};

constexpr char kMulticastHint[] = "starling_multicast";

void copy_name(const char* name, char* out, int* length) {
    const size_t bytes = std::min<size_t>(std::strlen(name), MPI_MAX_OBJECT_NAME - 1);
    std::memcpy(out, name, bytes);
    out[bytes] = '\0';
    *length = static_cast<int>(bytes);
}

}  // namespace

void read_hints(const comm::Info& info, comm::Hints& hints) {
    for (const HintName& hint : kCommHints)
        if (const std::string* value = info.find(hint.key)) hints.*hint.value = *value == "true";
    if (const std::string* value = info.find(kMulticastHint)) {
        const auto& names = kChoices<Multicast>;
        for (int i = 0; names[i]; ++i)
            if (*value == names[i]) hints.multicast = static_cast<Multicast>(i);
    }
}

// The properties with which a communicator is created never change, so they are read without the lock.

int Comm_size(MPI_Comm comm, int* size) {
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (!size) return null_argument(c, "size");
    *size = c->size;
    return MPI_SUCCESS;
}

int Comm_rank(MPI_Comm comm, int* rank) {
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (!rank) return null_argument(c, "rank");
    *rank = c->rank;
    return MPI_SUCCESS;
}

int Comm_compare(MPI_Comm comm1, MPI_Comm comm2, int* result) {
    Lock lock;
    Comm* a = comm::from_handle(comm1);
    Comm* b = comm::from_handle(comm2);
    if (!a || !b) return bad_comm(a ? comm2 : comm1);
    if (!result) return null_argument(a, "result");
    if (a == b) {
        *result = MPI_IDENT;
        return MPI_SUCCESS;
    }
    *result = MPI_UNEQUAL;
    if (a->is_inter != b->is_inter) return MPI_SUCCESS;
    const int local = comm::compare(a->local_group(), b->local_group());
    const int remote = a->is_inter ? comm::compare(a->remote_group(), b->remote_group()) : local;
    if (local == MPI_IDENT && remote == MPI_IDENT)
        *result = MPI_CONGRUENT;
    else if (local != MPI_UNEQUAL && remote != MPI_UNEQUAL)
        *result = MPI_SIMILAR;
    return MPI_SUCCESS;
}

int Comm_group(MPI_Comm comm, MPI_Group* group) {
    Lock lock;
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (!group) return null_argument(c, "group");
    *group = comm::add_handle(c->local_group().retain());
    return MPI_SUCCESS;
}

int Comm_test_inter(MPI_Comm comm, int* flag) {
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (!flag) return null_argument(c, "flag");
    *flag = c->is_inter;
    return MPI_SUCCESS;
}

int Comm_remote_size(MPI_Comm comm, int* size) {
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (!c->is_inter) return wrong_kind_of_comm(c);
    if (!size) return null_argument(c, "size");
    *size = c->peer_count;
    return MPI_SUCCESS;
}

int Comm_remote_group(MPI_Comm comm, MPI_Group* group) {
    Lock lock;
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (!c->is_inter) return wrong_kind_of_comm(c);
    if (!group) return null_argument(c, "group");
    *group = comm::add_handle(c->remote_group().retain());
    return MPI_SUCCESS;
}

int Comm_free(MPI_Comm* comm) {
    Lock lock;
    if (!comm) return null_argument(nullptr, "comm");
    Comm* c = comm::from_handle(*comm);
    if (!c) return bad_comm(*comm);
    if (is_predefined(*comm)) return not_to_be_freed(c);
    return release_handle(*comm, c);
}

int Comm_disconnect(MPI_Comm* comm) {
    Lock lock;
    if (!comm) return null_argument(nullptr, "comm");
    Comm* c = comm::from_handle(*comm);
    if (!c) return bad_comm(*comm);
    if (is_predefined(*comm)) return not_to_be_freed(c);
    const comm::ReferenceGuard kept(c);
    drop_buffer(c->attached_buffer);
    // The barrier ensures that no member disconnects before all have asked for it. Failed members cannot be waited for, which is not an
    // error here.
    collective::run(collective::barrier(collective::View::all(collective::exchange_of(*c))));
    clear_failure();
    c->disconnected = true;
    if (comm::on_disconnect) comm::on_disconnect(*c);
    return release_handle(*comm, c);
}

int Comm_set_name(MPI_Comm comm, const char* comm_name) {
    Lock lock;
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (!comm_name) return null_argument(c, "comm_name");
    c->name.assign(comm_name, strnlen(comm_name, MPI_MAX_OBJECT_NAME - 1));
    return MPI_SUCCESS;
}

int Comm_get_name(MPI_Comm comm, char* comm_name, int* resultlen) {
    Lock lock;
    Comm* c = comm::from_handle(comm);
    if (!c && (comm != MPI_COMM_NULL || phase != LibraryPhase::running)) return bad_comm(comm);
    if (!comm_name || !resultlen) return null_argument(c, comm_name ? "resultlen" : "comm_name");
    copy_name(c ? c->name.c_str() : "MPI_COMM_NULL", comm_name, resultlen);
    return MPI_SUCCESS;
}

int Comm_set_info(MPI_Comm comm, MPI_Info info) {
    Lock lock;
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    comm::Info object;
    if (!comm::read_info(info, object)) return bad_handle(c, MPI_ERR_INFO, "info object");
    const bool before = c->hints.connect;
    read_hints(object, c->hints);
    if (c->hints.connect && !before) c->point_to_point.connect_recent_peers();
    return MPI_SUCCESS;
}

int Comm_get_info(MPI_Comm comm, MPI_Info* info_used) {
    Lock lock;
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (!info_used) return null_argument(c, "info_used");
    comm::Info* info = comm::make_info();
    for (const HintName& hint : kCommHints) info->set(hint.key, c->hints.*hint.value ? "true" : "false");
    info->set(kMulticastHint, kChoices<Multicast>[static_cast<int>(c->hints.multicast)]);
    *info_used = comm::to_handle(info);
    return MPI_SUCCESS;
}

int Comm_toint(MPI_Comm comm) {
    Lock lock;
    return to_int(comm, comm::from_handle(comm));
}

MPI_Comm Comm_fromint(int comm) {
    Lock lock;
    return from_int<MPI_Comm>(comm, comm::comm_at, MPI_COMM_NULL);
}

}  // namespace starling::mpi
