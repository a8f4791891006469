// Random programs on several files at once against a model: views of tiles, of regions and of all processes together; every function that moves
// data, blocking, non-blocking and split; seeks, sizes, atomic mode and reopening between them. The model is an array of bytes for each file,
// and the pointers of all processes. TEST_SEEDS: how many programs to run.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "files.h"

namespace {

enum { kMostBytes = 12000, kSteps = 30 };

int rank, size;

/// A list of blocks and an extent: a filetype, or the type of a buffer.
struct Layout {
    std::vector<int> lengths;
    std::vector<MPI_Aint> offsets;
    MPI_Aint extent = 0;
    int bytes = 0;

    void add(MPI_Aint at, int length) {
        lengths.push_back(length);
        offsets.push_back(at);
        bytes += length;
    }
    /// Returns the offset of byte `position` of the data of consecutive elements.
    MPI_Aint offset(MPI_Aint position) const {
        const MPI_Aint at = position / bytes * extent;
        auto rest = static_cast<int>(position % bytes);
        for (size_t i = 0; i < lengths.size(); ++i) {
            if (rest < lengths[i]) return at + offsets[i] + rest;
            rest -= lengths[i];
        }
        return at;
    }
    /// Creates a type of `base`, whose elements have `unit` bytes.
    MPI_Datatype type(MPI_Datatype base, int unit) const {
        std::vector<int> counts;
        for (const int length : lengths) counts.push_back(length / unit);
        MPI_Datatype plain, made;
        OK(MPI_Type_create_hindexed(static_cast<int>(counts.size()), counts.data(), offsets.data(), base, &plain));
        OK(MPI_Type_create_resized(plain, 0, extent, &made));
        OK(MPI_Type_free(&plain));
        OK(MPI_Type_commit(&made));
        return made;
    }
};

Layout random_layout(uint64_t& state, int unit, bool gap_at_start) {
    Layout made;
    MPI_Aint at = gap_at_start ? random_below(&state, 5) * unit : 0;
    for (int left = 1 + random_below(&state, 6); left > 0; --left) {
        const int length = (random_below(&state, 4) + (left == 1)) * unit;
        made.add(at, length);
        at += length + random_below(&state, 3) * unit;
    }
    made.extent = at + random_below(&state, 4) * unit;
    return made;
}

/// What one process sees of a file.
struct View {
    Layout layout;
    MPI_Offset displacement = 0;
    MPI_Offset end = kMostBytes;  ///< no access goes beyond
    MPI_Offset offset(MPI_Aint position) const { return displacement + layout.offset(position); }
};

/// A file and its model. All processes keep the views and pointers of all.
struct Model {
    MPI_File file = MPI_FILE_NULL;
    char name[256] = "";
    std::vector<unsigned char> bytes;
    int unit = 1;             ///< bytes of the etype
    bool external = false;    ///< whether the view's representation is external32
    bool common = true;       ///< whether all processes have the same view, as shared pointers require
    bool is_coherent = true;  ///< whether other processes' writes are visible without MPI_File_sync
    std::vector<View> views;
    std::vector<MPI_Aint> positions;  ///< individual pointers, in bytes of the stream
    MPI_Aint shared = 0;
    std::vector<bool> has_data;  ///< whether a process's view has bytes of the file

