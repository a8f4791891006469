"""Exceptions of mpi4py have the sentence of the failed call, also later and in another thread: spawn, connect, windows, sizes.

    mpiexec -n 2 python error_sentences.py
"""

import threading
import unittest

from mpi4py import MPI

world = MPI.COMM_WORLD
me = MPI.COMM_SELF


def failure(call, *arguments, **named):
    """Returns the exception that a call must raise."""
    try:
        call(*arguments, **named)
    except MPI.Exception as error:
        return error
    raise AssertionError(f"{call} has not failed")


def expect(error, error_class, *words):
    assert error.Get_error_class() == error_class, (error.Get_error_class(), error_class, str(error))
    for word in words:
        assert word in str(error), f"{word!r} is not in {str(error)!r}"


def truncated():
    """Receives a message of 5 bytes into a buffer of 3."""
    sending = me.Isend([b"12345", MPI.BYTE], dest=0, tag=4711)
    error = failure(me.Recv, [bytearray(3), MPI.BYTE], source=0, tag=4711)
    sending.Wait()
    return error


spawn = failure(world.Spawn, "./no-such-worker", maxprocs=2)
connect = failure(me.Connect, "no port at all")
lookup = failure(MPI.Lookup_name, "no such service")
rank = failure(world.send, None, dest=90210)
size = failure(MPI.Win.Allocate, -5, comm=me)
message = truncated()
window = MPI.Win.Allocate(16, comm=me)
window.Lock(0)
range_error = failure(window.Put, [b"12345678", MPI.BYTE], 0, 12)
window.Unlock(0)
window.Free()


class ErrorSentences(unittest.TestCase):
    def test_each_exception_has_the_sentence_of_its_call(self):
        expect(spawn, MPI.ERR_SPAWN, "MPI_Comm_spawn", "'./no-such-worker' in directory", "No such file or directory")
        expect(connect, MPI.ERR_PORT, "no port at all", "MPI_Open_port")
        expect(lookup, MPI.ERR_NAME, "no such service")
        expect(rank, MPI.ERR_RANK, "no rank 90210")
        expect(size, MPI.ERR_SIZE, "-5")
        expect(message, MPI.ERR_TRUNCATE, "a message of 5 bytes from rank 0 with tag 4711 does not fit into a buffer of 3 bytes")
        expect(range_error, MPI.ERR_RMA_RANGE, "16-byte window")

    def test_another_thread_gets_the_same_texts(self):
        errors = (spawn, connect, lookup, rank, size, message, range_error)
        texts = []
        other = threading.Thread(target=lambda: texts.extend(map(str, errors)))
        other.start()
        other.join()
        self.assertEqual(texts, [str(error) for error in errors])
        self.assertEqual(len(set(texts)), len(errors))


unittest.main()
