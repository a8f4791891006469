#include "fortran/sentinels.h"

#include <algorithm>

MpichPlaces1 mpipriv1_;
MpichPlaces2 mpipriv2_;
MpichTexts mpiprivc_;
int mpifcmb5_, mpifcmb9_;
int mpich_bottom, mpich_in_place, mpich_unweighted, mpich_weights_empty, mpich_errcodes_ignore;
MpichStatus mpich_status_ignore, mpich_statuses_ignore;
char mpich_argv_null, mpich_argvs_null;

namespace starling::fortran {

namespace {

struct SentinelAddress {
    const void* address;
    Meaning meaning;
};
const SentinelAddress kPlaces[] = {
    {&mpipriv1_.bottom, Meaning::bottom},
    {&mpich_bottom, Meaning::bottom},
    {&mpipriv1_.in_place, Meaning::in_place},
    {&mpich_in_place, Meaning::in_place},
    {&mpipriv1_.status_ignore, Meaning::status_ignore},
    {&mpipriv2_.statuses_ignore, Meaning::status_ignore},
    {&mpich_status_ignore, Meaning::status_ignore},
    {&mpich_statuses_ignore, Meaning::status_ignore},
    {&mpipriv2_.errcodes_ignore, Meaning::errcodes_ignore},
    {&mpich_errcodes_ignore, Meaning::errcodes_ignore},
    {&mpifcmb5_, Meaning::unweighted},
    {&mpich_unweighted, Meaning::unweighted},
    {&mpifcmb9_, Meaning::weights_empty},
    {&mpich_weights_empty, Meaning::weights_empty},
};

[[gnu::constructor(102)]] void find_span() {
    places_span = {UINTPTR_MAX, 0};
    for (const SentinelAddress& place : kPlaces) {
        const auto at = reinterpret_cast<uintptr_t>(place.address);
        places_span = {std::min(places_span.first, at), std::max(places_span.last, at)};
    }
}

}  // namespace

PlacesSpan places_span;

Meaning meaning_within_span(const void* place) {
    for (const SentinelAddress& known : kPlaces)
        if (place == known.address) return known.meaning;
    return Meaning::none;
}

}  // namespace starling::fortran
