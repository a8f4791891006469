"""Parallel HDF5 through h5py: all ranks write one file, collectively and each for itself, and the serial HDF5 library reads it."""
import os
import subprocess
import sys

import numpy
from mpi4py import MPI

import h5py

SIDE, SERIAL = 240, {name: value for name, value in os.environ.items() if not name.startswith(("H5PY_", "OMPI_", "MPI_"))}
READ = """
import h5py, numpy
with h5py.File("plate.h5", "r") as file:
    assert not h5py.get_config().mpi
    for name in ("together", "alone", "chunks", "columns"):
        assert (file[name][...] == numpy.arange(240 * 240).reshape(240, 240)).all(), name
    assert list(file["grown"][...]) == list(range(100)), "grown"
    assert file.attrs["side"] == 240
    print("serial HDF5 reads", sorted(file), file["together"][...].sum())
"""
world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
first, last = SIDE * rank // size, SIDE * (rank + 1) // size
plate = numpy.arange(SIDE * SIDE).reshape(SIDE, SIDE)

with h5py.File("plate.h5", "w", driver="mpio", comm=world) as file:
    file.attrs["side"] = SIDE
    together = file.create_dataset("together", (SIDE, SIDE), "i8")
    alone = file.create_dataset("alone", (SIDE, SIDE), "f8")
    chunks = file.create_dataset("chunks", (SIDE, SIDE), "i4", chunks=(7, 50))
    columns = file.create_dataset("columns", (SIDE, SIDE), ">i8")
    grown = file.create_dataset("grown", (10,), "i8", maxshape=(None,), chunks=(8,))
    with together.collective:
        together[first:last] = plate[first:last]
    alone[first:last] = plate[first:last]
    with chunks.collective:
        chunks[:, first:last] = plate[:, first:last]
    with columns.collective:
        columns[:, rank::size] = plate[:, rank::size]
    grown.resize((100,))
    with grown.collective:
        grown[100 * rank // size:100 * (rank + 1) // size] = numpy.arange(100 * rank // size, 100 * (rank + 1) // size)
    file.flush()

with h5py.File("plate.h5", "r", driver="mpio", comm=world) as file:
    with file["columns"].collective:
        turned = file["columns"][:, (rank + 1) % size::size]
    assert (turned == plate[:, (rank + 1) % size::size]).all()
    assert (file["together"][first:last] == plate[first:last]).all()

world.Barrier()
if rank == 0:
    print("ranks", size, "parallel", h5py.get_config().mpi, flush=True)
    print(subprocess.run([sys.executable, "-c", READ], env=SERIAL, check=True, text=True, stdout=subprocess.PIPE).stdout.strip())
