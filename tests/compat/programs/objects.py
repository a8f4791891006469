"""Objects, arrays and spawned processes through mpi4py."""
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
gathered = world.allgather({"rank": rank, "square": rank**2})
world.send(list(range(rank * 1000)), dest=(rank + 1) % size) if size > 1 and rank % 2 == 0 else None
if size > 1:
    got = world.recv(source=(rank - 1) % size) if rank % 2 else None
    assert got is None or got == list(range((rank - 1) * 1000))
buffer = bytearray(8 * size)
world.Allgather([bytes([rank] * 8), MPI.BYTE], [buffer, MPI.BYTE])
assert bytes(buffer) == b"".join(bytes([other] * 8) for other in range(size))
total = world.allreduce(rank + 1, op=MPI.SUM)
code = "from mpi4py import MPI; c = MPI.Comm.Get_parent(); c.gather(c.Get_rank() * 3, root=0); c.Disconnect()"
children = world.Spawn(sys.executable, args=["-c", code], maxprocs=2)
told = children.gather(None, root=MPI.ROOT if rank == 0 else MPI.PROC_NULL)
children.Disconnect()
if rank == 0:
    print("ranks", size, "objects", gathered, "total", total, "children", told)
