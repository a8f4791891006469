#include "fortran/places.h"

FortranPlaces mpi_abi_places_;
FortranTexts mpi_abi_texts_;
