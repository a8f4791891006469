// Publishing names (MPI 5.0 section 11.9.4): the user's daemon keeps them, the launcher passes them on.
#include <cstdio>

#include "base/error.h"
#include "mpi/check.h"
#include "mpi/dynamic.h"
#include "mpi/dynamic_common.h"

namespace starling::mpi {

namespace {

int ask(control::MessageKind kind, const char* service, const char* port, control::NameReply& reply) {
    control::NameRequest request;
    request.service = service;
    request.port = port;
    std::string bytes;
    if (const int error = call_launcher(kind, encode(request), bytes)) return error;
    if (!decode(bytes, reply)) return fail(MPI_ERR_INTERN, "the launcher's answer is garbled");
    return reply.error_class ? fail(reply.error_class, "%s", reply.text.c_str()) : MPI_SUCCESS;
}

int check_names(const char* service, const void* port, const char* function) {
    if (phase != Phase::running) return not_running(function);
    if (!service) return null_argument(nullptr, "service_name", function);
    if (!port) return null_argument(nullptr, "port_name", function);
    return MPI_SUCCESS;
}

}  // namespace

int Publish_name(const char* service_name, MPI_Info, const char* port_name) {
    Lock lock;
    if (const int error = check_names(service_name, port_name, "MPI_Publish_name")) return error;
    control::NameReply reply;
    return raise(nullptr, ask(control::MessageKind::publish, service_name, port_name, reply));
}

int Unpublish_name(const char* service_name, MPI_Info, const char* port_name) {
    Lock lock;
    if (const int error = check_names(service_name, port_name, "MPI_Unpublish_name")) return error;
    control::NameReply reply;
    return raise(nullptr, ask(control::MessageKind::unpublish, service_name, port_name, reply));
}

int Lookup_name(const char* service_name, MPI_Info, char* port_name) {
    Lock lock;
    if (const int error = check_names(service_name, port_name, "MPI_Lookup_name")) return error;
    control::NameReply reply;
    if (const int error = ask(control::MessageKind::lookup, service_name, "", reply)) return raise(nullptr, error);
    std::snprintf(port_name, MPI_MAX_PORT_NAME, "%s", reply.port.c_str());
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
