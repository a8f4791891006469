#include "fortran/sentinels.h"

FortranPlaces mpi_abi_places_;
FortranTexts mpi_abi_texts_;
