/* Collective reads of a file that all hosts have in their caches, or not: cached_reads FOLDER. The pieces of the members are in turn. The calls
 * are, in order: one after the file was opened, one after independent reads of the same bytes, one after MPI_File_sync, and one with
 * romio_cb_read=enable. The test reads the reports of their strategies. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

enum { kPiece = 1000, kPieces = 500 };

static int rank, size;
static char data[kPiece * kPieces];

static MPI_File open_view(const char* name, int mode) {
    MPI_File file;
    MPI_Datatype piece, type;
    OK(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file));
    MPI_Type_contiguous(kPiece, MPI_BYTE, &piece);
    MPI_Type_create_resized(piece, 0, (MPI_Aint)kPiece * size, &type);
    MPI_Type_commit(&type);
    OK(MPI_File_set_view(file, (MPI_Offset)kPiece * rank, MPI_BYTE, type, "native", MPI_INFO_NULL));
    MPI_Type_free(&piece);
    MPI_Type_free(&type);
    return file;
}

static void read_and_compare(MPI_File file, int together) {
    memset(data, 0, sizeof data);
    const int error = together ? MPI_File_read_at_all(file, 0, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE)
                               : MPI_File_read_at(file, 0, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK(error == MPI_SUCCESS, "the read fails");
    for (size_t i = 0; i < sizeof data; ++i) CHECK(data[i] == rank + 1, "byte %zu is wrong", i);
}

int main(int argc, char** argv) {
    char name[4096];
    MPI_Info info;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(name, sizeof name, "%s/cached", argv[1]);
    MPI_File file = open_view(name, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    memset(data, rank + 1, sizeof data);
    OK(MPI_File_write_at_all(file, 0, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE));
    MPI_File_close(&file);

    file = open_view(name, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE);
    read_and_compare(file, 1);
    read_and_compare(file, 0);
    read_and_compare(file, 1);
    MPI_File_sync(file);
    read_and_compare(file, 1);
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_read", "enable");
    MPI_File_set_info(file, info);
    MPI_Info_free(&info);
    read_and_compare(file, 0);
    read_and_compare(file, 1);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
