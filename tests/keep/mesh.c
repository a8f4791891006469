// The adaptive mesh of bench/applications loses ranks, and ends with the same blocks and cells as one process alone. The survivors continue
// from the store with substitutes of the dead or without. Usage: mesh replace|shrink [RANK STEP]...; each RANK kills itself in its STEP.
// Where RANK is -2, the first rank waits in that STEP until the file TEST_HOLD.STEP exists, while the test harms other hosts.
#include <mpi-ext.h>
#include <signal.h>
#include <starling_keep.h>
#include <unistd.h>

#include "../../bench/applications/adaptive-mesh/mesh.h"
#include "../mpi/dynamic.h"

enum { kSteps = 60, kRegridEvery = 5, kSaveEvery = 10, kEdge = 8 };

static const Mesh shape = {.base = 4, .levels = 3, .edge = kEdge};
static char** arguments;
static int world_rank = -1;  // a substitute has none

typedef struct {
    MPI_Comm comm;
    starling_keep store;
} Team;

/// The place of a leaf in a block of the store, before the cells of the owner's leaves.
typedef struct {
    int level, x, y;
} Place;

static size_t cells_bytes(void) { return (size_t)(kEdge + 2) * (kEdge + 2) * sizeof(double); }

static void advance(Mesh* mesh, int step) {
    double x, y;
    mesh_lamp((double)step / kSteps, &x, &y);
    if (step % kRegridEvery == 0) {
        for (int i = 0; i < mesh->count; ++i)
            if (mesh->leaves[i].now) mesh->leaves[i].target = mesh_wished_level(mesh, &mesh->leaves[i]);
        mesh_regrid(mesh);
    }
    if (!mesh->error) mesh_exchange(mesh);
    for (int i = 0; i < mesh->count && !mesh->error; ++i)
        if (mesh->leaves[i].now) mesh_heat(mesh, &mesh->leaves[i], x, y);
}

/// Keeps the places of all leaves and the cells of this rank's.
static int save(starling_keep store, const Mesh* mesh, int done) {
    size_t bytes = (size_t)mesh->count * sizeof(Place);
    char* block = malloc(bytes + (size_t)mesh->count * cells_bytes());
    for (int i = 0; i < mesh->count; ++i) {
        const Leaf* leaf = &mesh->leaves[i];
        ((Place*)block)[i] = (Place){leaf->level, leaf->x, leaf->y};
        if (!leaf->now) continue;
        memcpy(block + bytes, leaf->now, cells_bytes());
        bytes += cells_bytes();
    }
    // The number of leaves is the version of a block of its own, which all ranks have.
    int code = starling_keep_save(store, "count", &mesh->count, sizeof mesh->count, done);
    if (!code) code = starling_keep_save(store, "leaves", block, bytes, done);
    free(block);
    return code;
}

/// Replaces the leaves of a new mesh by those of a block.
static void set_leaves(Mesh* mesh, const Place* places, int count, int owners, int* old_owners) {
    for (int i = 0; i < mesh->count; ++i) {
        free(mesh->leaves[i].now);
        free(mesh->leaves[i].next);
    }
    free(mesh->leaves);
    mesh_plan_free(mesh->plan);
    mesh->leaves = calloc((size_t)count, sizeof(Leaf));
    mesh->count = count;
    for (int i = 0; i < count; ++i) mesh->leaves[i] = mesh_leaf(mesh, places[i].level, places[i].x, places[i].y);
    Mesh old = *mesh;
    old.size = owners;
    mesh_set_owners(&old, mesh->leaves, count);
    for (int i = 0; i < count; ++i) old_owners[i] = mesh->leaves[i].owner;
    mesh_set_owners(mesh, mesh->leaves, count);
    for (int i = 0; i < count; ++i) {
        Leaf* leaf = &mesh->leaves[i];
        leaf->now = leaf->owner == mesh->rank ? mesh_new_cells(mesh) : NULL;
        leaf->next = leaf->owner == mesh->rank ? mesh_new_cells(mesh) : NULL;
    }
    mesh->plan = mesh_plan(mesh);
}

static void take_cells(Mesh* mesh, const char* cells, int owner, const int* old_owners) {
    for (int i = 0; i < mesh->count; ++i) {
        if (old_owners[i] != owner) continue;
        if (mesh->leaves[i].now) memcpy(mesh->leaves[i].now, cells, cells_bytes());
        cells += cells_bytes();
    }
}

/// Restores the mesh of the latest save, which any number of ranks may have made. Sets the number of steps that led to it.
static int restore(starling_keep store, Mesh* mesh, int* done) {
    long long version, of_leaves;
    int owners, count = 0, code;
    *done = 0;
    OK(starling_keep_latest(store, "leaves", &version, &owners));
    if (version == STARLING_KEEP_NONE) return MPI_SUCCESS;
    size_t bytes = sizeof count;
    of_leaves = version;
    code = starling_keep_fetch(store, "count", 0, &count, &bytes, &version);
    if (code) return code;
    int* old_owners = malloc((size_t)count * sizeof(int));
    const size_t places = (size_t)count * sizeof(Place), most = places + (size_t)count * cells_bytes();
    char* block = malloc(most);
    for (int owner = 0; owner < owners && !code; ++owner) {
        bytes = most;
        code = starling_keep_fetch(store, "leaves", owner, block, &bytes, &of_leaves);
        if (code) break;
        if (owner == 0) set_leaves(mesh, (const Place*)block, count, owners, old_owners);
        take_cells(mesh, block + places, owner, old_owners);
    }
    free(block);
    free(old_owners);
    *done = (int)version;
    return code;
}