    void write(MPI_Offset at, unsigned char value) {
        if (bytes.size() <= static_cast<size_t>(at)) bytes.resize(static_cast<size_t>(at) + 1);
        bytes[static_cast<size_t>(at)] = value;
    }
    MPI_Datatype base() const { return external ? MPI_INT : MPI_BYTE; }
    int base_bytes() const { return external ? 4 : 1; }
    /// Returns the byte of the file's stream that has byte `i` of the data in memory.
    MPI_Aint in_stream(MPI_Aint i) const { return external ? (i & ~MPI_Aint{3}) + 3 - (i & 3) : i; }
};

void set_view(Model& model) {
    const View& mine = model.views[static_cast<size_t>(rank)];
    MPI_Datatype etype, filetype = mine.layout.type(model.base(), model.base_bytes());
    OK(MPI_Type_contiguous(model.unit / model.base_bytes(), model.base(), &etype));
    OK(MPI_Type_commit(&etype));
    OK(MPI_File_set_view(model.file, mine.displacement, etype, filetype, model.external ? "external32" : "native",
                         MPI_INFO_NULL));
    OK(MPI_Type_free(&etype));
    OK(MPI_Type_free(&filetype));
    model.positions.assign(static_cast<size_t>(size), 0);
    model.shared = 0;
}

/// Gives each unit of a tile to a process or to none.
void draw_tile(uint64_t& common, Model& model, MPI_Offset displacement) {
    const int units = 1 + random_below(&common, 3 * size + 2);
    for (View& view : model.views) view = {{}, displacement};
    for (int at = 0; at < units; ++at) {
        const int owner = random_below(&common, size + 1);
        if (owner < size) model.views[static_cast<size_t>(owner)].layout.add(MPI_Aint{at} * model.unit, model.unit);
    }
    for (size_t i = 0; i < model.views.size(); ++i) {
        Layout& layout = model.views[i].layout;
        model.has_data[i] = layout.bytes > 0;
        if (layout.bytes == 0) layout.add(0, model.unit);
        layout.extent = MPI_Aint{units} * model.unit;
    }
}

/// A view of the part of the file that only one process uses.
View draw_region(uint64_t& common, int unit, int owner) {
    constexpr MPI_Offset kGap = 50;
    const MPI_Offset length = kMostBytes / size;
    View view{random_layout(common, unit, true), owner * length + random_below(&common, kGap)};
    view.end = (owner + 1) * length;
    return view;
}

void draw_view(uint64_t& common, Model& model) {
    const int kind = random_below(&common, 3);
    model.external = random_below(&common, 4) == 0;
    model.unit = model.external ? 4 * (1 + random_below(&common, 2)) : 1 + random_below(&common, 4);
    model.common = kind == 0;
    model.has_data.assign(static_cast<size_t>(size), true);
    model.views.assign(static_cast<size_t>(size), {});
    const MPI_Offset displacement = random_below(&common, 3) == 0 ? 0 : random_below(&common, 900);
    if (kind == 1) {
        draw_tile(common, model, displacement);
    } else {
        View view{random_layout(common, model.unit, true), displacement};
        for (int i = 0; i < size; ++i) {
            if (kind == 2) view = draw_region(common, model.unit, i);
            model.views[static_cast<size_t>(i)] = view;
        }
    }
    set_view(model);
}

enum class Pointer { individual, explicit_offset, shared, ordered };
enum class Form { blocking, non_blocking, split };

/// One access by all processes to one file. The members with one value per process are drawn alike everywhere.
struct Access {
    Model* model = nullptr;
    bool writes = false, together = false, large = false, at_bottom = false;
    Pointer pointer = Pointer::individual;
    Form form = Form::blocking;
    int number = 0;
    Layout memory;                    ///< of this process's buffer
    std::vector<int> counts;          ///< elements of the buffers' types
    std::vector<int> element_bytes;   ///< of the buffers' types
    std::vector<MPI_Aint> positions;  ///< where in their streams the processes access

    std::vector<unsigned char> buffer, expected;
    MPI_Aint moved = 0;  ///< expected bytes of the status here
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;

