// Passes random array sections and datatypes to the entry points of mpi_f08, in a compiler's format. Data sent, received, packed and
// reduced must equal that of a contiguous copy, and gaps must stay untouched. Needs no Fortran compiler.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "fortran/native/descriptor.h"

using starling::fortran::Descriptor;

extern "C" {
void mpi_isend_f08ts(const Descriptor*, const int*, const int*, const int*, const int*, const int*, int*, int*);
void mpi_irecv_f08ts(const Descriptor*, const int*, const int*, const int*, const int*, const int*, int*, int*);
void mpi_pack_f08ts(const Descriptor*, const int*, const int*, const Descriptor*, const int*, int*, const int*, int*);
void mpi_iallreduce_f08ts(const Descriptor*, const Descriptor*, const int*, const int*, const int*, const int*, int*, int*);
}

namespace {

unsigned seed;

void require(bool holds, const char* what) {
    if (holds) return;
    std::printf("FAIL seed %u: %s\n", seed, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

using Bytes = std::vector<unsigned char>;

/// An array with elements of `element` bytes, and a section of it.
struct Array {
    Bytes memory;
    Descriptor section{};
    std::vector<ptrdiff_t> places;  // offsets of the section's elements in `memory`

    Array(std::mt19937& random, size_t element) {
        const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
        const int rank = 1 + below(4);
        ptrdiff_t size = static_cast<ptrdiff_t>(element), first = 0;
        section.element = element;
        section.dimensions = static_cast<int8_t>(rank);
        places.push_back(0);
        for (int i = 0; i < rank; ++i) {
            const int whole = 1 + below(6), step = 1 + below(3), most = (whole + step - 1) / step;
            const int extent = below(3) ? 1 + below(most) : most;
            ptrdiff_t stride = size * step;
            if (below(4) == 0) {  // a dimension in reverse order
                first += stride * (extent - 1);
                stride = -stride;
            }
            section.of[i] = {0, extent, stride};
            std::vector<ptrdiff_t> longer;
            for (int at = 0; at < extent; ++at)
                for (const ptrdiff_t place : places) longer.push_back(place + at * stride);
            places = longer;
            size *= whole;
        }
        for (ptrdiff_t& place : places) place += first;
        memory.resize(static_cast<size_t>(size));
        for (unsigned char& byte : memory) byte = static_cast<unsigned char>(random());
        section.first = memory.data() + first;
    }
    size_t bytes() const { return places.size() * section.element; }
    Bytes together() const {
        Bytes all;
        for (const ptrdiff_t place : places)
            all.insert(all.end(), &memory[static_cast<size_t>(place)], &memory[static_cast<size_t>(place)] + section.element);
        return all;
    }
    /// Returns a copy of `memory` in which the bytes `all` replace the section's elements.
    Bytes with(const Bytes& all) const {
        Bytes result = memory;
        for (size_t i = 0; i < places.size(); ++i)
            std::memcpy(&result[static_cast<size_t>(places[i])], &all[i * section.element], section.element);
        return result;
    }
};

MPI_Datatype draw_type(std::mt19937& random, MPI_Datatype basic) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    const int a = 1 + static_cast<int>(random() % 3), b = 1 + static_cast<int>(random() % 3);
    const int lengths[] = {a, b}, places[] = {b, b + a + 1 + static_cast<int>(random() % 2)};
    switch (random() % 4) {
        case 0:
            MPI_Type_dup(basic, &type);
            break;
        case 1:
            MPI_Type_contiguous(a, basic, &type);
            break;
        case 2:
            MPI_Type_vector(a, b, b + 1, basic, &type);
            break;
        default:
            MPI_Type_indexed(2, lengths, places, basic, &type);
    }
    MPI_Type_commit(&type);
    return type;
}

void try_one(std::mt19937& random) {
    static const struct {
        MPI_Datatype type;
        size_t bytes;
    } basics[] = {{MPI_INTEGER, 4}, {MPI_DOUBLE_PRECISION, 8}, {MPI_CHARACTER, 1}, {MPI_COMPLEX, 8}};
    const auto& basic = basics[random() % 4];
    static const size_t more[] = {1, 1, 1, 2, 3};  // basic types per element; several in derived types and long characters
    Array from(random, basic.bytes * more[random() % 5]), into(random, basic.bytes * more[random() % 5]);
    MPI_Datatype type = draw_type(random, basic.type);
    MPI_Aint lower = 0, extent = 0, first = 0, span = 0;
    MPI_Type_get_extent(type, &lower, &extent);
    MPI_Type_get_true_extent(type, &first, &span);
    const auto room = static_cast<MPI_Aint>(std::min(from.bytes(), into.bytes()));
    const int most = room < first + span ? 0 : 1 + static_cast<int>((room - first - span) / extent);
    const int count = most ? 1 + static_cast<int>(random() % static_cast<unsigned>(most)) : 0, rank = 0, tag = 3;
    const int number = MPI_Type_toint(type), self = MPI_Comm_toint(MPI_COMM_SELF), sum = MPI_Op_toint(MPI_BXOR);
    int error = -1, size = 0, place = 0, requests[2];
    MPI_Pack_size(count, type, MPI_COMM_SELF, &size);

    Bytes packed(static_cast<size_t>(size) + 1), result(packed), copy = from.together();
    MPI_Pack(copy.data(), count, type, packed.data(), size, &place, MPI_COMM_SELF);
    packed.resize(static_cast<size_t>(place));
    result.resize(packed.size());

    // Send from a section.
    mpi_isend_f08ts(&from.section, &count, &number, &rank, &tag, &self, &requests[0], &error);
    require(error == MPI_SUCCESS, "isend");
    MPI_Recv(result.data(), place, MPI_PACKED, 0, tag, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Request request = MPI_Request_fromint(requests[0]);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    require(result == packed, "what was sent");

    Bytes again(packed.size());
    Descriptor plain{again.data(), 1, 1, 1, {}, {{0, static_cast<ptrdiff_t>(again.size()), 1}}};
    int position = 0;
    mpi_pack_f08ts(&from.section, &count, &number, &plain, &place, &position, &self, &error);
    require(error == MPI_SUCCESS && position == place && again == packed, "pack");

    // Receive into a section.
    Bytes wanted = into.together();
    int from_start = 0;
    if (place) MPI_Unpack(packed.data(), place, &from_start, wanted.data(), count, type, MPI_COMM_SELF);
    wanted = into.with(wanted);
    mpi_irecv_f08ts(&into.section, &count, &number, &rank, &tag, &self, &requests[0], &error);
    require(error == MPI_SUCCESS, "irecv");
    MPI_Send(packed.data(), place, MPI_PACKED, 0, tag, MPI_COMM_SELF);
    request = MPI_Request_fromint(requests[0]);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    require(into.memory == wanted, "what was received");

    // Reduce bytes from one section into another.
    const int bytes = static_cast<int>(random() % static_cast<unsigned>(room + 1)), byte = MPI_Type_toint(MPI_BYTE);
    wanted = into.together();
    std::memcpy(wanted.data(), copy.data(), static_cast<size_t>(bytes));
    wanted = into.with(wanted);
    mpi_iallreduce_f08ts(&from.section, &into.section, &bytes, &byte, &sum, &self, &requests[1], &error);
    require(error == MPI_SUCCESS, "iallreduce");
    request = MPI_Request_fromint(requests[1]);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    require(into.memory == wanted, "what was reduced");
    MPI_Type_free(&type);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (unsigned i = 0; i < 5000; ++i) {
        seed = 5000 * static_cast<unsigned>(rank) + i;
        std::mt19937 random(seed);
        try_one(random);
    }
    MPI_Finalize();
    return 0;
}
