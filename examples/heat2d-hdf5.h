/* Checkpoints of heat2d as HDF5 files, which all ranks write together: the dataset "cells" with the whole plate, and its attribute "steps".
 * heat2d.c includes this file if it is compiled with -DWITH_HDF5. */
#include <hdf5.h>
#include <unistd.h>

/* HDF5 prints the reason of an error itself. */
static int64_t check_hdf5(int64_t result, const char* doing, const char* file) {
    if (result >= 0) return result;
    fprintf(stderr, "heat2d: cannot %s %s\n", doing, file);
    MPI_Abort(MPI_COMM_WORLD, 1);
    return result;
}

/* Returns the properties with which all ranks of the grid open one file. */
static hid_t shared_by(MPI_Comm grid) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    check_hdf5(H5Pset_fapl_mpio(access, grid, MPI_INFO_NULL), "use", "MPI's files");
    return access;
}

/* Moves this rank's block between the dataset and memory, together with all other ranks; the halo stays outside. */
static void transfer_block(hid_t cells, const char* name, const Block* b, int writes) {
    hsize_t block[2] = {(hsize_t)b->rows, (hsize_t)b->columns}, place[2] = {(hsize_t)b->first_row, (hsize_t)b->first_column};
    hsize_t with_halo[2] = {block[0] + 2, block[1] + 2}, inside[2] = {1, 1};
    hid_t in_file = H5Dget_space(cells), in_memory = H5Screate_simple(2, with_halo, NULL);
    check_hdf5(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, place, NULL, block, NULL), "select the block in", name);
    check_hdf5(H5Sselect_hyperslab(in_memory, H5S_SELECT_SET, inside, NULL, block, NULL), "select the block for", name);
    hid_t together = H5Pcreate(H5P_DATASET_XFER);
    check_hdf5(H5Pset_dxpl_mpio(together, H5FD_MPIO_COLLECTIVE), "use collective calls for", name);
    if (writes)
        check_hdf5(H5Dwrite(cells, H5T_NATIVE_DOUBLE, in_memory, in_file, together, b->now), "write", name);
    else
        check_hdf5(H5Dread(cells, H5T_NATIVE_DOUBLE, in_memory, in_file, together, b->now), "read", name);
    H5Pclose(together);
    H5Sclose(in_memory);
    H5Sclose(in_file);
}

/* Writes the plate to a new file, and renames it when it is complete. */
static void write_checkpoint(const char* name, MPI_Comm grid, int side, int steps, const Block* b) {
    char fresh[4096];
    int rank;
    MPI_Comm_rank(grid, &rank);
    snprintf(fresh, sizeof fresh, "%s.new", name);
    hid_t access = shared_by(grid);
    hid_t file = check_hdf5(H5Fcreate(fresh, H5F_ACC_TRUNC, H5P_DEFAULT, access), "create", fresh);
    hsize_t plate[2] = {(hsize_t)side, (hsize_t)side};
    hid_t whole = H5Screate_simple(2, plate, NULL), one = H5Screate(H5S_SCALAR);
    hid_t cells = check_hdf5(H5Dcreate2(file, "cells", H5T_NATIVE_DOUBLE, whole, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                             "create the dataset in", fresh);
    hid_t count = check_hdf5(H5Acreate2(cells, "steps", H5T_NATIVE_INT, one, H5P_DEFAULT, H5P_DEFAULT), "describe", fresh);
    check_hdf5(H5Awrite(count, H5T_NATIVE_INT, &steps), "describe", fresh);
    transfer_block(cells, fresh, b, 1);
    H5Aclose(count);
    H5Dclose(cells);
    H5Sclose(one);
    H5Sclose(whole);
    check_hdf5(H5Fflush(file, H5F_SCOPE_GLOBAL), "store", fresh);
    check_hdf5(H5Fclose(file), "close", fresh);
    H5Pclose(access);
    if (rank == 0) rename_checkpoint(fresh, name);
}

/* Reads the plate and returns the number of steps that led to it; 0 if there is no such file yet. */
static int read_checkpoint(const char* name, MPI_Comm grid, int side, Block* b) {
    int rank, steps = 0, exists = 0;
    MPI_Comm_rank(grid, &rank);
    if (rank == 0) exists = access(name, F_OK) == 0;
    MPI_Bcast(&exists, 1, MPI_INT, 0, grid);
    if (!exists) return 0;
    hid_t access = shared_by(grid);
    hid_t file = check_hdf5(H5Fopen(name, H5F_ACC_RDONLY, access), "open", name);
    hid_t cells = check_hdf5(H5Dopen2(file, "cells", H5P_DEFAULT), "find the cells in", name);
    hid_t space = H5Dget_space(cells);
    hsize_t plate[2] = {0, 0};
    if (H5Sget_simple_extent_ndims(space) == 2) H5Sget_simple_extent_dims(space, plate, NULL);
    if (plate[0] != (hsize_t)side || plate[1] != (hsize_t)side) refuse_checkpoint(name, side);
    hid_t count = check_hdf5(H5Aopen(cells, "steps", H5P_DEFAULT), "find the steps in", name);
    check_hdf5(H5Aread(count, H5T_NATIVE_INT, &steps), "read", name);
    transfer_block(cells, name, b, 0);
    H5Aclose(count);
    H5Sclose(space);
    H5Dclose(cells);
    check_hdf5(H5Fclose(file), "close", name);
    H5Pclose(access);
    return steps;
}
