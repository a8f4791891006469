#!/usr/bin/python3
"""Compares two checkpoints of heat2d, one of MPI's files and one of HDF5: compare_checkpoints.py plate.ckpt plate.h5

Reads them with numpy and the serial h5py (python3-h5py)."""
import os
import sys

os.environ["H5PY_ALWAYS_USE_MPI"] = "0"
import h5py  # noqa: E402
import numpy  # noqa: E402

plain, hdf5 = sys.argv[1:]
side, steps = numpy.fromfile(plain, numpy.int64, 2)
cells = numpy.fromfile(plain, numpy.float64, offset=16).reshape(side, side)
with h5py.File(hdf5, "r") as file:
    if file["cells"].attrs["steps"] != steps or not numpy.array_equal(file["cells"], cells):
        sys.exit(f"{plain} and {hdf5} differ")
print(f"equal: {side}x{side} cells after {steps} steps")
