// Tests derived types in messages of all sizes: sender and receiver use different layouts, gaps stay untouched, and counts are right.
#include <stddef.h>

#include <vector>

#include "check.h"

namespace {

int rank, size;

struct Layout {
    const char* name;
    MPI_Datatype type;
    int ints;  // number of ints per element
};

struct Mixed {
    char letter;
    double number;
    int words[3];
};

std::vector<Layout> layouts() {
    std::vector<Layout> all;
    MPI_Datatype type, inner;
    OK(MPI_Type_contiguous(6, MPI_INT, &type));
    all.push_back({"contiguous", type, 6});
    OK(MPI_Type_vector(3, 2, 5, MPI_INT, &type));
    all.push_back({"vector", type, 6});
    OK(MPI_Type_create_hvector(2, 3, 40, MPI_INT, &type));
    all.push_back({"hvector", type, 6});
    const int lengths[] = {1, 3, 0, 2}, displacements[] = {9, 1, 0, 5};
    OK(MPI_Type_indexed(4, lengths, displacements, MPI_INT, &type));
    all.push_back({"indexed", type, 6});
    const int starts[] = {4, 0, 8};
    OK(MPI_Type_create_indexed_block(3, 2, starts, MPI_INT, &type));
    all.push_back({"indexed_block", type, 6});
    const int sizes[] = {4, 5}, subsizes[] = {2, 3}, offsets[] = {1, 2};
    OK(MPI_Type_create_subarray(2, sizes, subsizes, offsets, MPI_ORDER_C, MPI_INT, &type));
    all.push_back({"subarray", type, 6});
    OK(MPI_Type_vector(6, 1, 2, MPI_INT, &inner));
    OK(MPI_Type_create_resized(inner, 0, 13 * (MPI_Aint)sizeof(int), &type));
    OK(MPI_Type_free(&inner));
    all.push_back({"resized", type, 6});
    OK(MPI_Type_contiguous(2, MPI_INT, &inner));
    const int blocks[] = {1, 1, 2};
    const MPI_Aint where[] = {32, 0, 12};
    const MPI_Datatype types[] = {inner, inner, MPI_INT};
    OK(MPI_Type_create_struct(3, blocks, where, types, &type));
    OK(MPI_Type_free(&inner));
    all.push_back({"struct", type, 6});
    for (Layout& layout : all) OK(MPI_Type_commit(&layout.type));
    return all;
}

// The reference: copies the data to an int array by MPI_Sendrecv on MPI_COMM_SELF, because MPI_Pack has its own test.
std::vector<int> flatten(const std::vector<char>& buffer, const Layout& layout, int count) {
    std::vector<int> flat((size_t)layout.ints * count);
    OK(MPI_Sendrecv(buffer.data(), count, layout.type, 0, 0, flat.data(), (int)flat.size(), MPI_INT, 0, 0, MPI_COMM_SELF,
                    MPI_STATUS_IGNORE));
    return flat;
}

size_t span_of(const Layout& layout, int count) {
    MPI_Aint lower, extent, true_lower, true_extent;
    OK(MPI_Type_get_extent(layout.type, &lower, &extent));
    OK(MPI_Type_get_true_extent(layout.type, &true_lower, &true_extent));
    return (size_t)(extent * count + true_extent + true_lower + 64);
}

void pass(const Layout& from_layout, const Layout& to_layout, int count, int unexpected) {
    int to = (rank + 1) % size, from = (rank + size - 1) % size, received;
    std::vector<char> out(span_of(from_layout, count)), in(span_of(to_layout, count), 0x77);
    fill_bytes(out.data(), out.size(), rank);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    if (!unexpected) OK(MPI_Irecv(in.data(), count, to_layout.type, from, 1, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(out.data(), count, from_layout.type, to, 1, MPI_COMM_WORLD, &requests[1]));
    if (unexpected) {
        OK(MPI_Probe(from, 1, MPI_COMM_WORLD, &statuses[0]));
        OK(MPI_Irecv(in.data(), count, to_layout.type, from, 1, MPI_COMM_WORLD, &requests[0]));
    }
    OK(MPI_Waitall(2, requests, statuses));
    OK(MPI_Get_count(&statuses[0], to_layout.type, &received));
    EXPECT_INT(received, count);
    std::vector<char> theirs(out.size());
    fill_bytes(theirs.data(), theirs.size(), from);
    CHECK(flatten(theirs, from_layout, count) == flatten(in, to_layout, count), "%s to %s, count %d", from_layout.name,
          to_layout.name, count);
    // Overwrite the data with the filler byte: if the gaps were untouched, every byte is now the filler.
    std::vector<int> filler((size_t)to_layout.ints * count, 0x77777777);
    OK(MPI_Sendrecv(filler.data(), (int)filler.size(), MPI_INT, 0, 0, in.data(), count, to_layout.type, 0, 0, MPI_COMM_SELF,
                    MPI_STATUS_IGNORE));
    for (size_t i = 0; i < in.size(); i++)
        CHECK(in[i] == 0x77, "%s to %s, count %d: byte %zu in a gap overwritten", from_layout.name, to_layout.name, count, i);
}

void partial(const Layout& layout) {
    // A receive of ten elements gets two and a half: MPI_Get_count returns MPI_UNDEFINED, MPI_Get_elements the exact number.
    int to = (rank + 1) % size, from = (rank + size - 1) % size, count, elements;
    std::vector<int> out(15, rank);
    std::vector<char> in(span_of(layout, 10));
    MPI_Status status;
    OK(MPI_Sendrecv(out.data(), 15, MPI_INT, to, 2, in.data(), 10, layout.type, from, 2, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, layout.type, &count));
    EXPECT_INT(count, MPI_UNDEFINED);
    OK(MPI_Get_elements(&status, layout.type, &elements));
    EXPECT_INT(elements, 15);
}

void structures() {
    MPI_Datatype type, packed;
    const int blocks[] = {1, 1, 3};
    const MPI_Aint where[] = {offsetof(Mixed, letter), offsetof(Mixed, number), offsetof(Mixed, words)};
    const MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT};
    OK(MPI_Type_create_struct(3, blocks, where, types, &packed));
    OK(MPI_Type_create_resized(packed, 0, sizeof(Mixed), &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_free(&packed));
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int count : {1, 10, 300, 5000, 40000}) {
        std::vector<Mixed> out(count), in(count);
        for (int i = 0; i < count; i++) out[i] = {(char)('a' + (i + rank) % 26), rank + i * 0.5, {rank, i, rank * i}};
        OK(MPI_Sendrecv(out.data(), count, type, to, 3, in.data(), count, type, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < count; i++)
            CHECK(in[i].letter == (char)('a' + (i + from) % 26) && in[i].number == from + i * 0.5 && in[i].words[0] == from &&
                      in[i].words[1] == i && in[i].words[2] == from * i,
                  "element %d of %d", i, count);
    }
    OK(MPI_Type_free(&type));
}

// Sends and receives at absolute addresses with MPI_BOTTOM.
void bottom() {
    int a[2] = {rank, -1}, to = (rank + 1) % size, from = (rank + size - 1) % size;
    double b = rank * 1.5;
    MPI_Aint where[2];
    const int blocks[] = {1, 1};
    const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
    MPI_Datatype type;
    OK(MPI_Get_address(&a[0], &where[0]));
    OK(MPI_Get_address(&b, &where[1]));
    OK(MPI_Type_create_struct(2, blocks, where, types, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Sendrecv_replace(MPI_BOTTOM, 1, type, to, 4, from, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    EXPECT_INT(a[0], from);
    EXPECT_INT(a[1], -1);
    CHECK(b == from * 1.5);
    OK(MPI_Type_free(&type));
}

// A datatype freed while a request uses it stays alive until the request completes.
void freed_type() {
    int to = (rank + 1) % size, from = (rank + size - 1) % size, n = 100000;
    std::vector<int> out(2 * n), in(2 * n, -1);
    for (int i = 0; i < 2 * n; i++) out[i] = rank + i;
    MPI_Datatype type;
    MPI_Request requests[2];
    OK(MPI_Type_vector(n, 1, 2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Irecv(in.data(), 1, type, from, 5, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(out.data(), 1, type, to, 5, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Type_free(&type));
    CHECK(type == MPI_DATATYPE_NULL);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 2 * n - 1; i++) EXPECT_INT(in[i], i % 2 ? -1 : from + i);
}

}  // namespace

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    std::vector<Layout> all = layouts();
    uint64_t state = start_seed(7);
    for (size_t i = 0; i < all.size(); i++)
        for (int count : {0, 1, 7, 200, 3000, 30000}) {
            const Layout& other = all[random_below(&state, (int)all.size())];
            pass(all[i], other, count, random_below(&state, 2));
        }
    for (const Layout& layout : all) partial(layout);
    structures();
    bottom();
    freed_type();
    for (Layout& layout : all) OK(MPI_Type_free(&layout.type));
    OK(MPI_Finalize());
    return 0;
}
