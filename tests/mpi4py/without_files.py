"""Runs mpi4py's test/main.py with an MPI.File that cannot be opened, as with an MPI library without MPI-IO. Other tests that also create
a file, on import or among other objects, then skip that part themselves.

    python without_files.py test/main.py -q test_subclass
"""

import ctypes
import gc
import pathlib
import runpy
import sys

from mpi4py import MPI


def refuse(cls, *arguments, **named):
    """Refuse(...)

    Opens no file."""
    raise NotImplementedError("files (MPI I/O) are not built")


# Writes to the type itself, the only way to change it: a derived class would differ from MPI.FILE_NULL's class.
gc.get_referents(MPI.File.__dict__)[0]["Open"] = classmethod(refuse)
ctypes.pythonapi.PyType_Modified(ctypes.py_object(MPI.File))

del sys.argv[0]
sys.path[0] = str(pathlib.Path(sys.argv[0]).resolve().parent)
runpy.run_path(sys.argv[0], run_name="__main__")