    MPI_Aint bytes_of(int process) const {
        return MPI_Aint{counts[static_cast<size_t>(process)]} * element_bytes[static_cast<size_t>(process)];
    }
};

unsigned char value_of(int number, int writer, MPI_Aint position) {
    return static_cast<unsigned char>(number * 37 + writer * 101 + position * 7 + 1);
}

/// Draws the kind of an access.
void draw_kind(uint64_t& common, Access& access) {
    access.writes = random_below(&common, 2);
    access.pointer = static_cast<Pointer>(random_below(&common, access.model->common ? 4 : 2));
    access.together = access.pointer == Pointer::ordered || (access.pointer != Pointer::shared && random_below(&common, 2));
    access.form = static_cast<Form>(random_below(&common, 3));
    if (access.form == Form::split && !access.together) access.form = Form::blocking;
    if (access.form == Form::non_blocking && access.pointer == Pointer::ordered) access.form = Form::split;
    access.large = random_below(&common, 2);
    access.at_bottom = random_below(&common, 4) == 0;
}

/// Returns the most bytes that an access of a process may have from a position on.
MPI_Aint room_of(const Access& access, int process, MPI_Aint position) {
    const Model& model = *access.model;
    const View& view = model.views[static_cast<size_t>(process)];
    const MPI_Offset left = view.end - view.offset(position) - view.layout.extent;
    if (!model.has_data[static_cast<size_t>(process)] || left <= 0) return 0;
    return left / std::max<MPI_Aint>(view.layout.extent, 1) * view.layout.bytes;
}

/// Draws the processes' buffers and positions. Writes of a common view must not meet, so each process has a slot of the stream.
void draw_parts(uint64_t& common, Access& access) {
    Model& model = *access.model;
    const bool own_pointer = access.pointer == Pointer::individual || access.pointer == Pointer::explicit_offset;
    const int slot = model.unit * (1 + random_below(&common, 60));
    const int first = model.unit * random_below(&common, 40);
    access.positions.assign(static_cast<size_t>(size), 0);
    for (int i = 0; i < size; ++i) {
        const Layout memory = random_layout(common, model.unit, false);
        MPI_Aint position = first + (model.common ? MPI_Aint{i} * slot : random_below(&common, 60) * model.unit);
        if (access.pointer == Pointer::individual && !model.common && random_below(&common, 2))
            position = model.positions[static_cast<size_t>(i)];
        MPI_Aint most =
            own_pointer ? room_of(access, i, position) : std::min<MPI_Aint>(room_of(access, i, model.shared) / size, slot);
        if (own_pointer && model.common) most = std::min<MPI_Aint>(most, slot);
        const auto limit = static_cast<int>(most / memory.bytes);
        access.counts.push_back(random_below(&common, 5) == 0 ? 0 : random_below(&common, std::min(limit, 60) + 1));
        access.element_bytes.push_back(memory.bytes);
        if (i == rank) access.memory = memory;
        access.positions[static_cast<size_t>(i)] = position;
    }
    MPI_Aint next = model.shared;
    for (int i = 0; i < size && !own_pointer; ++i) {
        access.positions[static_cast<size_t>(i)] = next;
        next += access.bytes_of(i);
    }
    if (!own_pointer) model.shared = next;
}

/// Writes all processes' data to the model, or finds what this process must read.
void apply(Access& access) {
    Model& model = *access.model;
    for (int i = 0; i < size && access.writes; ++i) {
        const View& view = model.views[static_cast<size_t>(i)];
        for (MPI_Aint at = 0; at < access.bytes_of(i); ++at)
            model.write(view.offset(access.positions[static_cast<size_t>(i)] + model.in_stream(at)),
                        value_of(access.number, i, at));
    }
    const View& mine = model.views[static_cast<size_t>(rank)];
    const MPI_Aint count = access.counts[static_cast<size_t>(rank)], length = access.bytes_of(rank);
    const MPI_Aint position = access.positions[static_cast<size_t>(rank)];
    access.buffer.assign(static_cast<size_t>(count * access.memory.extent + 16), 0xee);
    access.expected = access.buffer;
    const MPI_Aint step = model.base_bytes();
    const auto end = static_cast<MPI_Offset>(model.bytes.size());
    for (access.moved = 0; access.moved < length; access.moved += step) {
        // The last byte of a number is the last one in the stream, too.
        if (!access.writes && mine.offset(position + access.moved + step - 1) >= end) break;
        for (MPI_Aint i = access.moved; i < access.moved + step; ++i) {
            unsigned char& place = access.expected[static_cast<size_t>(access.memory.offset(i))];
            place = access.writes ? value_of(access.number, rank, i)
                                  : model.bytes[static_cast<size_t>(mine.offset(position + model.in_stream(i)))];
        }
    }
    if (access.writes) access.buffer = access.expected;
}

/// Moves the model's individual pointers. A blocking read that the end of the file cuts moves by what it has read.
void move_pointers(Access& access) {
    Model& model = *access.model;
    if (access.pointer != Pointer::individual) return;
    for (int i = 0; i < size; ++i) {
        const MPI_Aint length = access.bytes_of(i), start = access.positions[static_cast<size_t>(i)];
        MPI_Aint moved = length;
        const View& view = model.views[static_cast<size_t>(i)];
        const bool by_data = !access.writes && access.form == Form::blocking;
        for (moved = by_data ? 0 : length; moved < length; ++moved)
            if (view.offset(start + moved) >= static_cast<MPI_Offset>(model.bytes.size())) break;
        model.positions[static_cast<size_t>(i)] = start + (moved + model.unit - 1) / model.unit * model.unit;
    }
}

#define CALL(function, ...) OK(access.large ? function##_c(__VA_ARGS__) : function(__VA_ARGS__))
#define FORMS(direction, buffer)                                                              \
    do {                                                                                      \
        const Form form = access.form;                                                        \
        const bool all = access.together;                                                     \
        if (access.pointer == Pointer::individual) {                                          \
            if (form == Form::split)                                                          \
                CALL(MPI_File_##direction##_all_begin, file, buffer, count, type);            \
            else if (form == Form::blocking && all)                                           \
                CALL(MPI_File_##direction##_all, file, buffer, count, type, status);          \
            else if (form == Form::blocking)                                                  \
                CALL(MPI_File_##direction, file, buffer, count, type, status);                \
            else if (all)                                                                     \
                CALL(MPI_File_i##direction##_all, file, buffer, count, type, request);        \
            else                                                                              \
                CALL(MPI_File_i##direction, file, buffer, count, type, request);              \
        } else if (access.pointer == Pointer::explicit_offset) {                              \
            if (form == Form::split)                                                          \
                CALL(MPI_File_##direction##_at_all_begin, file, at, buffer, count, type);     \
            else if (form == Form::blocking && all)                                           \
                CALL(MPI_File_##direction##_at_all, file, at, buffer, count, type, status);   \
            else if (form == Form::blocking)                                                  \
                CALL(MPI_File_##direction##_at, file, at, buffer, count, type, status);       \
            else if (all)                                                                     \
                CALL(MPI_File_i##direction##_at_all, file, at, buffer, count, type, request); \
            else                                                                              \
                CALL(MPI_File_i##direction##_at, file, at, buffer, count, type, request);     \
        } else if (access.pointer == Pointer::ordered) {                                      \
            if (form == Form::split)                                                          \
                CALL(MPI_File_##direction##_ordered_begin, file, buffer, count, type);        \
            else                                                                              \
                CALL(MPI_File_##direction##_ordered, file, buffer, count, type, status);      \
        } else if (form == Form::blocking) {                                                  \
            CALL(MPI_File_##direction##_shared, file, buffer, count, type, status);           \
        } else {                                                                              \
            CALL(MPI_File_i##direction##_shared, file, buffer, count, type, request);         \
        }                                                                                     \
    } while (0)
#define END(direction)                                                                                        \
    OK(access.pointer == Pointer::individual        ? MPI_File_##direction##_all_end(file, buffer, status)    \
       : access.pointer == Pointer::explicit_offset ? MPI_File_##direction##_at_all_end(file, buffer, status) \
                                                    : MPI_File_##direction##_ordered_end(file, buffer, status))

/// Returns the buffer's address and count for the calls; with absolute addresses in the type, MPI_BOTTOM and 1.
std::pair<void*, int> buffer_of(Access& access) {
    const int count = access.counts[static_cast<size_t>(rank)];
    if (access.type == MPI_DATATYPE_NULL) access.type = access.memory.type(access.model->base(), access.model->base_bytes());
    if (!access.at_bottom) return {access.buffer.data(), count};
    return {MPI_BOTTOM, 1};
}

/// Puts the buffer's address into the type.
void use_absolute_address(Access& access) {
    MPI_Datatype relative = access.memory.type(access.model->base(), access.model->base_bytes());
    MPI_Aint address;
    OK(MPI_Get_address(access.buffer.data(), &address));
    OK(MPI_Type_create_hindexed(1, &access.counts[static_cast<size_t>(rank)], &address, relative, &access.type));
    OK(MPI_Type_commit(&access.type));
    OK(MPI_Type_free(&relative));
}

void start(Access& access) {
    Model& model = *access.model;
    MPI_File file = model.file;
    const MPI_Offset at = access.positions[static_cast<size_t>(rank)] / model.unit;
    if (access.at_bottom) use_absolute_address(access);
    const auto [buffer, count] = buffer_of(access);
    MPI_Datatype type = access.type;
    MPI_Status* const status = &access.status;
    MPI_Request* const request = &access.request;
    if (access.pointer == Pointer::individual) OK(MPI_File_seek(file, at, MPI_SEEK_SET));
    // The processes use the shared pointer in turn, so that the model knows its value.
    for (int turn = 0; turn < size && access.pointer == Pointer::shared; ++turn) {
        if (turn == rank && access.writes) FORMS(write, buffer);
        if (turn == rank && !access.writes) FORMS(read, buffer);
        if (turn == rank && access.form == Form::non_blocking) OK(MPI_Wait(request, status));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    if (access.pointer == Pointer::shared) return;
    if (access.writes)
        FORMS(write, buffer);
    else
        FORMS(read, buffer);
}

void complete(Access& access) {
    MPI_File file = access.model->file;
    void* const buffer = access.at_bottom ? MPI_BOTTOM : access.buffer.data();
    MPI_Status* const status = &access.status;
    if (access.form == Form::non_blocking && access.pointer != Pointer::shared) OK(MPI_Wait(&access.request, status));
    if (access.form == Form::split && access.writes) END(write);
    if (access.form == Form::split && !access.writes) END(read);
    MPI_Count moved = -1;
    OK(MPI_Get_count_c(status, MPI_BYTE, &moved));
    const int kind = static_cast<int>(access.pointer) * 8 + static_cast<int>(access.form) * 2 + access.together;
    CHECK(moved == access.moved, "access %d of kind %d (%s): %lld bytes, wanted %lld", access.number, kind,
          access.writes ? "write" : "read", static_cast<long long>(moved), static_cast<long long>(access.moved));
    for (size_t i = 0; i < access.buffer.size(); ++i)
        CHECK(access.buffer[i] == access.expected[i], "access %d of kind %d (%s): byte %zu is %d, wanted %d", access.number,
              kind, access.writes ? "write" : "read", i, access.buffer[i], access.expected[i]);
    OK(MPI_Type_free(&access.type));
}

/// Makes all writes visible to all processes.
void publish(Model& model, uint64_t& common) {
    if (!model.is_coherent || random_below(&common, 4) == 0)
        settle(model.file);
    else
        OK(MPI_Barrier(MPI_COMM_WORLD));
}

void check_pointers(Model& model) {
    MPI_Offset found = -1, bytes = -1;
    OK(MPI_File_get_position(model.file, &found));
    EXPECT_INT(found, model.positions[static_cast<size_t>(rank)] / model.unit);
    OK(MPI_File_get_byte_offset(model.file, found, &bytes));
    EXPECT_INT(bytes, model.views[static_cast<size_t>(rank)].offset(model.positions[static_cast<size_t>(rank)]));
    OK(MPI_File_get_position_shared(model.file, &found));
    EXPECT_INT(found, model.shared / model.unit);
    OK(MPI_File_get_size(model.file, &bytes));
    EXPECT_INT(bytes, model.bytes.size());
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/// Accesses some of the files, so that one is in progress while the others begin, and completes them in some order.
void access_files(std::vector<Model>& models, uint64_t& common, int& number) {
    std::vector<std::unique_ptr<Access>> accesses;
    for (Model& model : models) {
        if (random_below(&common, 2)) continue;
        accesses.push_back(std::make_unique<Access>());
        Access& access = *accesses.back();
        access.model = &model;
        access.number = number++;
        draw_kind(common, access);
        draw_parts(common, access);
        apply(access);
        start(access);
    }
    if (random_below(&common, 2)) std::reverse(accesses.begin(), accesses.end());
    for (const auto& access : accesses) complete(*access);
    for (const auto& access : accesses) {
        move_pointers(*access);
        publish(*access->model, common);
        check_pointers(*access->model);
    }
}

void seek(Model& model, uint64_t& common) {
    const MPI_Offset to = random_below(&common, 50);
    OK(MPI_File_seek(model.file, to, MPI_SEEK_SET));
    OK(MPI_File_seek(model.file, 3, MPI_SEEK_CUR));
    for (MPI_Aint& position : model.positions) position = (to + 3) * model.unit;
    if (model.common) {
        OK(MPI_File_seek_shared(model.file, to, MPI_SEEK_SET));
        OK(MPI_File_seek_shared(model.file, to, MPI_SEEK_CUR));
        model.shared = 2 * to * model.unit;
    }
    // The end of the file: as many etypes as begin before it.
    for (size_t i = 0; i < model.positions.size(); ++i) {
        MPI_Aint& position = model.positions[i];
        for (position = 0; model.views[i].offset(position) < static_cast<MPI_Offset>(model.bytes.size());)
            position += model.unit;
    }
    OK(MPI_File_seek(model.file, 0, MPI_SEEK_END));
}

void resize(Model& model, uint64_t& common) {
    const MPI_Offset bytes = random_below(&common, kMostBytes);
    if (random_below(&common, 2)) {
        OK(MPI_File_set_size(model.file, bytes));
        model.bytes.resize(static_cast<size_t>(bytes));
    } else {
        OK(MPI_File_preallocate(model.file, bytes));
        model.bytes.resize(std::max(model.bytes.size(), static_cast<size_t>(bytes)));
    }
    publish(model, common);
}

void hint(MPI_Info info, const char* key, int value) {
    char text[32];
    snprintf(text, sizeof text, "%d", value);
    OK(MPI_Info_set(info, key, text));
}

void open_file(Model& model, uint64_t& common, int further) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    hint(info, "cb_buffer_size", 8192 << random_below(&common, 2));
    if (random_below(&common, 2)) hint(info, "cb_nodes", 1 + random_below(&common, size));
    const char* const words[] = {"automatic", "enable", "disable"};
    OK(MPI_Info_set(info, "romio_cb_write", words[random_below(&common, 3)]));
    OK(MPI_Info_set(info, "romio_cb_read", words[random_below(&common, 3)]));
    const char* const driver = getenv("TEST_DRIVER");
    if (driver) OK(MPI_Info_set(info, "starling_file_driver", driver));
    OK(MPI_File_open(MPI_COMM_WORLD, model.name, MPI_MODE_RDWR | further, info, &model.file));
    OK(MPI_Info_free(&info));
    char value[100] = "posix";
    int found = 0, length = sizeof value;
    OK(MPI_File_get_info(model.file, &info));
    OK(MPI_Info_get_string(info, "starling_file_driver", &length, value, &found));
    OK(MPI_Info_free(&info));
    model.is_coherent = !found || strcmp(value, "posix") == 0;
    model.unit = 1;
    model.external = false;
    model.common = true;
    View whole;
    whole.layout.add(0, 1);
    whole.layout.extent = 1;
    model.has_data.assign(static_cast<size_t>(size), true);
    model.views.assign(static_cast<size_t>(size), whole);
    const MPI_Aint start = further & MPI_MODE_APPEND ? static_cast<MPI_Aint>(model.bytes.size()) : 0;
    model.positions.assign(static_cast<size_t>(size), start);
    model.shared = start;
}

void set_atomicity(Model& model, uint64_t& common) {
    const int flag = random_below(&common, 2);
    int found = -1;
    OK(MPI_File_set_atomicity(model.file, flag));
    OK(MPI_File_get_atomicity(model.file, &found));
    EXPECT_INT(found, flag);
}

/// Reads the whole file as bytes and compares; the end of the file cuts the read.
void compare(Model& model) {
    settle(model.file);
    OK(MPI_File_set_view(model.file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    std::vector<unsigned char> found(model.bytes.size() + 100, 0x55);
    MPI_Status status;
    OK(MPI_File_read_at(model.file, 0, found.data(), static_cast<int>(found.size()), MPI_BYTE, &status));
    expect_count(&status, MPI_BYTE, static_cast<int>(model.bytes.size()));
    for (size_t i = 0; i < model.bytes.size(); ++i)
        CHECK(found[i] == model.bytes[i], "byte %zu of the file is %d, wanted %d", i, found[i], model.bytes[i]);
    for (size_t i = model.bytes.size(); i < found.size(); ++i) EXPECT_INT(found[i], 0x55);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/// Closes the file and opens it again: as an empty one, or to append to it.
void reopen(Model& model, uint64_t& common) {
    settle(model.file);
    OK(MPI_File_close(&model.file));
    if (random_below(&common, 3) > 0) return open_file(model, common, MPI_MODE_APPEND), check_pointers(model);
    if (rank == 0) OK(MPI_File_delete(model.name, MPI_INFO_NULL));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    model.bytes.clear();
    open_file(model, common, MPI_MODE_CREATE | MPI_MODE_EXCL);
}

void run_program(uint64_t seed) {
    uint64_t common = seed;
    test_seed = seed;
    std::vector<Model> models(static_cast<size_t>(1 + random_below(&common, 3)));
    for (Model& model : models) {
        new_file_name(model.name);
        open_file(model, common, MPI_MODE_CREATE | MPI_MODE_EXCL);
    }
    int number = 0;
    for (int step = 0; step < kSteps; ++step) {
        Model& model = models[static_cast<size_t>(random_below(&common, static_cast<int>(models.size())))];
        const int what = random_below(&common, 14);
        if (what == 0) seek(model, common), check_pointers(model);
        if (what == 1) resize(model, common);
        if (what == 2) set_atomicity(model, common);
        if (what == 3) reopen(model, common);
        if (what >= 4 && what <= 6) draw_view(common, model);
        if (what >= 7) access_files(models, common, number);
    }
    for (Model& model : models) {
        compare(model);
        OK(MPI_File_close(&model.file));
        if (rank == 0) OK(MPI_File_delete(model.name, MPI_INFO_NULL));
    }
}

}  // namespace

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    const uint64_t first = start_seed(1);
    const char* const seeds = getenv("TEST_SEEDS");
    for (int i = 0; i < (seeds ? atoi(seeds) : 5); ++i) run_program(first + static_cast<uint64_t>(i));
    OK(MPI_Finalize());
    return 0;
}
