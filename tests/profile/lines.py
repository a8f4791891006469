"""A Python program whose profile names lines: lines.py [threads]. With `threads`, a second Python thread calls MPI meanwhile."""
import array
import sys
import threading
import time

from mpi4py import MPI

comm = MPI.COMM_WORLD
second = comm.Dup()


def take():
    if comm.rank == 0:
        comm.Recv(bytearray(1), source=1)  # receive
    elif comm.rank == 1:
        comm.Send(bytes(1), dest=0)


def total():
    ones = array.array("d", [1])
    comm.Allreduce(MPI.IN_PLACE, ones)  # reduction
    assert ones[0] == comm.size


def step():
    if comm.rank == 1:
        time.sleep(0.02)
    take()
    total()


def follow():
    for i in range(10):
        time.sleep(0.01)
        second.Barrier()  # barrier


other = threading.Thread(target=follow)
if "threads" in sys.argv:
    other.start()
for i in range(10):
    step()
if "threads" in sys.argv:
    other.join()
