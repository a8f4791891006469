// Published names (MPI 5.0 section 11.9.4).
#include "base/error.h"
#include "dynamic/dynamic.h"
#include "dynamic/root_result.h"

namespace starling::dynamic {

namespace {

int call_name_service(control::MessageKind kind, const char* service, const char* port, control::NameReply& reply) {
    control::NameRequest request;
    request.service = service;
    request.port = port;
    std::string bytes;
    if (const int error = call_launcher(kind, encode(request), bytes)) return error;
    if (!decode(bytes, reply))
        return fail(MPI_ERR_INTERN,
                    "the launcher's reply to a name service request is invalid; use "
                    "the mpiexec and the library of one installation");
    return reply.error_class ? fail(reply.error_class, "%s", reply.text.c_str()) : MPI_SUCCESS;
}

}  // namespace

int publish(const char* service, const char* port) {
    control::NameReply reply;
    return call_name_service(control::MessageKind::publish, service, port, reply);
}

int unpublish(const char* service, const char* port) {
    control::NameReply reply;
    return call_name_service(control::MessageKind::unpublish, service, port, reply);
}

int lookup(const char* service, std::string& port) {
    control::NameReply reply;
    if (const int error = call_name_service(control::MessageKind::lookup, service, "", reply)) return error;
    port = std::move(reply.port);
    return MPI_SUCCESS;
}

}  // namespace starling::dynamic
