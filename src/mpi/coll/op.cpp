#include "mpi/coll/op.h"

#include "base/error.h"
#include "datatype/op.h"
#include "mpi/common/buffer_overlap.h"
#include "mpi/common/check.h"
#include "mpi/common/handles.h"

namespace starling::mpi {

using datatype::Datatype;
using datatype::Op;

namespace {

int bad_op(MPI_Op handle) {
    if (phase != LibraryPhase::running) return not_running();
    const char* what = handle == MPI_OP_NULL ? "the operation is MPI_OP_NULL" : "the operation is not valid; was it freed?";
    return raise(nullptr, fail(MPI_ERR_OP, "%s", what));
}

int create(MPI_User_function* function, MPI_User_function_c* large, int commute, MPI_Op* op) {
    Lock lock;
    if (phase != LibraryPhase::running) return not_running();
    if (!function && !large) return null_argument(nullptr, "user_fn");
    if (!op) return null_argument(nullptr, "op");
    *op = datatype::to_handle(datatype::make_op(function, large, commute != 0));
    return MPI_SUCCESS;
}

}  // namespace

int Op_create(MPI_User_function* user_fn, int commute, MPI_Op* op) { return create(user_fn, nullptr, commute, op); }

int Op_create_c(MPI_User_function_c* user_fn, int commute, MPI_Op* op) { return create(nullptr, user_fn, commute, op); }

int Op_free(MPI_Op* op) {
    Lock lock;
    if (!op) return null_argument(nullptr, "op");
    Op* object = datatype::from_handle(*op);
    if (!object || phase != LibraryPhase::running) return bad_op(*op);
    if (object->predefined) return raise(nullptr, fail(MPI_ERR_OP, "a predefined operation can't be freed"));
    if (object->freed) return bad_op(*op);
    object->freed = true;
    datatype::release(*object);
    *op = MPI_OP_NULL;
    return MPI_SUCCESS;
}

int Op_commutative(MPI_Op op, int* commute) {
    const Op* object = datatype::from_handle(op);
    if (!object || phase != LibraryPhase::running) return bad_op(op);
    if (!commute) return null_argument(nullptr, "commute");
    *commute = object->commutative;
    return MPI_SUCCESS;
}

int Op_toint(MPI_Op op) { return to_int(op, datatype::from_handle(op)); }

MPI_Op Op_fromint(int op) { return from_int<MPI_Op, Op>(op, &datatype::op_at, MPI_OP_NULL); }

int Reduce_local(const void* inbuf, void* inoutbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op) {
    const Op* object = datatype::from_handle(op);
    if (!object || phase != LibraryPhase::running) return bad_op(op);
    const Datatype* type = datatype::from_handle(datatype);
    if (!type || !type->committed) return bad_type(nullptr, datatype);
    if (count < 0 || !datatype::packed_size_fits(*type, count)) return bad_count(nullptr, count);
    if (!datatype::op_valid_for(*object, *type))
        return raise(nullptr, fail(MPI_ERR_OP, "the operation is not defined for this datatype"));
    if (count == 0) return MPI_SUCCESS;
    if (type->predefined && (!inbuf || !inoutbuf)) return bad_buffer(nullptr);
    if (inbuf == MPI_IN_PLACE || inoutbuf == MPI_IN_PLACE)
        return raise(nullptr, fail(MPI_ERR_BUFFER,
                                   "MPI_Reduce_local does not allow MPI_IN_PLACE; inoutbuf is both operand "
                                   "and result"));
    if (overlap({inbuf, count, *type}, {inoutbuf, count, *type}))
        return raise(nullptr, fail(MPI_ERR_BUFFER, "inbuf and inoutbuf share memory; use separate buffers"));
    const int error = datatype::apply(*object, inbuf, inoutbuf, count, *type);
    return error ? raise(nullptr, error) : MPI_SUCCESS;
}

}  // namespace starling::mpi
