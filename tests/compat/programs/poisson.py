"""Poisson's equation in one dimension, by PETSc's conjugate gradients."""
import sys

import petsc4py

petsc4py.init(sys.argv)
from petsc4py import PETSc  # noqa: E402

SIZE = 2000
matrix = PETSc.Mat().createAIJ([SIZE, SIZE], nnz=3)
for row in range(*matrix.getOwnershipRange()):
    for column, value in ((row - 1, -1), (row, 2), (row + 1, -1)):
        if 0 <= column < SIZE:
            matrix[row, column] = value
matrix.assemble()
solution, right = matrix.createVecs()
right.set(1)
solver = PETSc.KSP().create()
solver.setOperators(matrix)
solver.setType("cg")
solver.getPC().setType("jacobi")
solver.setTolerances(rtol=1e-10, max_it=3000)
solver.solve(right, solution)
PETSc.Sys.Print(f"ranks {matrix.comm.size} iterations {solver.getIterationNumber()} norm {solution.norm():.6e}")
