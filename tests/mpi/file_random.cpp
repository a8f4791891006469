// Random programs against a model: the processes write and read a file through random views, from random memory, by all kinds of pointers,
// and a plain array of bytes does the same.
#include <algorithm>
#include <vector>

#include "files.h"

namespace {

int rank, size;

/// A list of blocks as a datatype of bytes, with its extent.
struct Pattern {
    std::vector<int> lengths;
    std::vector<MPI_Aint> offsets;
    MPI_Aint extent = 0;
    int bytes = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;

    Pattern(uint64_t& state, int unit, bool gap_at_start) {
        const int blocks = 1 + random_below(&state, 6);
        MPI_Aint at = gap_at_start ? random_below(&state, 5) * unit : 0;
        for (int i = 0; i < blocks; ++i) {
            const int length = random_below(&state, 4) * unit;
            lengths.push_back(length);
            offsets.push_back(at);
            at += length + random_below(&state, 3) * unit;
            bytes += length;
        }
        if (bytes == 0) {
            lengths.back() = bytes = unit;
            at += unit;
        }
        extent = at + random_below(&state, 4) * unit;
        MPI_Datatype plain;
        OK(MPI_Type_create_hindexed(blocks, lengths.data(), offsets.data(), MPI_BYTE, &plain));
        OK(MPI_Type_create_resized(plain, 0, extent, &type));
        OK(MPI_Type_commit(&type));
        OK(MPI_Type_free(&plain));
    }
    Pattern(const Pattern&) = delete;
    ~Pattern() { MPI_Type_free(&type); }

    /// Returns the offset of byte `position` of the data of consecutive elements.
    MPI_Aint offset(int position) const {
        MPI_Aint at = position / bytes * extent;
        int rest = position % bytes;
        for (size_t i = 0; i < lengths.size(); ++i) {
            if (rest < lengths[i]) return at + offsets[i] + rest;
            rest -= lengths[i];
        }
        return at;
    }
};

/// The expected contents of the file.
struct Model {
    std::vector<unsigned char> bytes;
    void write(MPI_Aint at, unsigned char value) {
        if (bytes.size() <= static_cast<size_t>(at)) bytes.resize(static_cast<size_t>(at) + 1);
        bytes[static_cast<size_t>(at)] = value;
    }
};

unsigned char value_of(int round, int writer, int position) {
    return static_cast<unsigned char>(round * 37 + writer * 101 + position * 7 + 1);
}

/// One round: all processes set views of their own of one file region each, and write through them. The file regions of the processes are
/// disjoint, so the model knows the result. Then each reads a part through the same view.
void one_round(MPI_File file, Model& model, uint64_t& common, int round) {
    constexpr int kRegion = 4096;
    const int unit = 1 + random_below(&common, 4);
    const int kind = random_below(&common, 5);
    const uint64_t base = next_random(&common);
    for (int writer = 0; writer < size; ++writer) {
        uint64_t state = base + static_cast<uint64_t>(writer) * 977;
        const Pattern view(state, unit, true), memory(state, unit, false);
        MPI_Datatype etype;
        OK(MPI_Type_contiguous(unit, MPI_BYTE, &etype));
        OK(MPI_Type_commit(&etype));
        const MPI_Aint displacement = writer * kRegion + random_below(&state, 50);
        const int skip = random_below(&state, 20) * unit;
        const int most = static_cast<int>((kRegion - 200) / view.extent) * view.bytes - skip;
        const int count = most > 0 ? random_below(&state, std::max(1, most / memory.bytes)) : 0;
        const int length = count * memory.bytes;
        for (int i = 0; i < length; ++i) model.write(displacement + view.offset(skip + i), value_of(round, writer, i));
        if (writer == rank) {
            std::vector<unsigned char> out(static_cast<size_t>(count * memory.extent + 64), 0xee), in(out);
            for (int i = 0; i < length; ++i) out[static_cast<size_t>(memory.offset(i))] = value_of(round, writer, i);
            MPI_Status status;
            MPI_Request request;
            const MPI_Offset at = skip / unit;
            OK(MPI_File_set_view(file, displacement, etype, view.type, "native", MPI_INFO_NULL));
            OK(MPI_File_seek(file, at, MPI_SEEK_SET));
            switch (kind) {
                case 0:
                    OK(MPI_File_write(file, out.data(), count, memory.type, &status));
                    break;
                case 1:
                    OK(MPI_File_write_at(file, at, out.data(), count, memory.type, &status));
                    break;
                case 2:
                    OK(MPI_File_write_all(file, out.data(), count, memory.type, &status));
                    break;
                case 3:
                    OK(MPI_File_iwrite_at(file, at, out.data(), count, memory.type, &request));
                    OK(MPI_Wait(&request, &status));
                    break;
                default:
                    OK(MPI_File_iwrite_all(file, out.data(), count, memory.type, &request));
                    OK(MPI_Wait(&request, &status));
            }
            expect_count(&status, memory.type, count);
            MPI_Offset position = -1;
            OK(MPI_File_get_position(file, &position));
            EXPECT_INT(position, at + (kind == 1 || kind == 3 ? 0 : length / unit));
            OK(MPI_File_get_byte_offset(file, at, &position));
            EXPECT_INT(position, displacement + view.offset(skip));
            if (kind % 2) {
                OK(MPI_File_read_at(file, at, in.data(), count, memory.type, &status));
            } else {
                OK(MPI_File_read_at_all(file, at, in.data(), count, memory.type, &status));
            }
            expect_count(&status, memory.type, count);
            for (size_t i = 0; i < in.size(); ++i)
                CHECK(in[i] == out[i], "round %d kind %d byte %zu is %d, wanted %d", round, kind, i, in[i], out[i]);
        }
        OK(MPI_Type_free(&etype));
    }
}

/// Reads the whole file as bytes and compares; the end of the file cuts the read.
void compare(MPI_File file, const Model& model, int round) {
    std::vector<unsigned char> found(model.bytes.size() + 100, 0x55);
    MPI_Status status;
    MPI_Offset bytes = -1;
    settle(file);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_get_size(file, &bytes));
    EXPECT_INT(bytes, model.bytes.size());
    OK(MPI_File_read_at(file, 0, found.data(), static_cast<int>(found.size()), MPI_BYTE, &status));
    expect_count(&status, MPI_BYTE, static_cast<int>(model.bytes.size()));
    for (size_t i = 0; i < model.bytes.size(); ++i)
        CHECK(found[i] == model.bytes[i], "round %d: byte %zu of the file is %d, wanted %d", round, i, found[i], model.bytes[i]);
    for (size_t i = model.bytes.size(); i < found.size(); ++i) EXPECT_INT(found[i], 0x55);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

}  // namespace

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    uint64_t common = start_seed(35);
    OK(MPI_Bcast(&common, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD));
    MPI_File file = new_file(MPI_MODE_RDWR, MPI_INFO_NULL);
    Model model;
    for (int round = 0; round < 150; ++round) {
        one_round(file, model, common, round);
        compare(file, model, round);
    }
    OK(MPI_File_close(&file));
    OK(MPI_Finalize());
    return 0;
}