static void hold_in(int step, int rank) {
    const char* const stem = getenv("TEST_HOLD");
    for (char** pair = arguments + 2; stem && rank == 0 && pair[0] && pair[1]; pair += 2) {
        if (atoi(pair[0]) != -2 || atoi(pair[1]) != step) continue;
        char file[256];
        snprintf(file, sizeof file, "%s.%d", stem, step);
        printf("waits in step %d\n", step);
        fflush(stdout);
        while (access(file, F_OK) != 0) usleep(1000);
    }
}

static void kill_myself_in(int step) {
    for (char** pair = arguments + 2; pair[0] && pair[1]; pair += 2)
        if (atoi(pair[0]) == world_rank && atoi(pair[1]) == step) raise(SIGKILL);
}

/// Computes from the latest save to the end. Returns an error, perhaps only on some ranks, if a rank dies.
static int compute(const Team* team, Mesh* mesh) {
    int done, code = restore(team->store, mesh, &done);
    if (!code && done > 0 && mesh->rank == 0) printf("%d ranks continue after step %d\n", mesh->size, done);
    while (!code && done < kSteps) {
        kill_myself_in(done);
        hold_in(done, mesh->rank);
        advance(mesh, done);
        code = mesh->error;
        if (!code && ++done % kSaveEvery == 0) code = save(team->store, mesh, done);
    }
    const int class = class_of(code);
    CHECK(class == MPI_SUCCESS || class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED || class == MPI_ERR_IN_STATUS,
          "class %d: %s", class, starling_keep_message());
    return code;
}

static void expect_same_as_alone(const Mesh* mesh) {
    Mesh alone = mesh_create(MPI_COMM_SELF, &shape);
    for (int step = 0; step < kSteps; ++step) advance(&alone, step);
    EXPECT_INT(mesh->count, alone.count);
    for (int i = 0; i < mesh->count; ++i) {
        const Leaf *own = &mesh->leaves[i], *right = &alone.leaves[i];
        CHECK(own->level == right->level && own->x == right->x && own->y == right->y, "block %d is in a different place", i);
        for (int r = 1; r <= kEdge && own->now; ++r)
            CHECK(memcmp(mesh_cell(mesh, own->now, r, 1), mesh_cell(mesh, right->now, r, 1), kEdge * sizeof(double)) == 0,
                  "row %d of block %d differs", r, i);
    }
    mesh_free(&alone);
}

static MPI_Comm without_dead(MPI_Comm comm) {
    MPI_Comm living;
    int class;
    do {
        class = class_of(strcmp(arguments[1], "replace")
                             ? MPIX_Comm_shrink(comm, &living)
                             : MPIX_Comm_replace(comm, own_path(), arguments + 1, MPI_INFO_NULL, &living));
        CHECK(class == MPI_SUCCESS || class == MPIX_ERR_PROC_FAILED, "class %d", class);
    } while (class);
    OK(MPI_Comm_set_errhandler(living, MPI_ERRORS_RETURN));
    return living;
}

/// Gives all ranks the store and computes. Returns whether all ranks have come to the end.
static int attempt(Team* team, Mesh* mesh) {
    const int code = team->store ? starling_keep_move(team->store, team->comm)
                                 : starling_keep_create(team->comm, STARLING_KEEP_UNBOUNDED, &team->store);
    int good = !code && !compute(team, mesh);
    if (!good) OK(MPIX_Comm_revoke(team->comm));
    return MPIX_Comm_agree(team->comm, &good) == MPI_SUCCESS && good;
}

static MPI_Comm first_comm(void) {
    MPI_Comm parent, comm;
    OK(MPI_Comm_get_parent(&parent));
    if (parent == MPI_COMM_NULL) {
        OK(MPI_Comm_rank(MPI_COMM_WORLD, &world_rank));
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    } else {
        OK(MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN));
        if (MPIX_Comm_replace(MPI_COMM_NULL, NULL, MPI_ARGV_NULL, MPI_INFO_NULL, &comm)) {
            OK(MPI_Finalize());  // the survivors start another substitute
            exit(0);
        }
    }
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    return comm;
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    CHECK(argc > 1, "usage: mpiexec --enable-recovery -n N mesh replace|shrink [RANK STEP]...");
    arguments = argv;
    Team team = {first_comm(), NULL};
    Mesh mesh = mesh_create(team.comm, &shape);
    while (!attempt(&team, &mesh)) {
        mesh_free(&mesh);
        const MPI_Comm living = without_dead(team.comm);
        OK(MPI_Comm_free(&team.comm));
        team.comm = living;
        mesh = mesh_create(team.comm, &shape);
    }
    expect_same_as_alone(&mesh);
    OK(starling_keep_free(&team.store));
    if (mesh.rank == 0) printf("%d ranks have the mesh of one\n", mesh.size);
    mesh_free(&mesh);
    OK(MPI_Comm_free(&team.comm));
    OK(MPI_Finalize());
    return 0;
}
