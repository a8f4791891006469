// Collective reads and writes of files against a model: pieces of all sizes that interleave, empty and uneven parts, holes, overlapping
// views, files beyond 4 GB, small buffers, any number of aggregators, ends of files.
#include "files.h"

enum { most_bytes = 3000000 };

static int rank, size;
static uint64_t state;

/// Returns a number from `low` to `high`, the same on all processes.
static int draw(int low, int high) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return low + (int)((state >> 11) % (uint64_t)(high - low + 1));
}

static void hint(MPI_Info info, const char* key, int value) {
    char text[32];
    snprintf(text, sizeof text, "%d", value);
    OK(MPI_Info_set(info, key, text));
}

/// A file whose units belong to ranks, or to none (-1); every unit has the same length.
struct layout {
    MPI_Offset base;
    int unit, units;
    int* owner;
};

static unsigned char data_of(int owner, int64_t position, int round) {
    return (unsigned char)(owner * 31 + position * 7 + round);
}
static unsigned char old_of(int64_t offset) { return (unsigned char)(0xe0 + offset % 13); }

static struct layout draw_layout(void) {
    struct layout l;
    l.base = draw(0, 2) ? draw(0, 100000) : 5000000000ll + draw(0, 9999);
    l.unit = draw(0, 3) == 0 ? draw(1, 16) : draw(1, 5000);
    l.units = draw(1, most_bytes / l.unit < 600 ? most_bytes / l.unit : 600);
    if (draw(0, 9) == 0) {
        l.unit = draw(100000, 1000000);
        l.units = draw(1, most_bytes / l.unit);
    }
    l.owner = malloc(sizeof(int) * (size_t)l.units);
    const int style = draw(0, 3), busy = draw(0, size - 1);
    for (int i = 0; i < l.units; ++i) {
        const int any = draw(-1, size - 1);
        l.owner[i] = style == 0   ? i % size
                     : style == 1 ? any
                     : style == 2 ? (draw(0, 3) ? busy : any)
                                  : (int)((int64_t)i * size / l.units);
    }
    return l;
}

/// Opens the file with hints drawn at random. Two phases are used even where they are slow.
static MPI_File open_with_hints(const char* name) {
    MPI_Info info;
    MPI_File file;
    OK(MPI_Info_create(&info));
    const char* const modes[] = {"enable", "enable", "automatic", "disable"};
    OK(MPI_Info_set(info, "romio_cb_write", modes[draw(0, 3)]));
    OK(MPI_Info_set(info, "romio_cb_read", modes[draw(0, 3)]));
    hint(info, "cb_buffer_size", 8192 << draw(0, 8));
    if (draw(0, 1)) hint(info, "cb_nodes", draw(1, size));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file));
    OK(MPI_Info_free(&info));
    return file;
}

/// This rank's part of a layout: its view, and a buffer with or without gaps.
struct part {
    MPI_Datatype unit, view, memory;
    int64_t bytes;
    int step;
    unsigned char* buffer;
};

static struct part part_of(const struct layout* l) {
    struct part p;
    int* at = malloc(sizeof(int) * (size_t)(l->units + 1));
    int mine = 0;
    for (int i = 0; i < l->units; ++i)
        if (l->owner[i] == rank) at[mine++] = i;
    p.bytes = (int64_t)mine * l->unit;
    p.step = draw(1, 2);
    OK(MPI_Type_contiguous(l->unit, MPI_BYTE, &p.unit));
    OK(MPI_Type_create_indexed_block(mine, 1, at, p.unit, &p.view));
    OK(MPI_Type_vector((int)p.bytes, 1, p.step, MPI_BYTE, &p.memory));
    OK(MPI_Type_commit(&p.view));
    OK(MPI_Type_commit(&p.memory));
    p.buffer = malloc((size_t)(p.bytes * p.step + 1));
    free(at);
    return p;
}

static void free_part(struct part* p) {
    OK(MPI_Type_free(&p->unit));
    OK(MPI_Type_free(&p->view));
    OK(MPI_Type_free(&p->memory));
    free(p->buffer);
}

