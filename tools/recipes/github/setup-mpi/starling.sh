# The branch for `mpi: starling` in the Linux part of setup-mpi.sh (mpi4py/setup-mpi), beside which setup-starling.sh lies.
starling)
    "$(dirname "${BASH_SOURCE[0]}")/setup-starling.sh"
    ;;
