#include "fortran/places.h"

MpichPlaces1 mpipriv1_;
MpichPlaces2 mpipriv2_;
MpichTexts mpiprivc_;
int mpifcmb5_, mpifcmb9_;