/// Moves all of the part in one of the ways to do so.
static void move(MPI_File file, struct part* p, int writes, MPI_Status* status) {
    MPI_Request request;
    const int count = p->bytes > 0;
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    switch (draw(0, 3)) {
        case 0:
            if (writes)
                OK(MPI_File_write_at_all(file, 0, p->buffer, count, p->memory, status));
            else
                OK(MPI_File_read_at_all(file, 0, p->buffer, count, p->memory, status));
            return;
        case 1:
            if (writes)
                OK(MPI_File_iwrite_all(file, p->buffer, count, p->memory, &request));
            else
                OK(MPI_File_iread_all(file, p->buffer, count, p->memory, &request));
            OK(MPI_Wait(&request, status));
            return;
        case 2:
            if (writes) {
                OK(MPI_File_write_all_begin(file, p->buffer, count, p->memory));
                OK(MPI_File_write_all_end(file, p->buffer, status));
            } else {
                OK(MPI_File_read_all_begin(file, p->buffer, count, p->memory));
                OK(MPI_File_read_all_end(file, p->buffer, status));
            }
            return;
        default:
            if (writes)
                OK(MPI_File_write_all(file, p->buffer, count, p->memory, status));
            else
                OK(MPI_File_read_all(file, p->buffer, count, p->memory, status));
    }
}

static int64_t bytes_of(const MPI_Status* status) {
    MPI_Count bytes = -1;
    OK(MPI_Get_elements_c(status, MPI_BYTE, &bytes));
    return bytes;
}

/// Checks every byte of the file, also those outside of the views, and writes the expected ones to `model`.
static void check_file(const char* name, const struct layout* l, int round, unsigned char* model) {
    const int64_t all = (int64_t)l->unit * l->units;
    for (int64_t i = 0; i < all; ++i) model[i] = old_of(i);
    for (int owner = 0; owner < size; ++owner) {
        int64_t position = 0;
        for (int i = 0; i < l->units; ++i)
            for (int j = 0; l->owner[i] == owner && j < l->unit; ++j)
                model[(int64_t)i * l->unit + j] = data_of(owner, position++, round);
    }
    unsigned char* found = malloc((size_t)all + 1);
    MPI_File file;
    MPI_Status status;
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_read_at(file, l->base, found, (int)all + 1, MPI_BYTE, &status));
    OK(MPI_File_close(&file));
    EXPECT_INT(bytes_of(&status), all);
    for (int64_t i = 0; i < all; ++i)
        CHECK(found[i] == model[i], "round %d: byte %lld of %lld is %02x, not %02x (units of %d bytes)", round, (long long)i,
              (long long)all, found[i], model[i], l->unit);
    free(found);
}

/// Reads the file, which has been cut, and checks the data, their count, and the rest of the buffer.
static void check_read(MPI_File file, const struct layout* l, struct part* p, const unsigned char* model, int64_t cut,
                       int round) {
    MPI_Status status;
    memset(p->buffer, 0x55, (size_t)(p->bytes * p->step + 1));
    move(file, p, 0, &status);
    int64_t position = 0, inside = 0;
    for (int i = 0; i < l->units; ++i)
        for (int j = 0; l->owner[i] == rank && j < l->unit; ++j, ++position) {
            const int64_t offset = (int64_t)i * l->unit + j;
            const unsigned char wanted = offset < cut ? model[offset] : 0x55, is = p->buffer[position * p->step];
            inside += offset < cut;
            CHECK(is == wanted, "round %d: byte %lld of the part is %02x, not %02x", round, (long long)position, is, wanted);
        }
    EXPECT_INT(bytes_of(&status), inside);
}

static void one_round(const char* name, int round) {
    MPI_Status status;
    state = test_seed * 1000003 + (uint64_t)round * 7919 + 88172645463325252u;
    draw(0, 1);
    MPI_File file = open_with_hints(name);
    struct layout l = draw_layout();
    const int64_t all = (int64_t)l.unit * l.units;
    unsigned char* model = malloc((size_t)all);
    for (int64_t i = 0; i < all; ++i) model[i] = old_of(i);
    OK(MPI_File_set_size(file, 0));
    if (rank == 0) OK(MPI_File_write_at(file, l.base, model, (int)all, MPI_BYTE, &status));
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    struct part p = part_of(&l);
    OK(MPI_File_set_view(file, l.base, MPI_BYTE, p.bytes ? p.view : MPI_BYTE, "native", MPI_INFO_NULL));
    for (int64_t i = 0; i < p.bytes; ++i) p.buffer[i * p.step] = data_of(rank, i, round);
    move(file, &p, 1, &status);
    EXPECT_INT(bytes_of(&status), p.bytes);
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    check_file(name, &l, round, model);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    const int64_t cut = draw(0, 2) ? all : draw(0, (int)all);
    OK(MPI_File_set_size(file, l.base + cut));
    check_read(file, &l, &p, model, cut, round);
    free_part(&p);
    free(l.owner);
    free(model);
    OK(MPI_File_close(&file));
}

