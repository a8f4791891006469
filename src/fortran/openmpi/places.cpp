#include "fortran/sentinels.h"

int mpi_fortran_bottom_;
int mpi_fortran_in_place_;
int mpi_fortran_errcodes_ignore_;
int mpi_fortran_status_ignore_[6];
int mpi_fortran_statuses_ignore_[6];
int mpi_fortran_unweighted_;
int mpi_fortran_weights_empty_;
char mpi_fortran_argv_null_, mpi_fortran_argvs_null_;
