// Converts elements and operators of the ABI to the datatypes and operations of src/datatype.
#pragma once

#include "datatype/datatype.h"
#include "datatype/op.h"
#include "mpi.h"
#include "shmem/runtime_abi.h"

namespace starling::shmem {

inline const datatype::Datatype& type_of(Element element) {
    switch (element) {
        case Element::int8:
            return datatype::predefined(MPI_INT8_T);
        case Element::int16:
            return datatype::predefined(MPI_INT16_T);
        case Element::int32:
            return datatype::predefined(MPI_INT32_T);
        case Element::int64:
            return datatype::predefined(MPI_INT64_T);
        case Element::uint8:
            return datatype::predefined(MPI_UINT8_T);
        case Element::uint16:
            return datatype::predefined(MPI_UINT16_T);
        case Element::uint32:
            return datatype::predefined(MPI_UINT32_T);
        case Element::uint64:
            return datatype::predefined(MPI_UINT64_T);
        case Element::float32:
            return datatype::predefined(MPI_FLOAT);
        case Element::float64:
            return datatype::predefined(MPI_DOUBLE);
        case Element::extended:
            return datatype::predefined(MPI_LONG_DOUBLE);
        case Element::complex64:
            return datatype::predefined(MPI_C_FLOAT_COMPLEX);
        default:
            return datatype::predefined(MPI_C_DOUBLE_COMPLEX);
    }
}

inline const datatype::Op& op_of(Operator op) {
    switch (op) {
        case Operator::sum:
            return datatype::predefined(MPI_SUM);
        case Operator::prod:
            return datatype::predefined(MPI_PROD);
        case Operator::min:
            return datatype::predefined(MPI_MIN);
        case Operator::max:
            return datatype::predefined(MPI_MAX);
        case Operator::band:
            return datatype::predefined(MPI_BAND);
        case Operator::bor:
            return datatype::predefined(MPI_BOR);
        case Operator::bxor:
            return datatype::predefined(MPI_BXOR);
        case Operator::replace:
            return datatype::predefined(MPI_REPLACE);
        default:
            return datatype::predefined(MPI_NO_OP);
    }
}

}  // namespace starling::shmem