/// Several non-blocking collective writes are in progress on one file, and complete in any order.
static void several_at_once(const char* name) {
    enum { calls = 6, blocks = 300 };
    unsigned char data[calls][blocks];
    MPI_Request requests[calls];
    MPI_Info info;
    MPI_File file;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "romio_cb_write", "enable"));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file));
    OK(MPI_Info_free(&info));
    MPI_Datatype view;
    OK(MPI_Type_create_resized(MPI_BYTE, 0, size, &view));
    OK(MPI_Type_commit(&view));
    OK(MPI_File_set_view(file, rank, MPI_BYTE, view, "native", MPI_INFO_NULL));
    for (int i = 0; i < calls; ++i) {
        memset(data[i], rank * 16 + i, blocks);
        OK(MPI_File_iwrite_all(file, data[i], blocks, MPI_BYTE, &requests[i]));
    }
    for (int i = calls - 1; i >= 0; --i) OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    for (int i = 0; i < calls; ++i) {
        unsigned char found[blocks];
        OK(MPI_File_read_at_all(file, (MPI_Offset)i * blocks, found, blocks, MPI_BYTE, MPI_STATUS_IGNORE));
        CHECK(memcmp(found, data[i], blocks) == 0, "write %d", i);
    }
    OK(MPI_Type_free(&view));
    OK(MPI_File_close(&file));
}

/// All ranks write the same bytes: each of them has one rank's value afterwards, and their neighbours keep theirs.
static void overlapping_views(const char* name) {
    enum { bytes = 50000 };
    static unsigned char mine[bytes], found[2 * bytes];
    MPI_Info info;
    MPI_File file;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "romio_cb_write", "enable"));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file));
    OK(MPI_Info_free(&info));
    memset(found, 0x77, sizeof found);
    OK(MPI_File_set_size(file, 0));
    if (rank == 0) OK(MPI_File_write_at(file, 0, found, 2 * bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Datatype view;
    OK(MPI_Type_create_resized(MPI_BYTE, 0, 2, &view));
    OK(MPI_Type_commit(&view));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, view, "native", MPI_INFO_NULL));
    memset(mine, rank, sizeof mine);
    OK(MPI_File_write_all(file, mine, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_all(file, found, 2 * bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int i = 0; i < 2 * bytes; ++i) CHECK(i % 2 ? found[i] == 0x77 : found[i] < size, "byte %d is %02x", i, found[i]);
    OK(MPI_Type_free(&view));
    OK(MPI_File_close(&file));
}

/// Writes before MPI_File_set_size do not make the file longer again, wherever they are kept until then.
static void cut_after_writes(const char* name) {
    enum { bytes = 5000 };
    char mine[bytes];
    MPI_File file;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    memset(mine, 1 + rank, sizeof mine);
    for (int round = 0; round < 3; ++round) {
        const MPI_Offset cut = (MPI_Offset)size * bytes / 2 + round;
        OK(MPI_File_write_at(file, (MPI_Offset)rank * bytes, mine, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
        OK(MPI_File_set_size(file, cut));
        settle(file);
        MPI_Offset found = -1;
        OK(MPI_File_get_size(file, &found));
        EXPECT_INT(found, cut);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_File_close(&file));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    if (getenv("TEST_SEED")) test_seed = strtoull(getenv("TEST_SEED"), NULL, 10);
    const int rounds = getenv("TEST_ROUNDS") ? atoi(getenv("TEST_ROUNDS")) : 6;
    char name[256];
    new_file_name(name);
    for (int round = 0; round < rounds; ++round) one_round(name, round);
    several_at_once(name);
    overlapping_views(name);
    cut_after_writes(name);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) OK(MPI_File_delete(name, MPI_INFO_NULL));
    OK(MPI_Finalize());
    return 0;
}
