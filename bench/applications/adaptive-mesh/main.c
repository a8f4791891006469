/* An adaptive mesh with changing neighbors: heat from a lamp that circles over a square plate. It is computed on blocks of cells that are
 * small where the heat changes quickly. Every few steps blocks are refined and merged, distributed evenly over the processes again along a
 * space-filling curve, and their cells moved. In each step the processes exchange the borders of blocks, one message per partner. The size
 * of a row is that of a block (-s, cells along its edge).
 *
 * - step, border, regrid: time of a step without regridding, its part for the exchange of borders, time of a regridding; us.
 * - blocks, partners, partners-changed, blocks-moved: number of blocks at the end; and per regridding, the number of processes with
 *   which a process exchanges borders, how many of them are new or no longer partners, and how many blocks change their owner.
 * - on-connections: share of the packets that did not take the base path, if the library counts them.
 *
 * -i: steps; -k: levels of refinement; --every: steps between regriddings; --corners: heat flows across corners too, so a block has eight
 * neighbors; --scatter: the owner of a block does not depend on its neighbors, so all partners change with each regridding; --compute:
 * microseconds of other work per block and step; -c: the plate must be identical to one computed by a single process. --spawn K: parents and
 * children share one plate. The time steps are explicit and equal for all blocks; the flow of heat between blocks of different
 * levels is not corrected. All processes know the whole tree of blocks. */
#include <stdlib.h>
#include <string.h>

#include "../../common/paths.h"
#include "../../common/team.h"
#include "mesh.h"

enum { kBase = 4, kRegridMark = 3 };

typedef struct {
    double partners, changed; /* numbers of partners and of changed partners, sums over the regriddings */
    long regrids;
    double seconds;
} Tally;

static void regrid(Mesh* mesh, Tally* tally) {
    size_t words = (size_t)mesh->size / 64 + 1;
    uint64_t* old = malloc(words * sizeof *old);
    const uint64_t* set;
    mesh_partners(mesh->plan, &set);
    memcpy(old, set, words * sizeof *old);
    for (int i = 0; i < mesh->count; ++i) {
        Leaf* leaf = &mesh->leaves[i];
        if (leaf->now) leaf->target = mesh_wished_level(mesh, leaf);
    }
    mesh_regrid(mesh);
    tally->partners += mesh_partners(mesh->plan, &set);
    for (size_t w = 0; w < words; ++w) tally->changed += __builtin_popcountll(old[w] ^ set[w]);
    ++tally->regrids;
    free(old);
}

static Tally run(Mesh* mesh, const Options* options) {
    Tally tally = {0, 0, 0, 0};
    long steps = options->iterations, microseconds = options->compute ? bench_next_of(options->compute, -1) : 0;
    long work = microseconds > 0 ? bench_units((double)microseconds) : 0;
    MPI_Barrier(mesh->comm);
    double before = bench_now();
    for (long step = 0; step < steps; ++step) {
        double x, y;
        mesh_lamp((double)step / (double)steps, &x, &y);
        if (step % options->every == 0) {
            MPI_Pcontrol(kRegridMark); /* marks the change of partners for libraries that use it */
            regrid(mesh, &tally);
        }
        mesh_exchange(mesh);
        for (int i = 0; i < mesh->count; ++i) {
            if (!mesh->leaves[i].now) continue;
            mesh_heat(mesh, &mesh->leaves[i], x, y);
            if (work > 0) bench_compute(work);
        }
    }
    tally.seconds = bench_now() - before;
    return tally;
}

static void check(const Mesh* mesh, const Options* options) {
    Mesh alone = mesh_create(MPI_COMM_SELF, mesh);
    run(&alone, options);
    bench_require(alone.count == mesh->count, "the number of blocks differs from the result of one process");
    for (int i = 0; i < mesh->count; ++i) {
        const Leaf *own = &mesh->leaves[i], *right = &alone.leaves[i];
        bench_require(own->level == right->level && own->x == right->x && own->y == right->y,
                      "a block is in a different place than with one process");
        for (int r = 1; r <= mesh->edge && own->now; ++r) {
            bench_require(memcmp(mesh_cell(mesh, own->now, r, 1), mesh_cell(mesh, right->now, r, 1),
                                 (size_t)mesh->edge * sizeof(double)) == 0,
                          "a cell differs from the result of one process");
        }
    }
    mesh_free(&alone);
}

static void measure(const Team* team, const Options* options, int edge, int levels, Report* report) {
    Mesh shape = {.base = kBase, .levels = levels, .edge = edge, .corners = options->corners, .scatter = options->scatter};
    Mesh mesh = mesh_create(team->control, &shape);
    Paths* paths = bench_paths();
    Tally tally = run(&mesh, options);
    PathShare share = bench_path_share(paths, mesh.comm);
    if (options->check) check(&mesh, options);
    double steps = (double)options->iterations, regrids = (double)tally.regrids;
    const struct {
        const char* name;
        double own;
    } rows[] = {{"step", (tally.seconds - mesh.regrid_seconds) / steps * 1e6},
                {"border", mesh.ghost_seconds / steps * 1e6},
                {"regrid", mesh.regrid_seconds / regrids * 1e6},
                {"blocks", mesh.count},
                {"partners", tally.partners / regrids},
                {"partners-changed", tally.changed / regrids},
                {"blocks-moved", (double)mesh.moved / regrids}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; ++k) {
        Stats stats = bench_over_processes(team->control, rows[k].own);
        bench_row(report, rows[k].name, edge, stats);
    }
    if (team->id == 0 && share.on_connections >= 0) {
        Stats one = {share.on_connections, share.on_connections, share.on_connections, share.on_connections, 0, {{0, 0}}};
        bench_row(report, "on-connections", edge, one);
    }
    mesh_free(&mesh);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options defaults = bench_defaults();
    defaults.sizes = "8,16";
    defaults.counts = "3";
    defaults.iterations = 400;
    Options options = bench_options(argc, argv, "adaptive mesh; -s edges of blocks, -i steps, -k levels", defaults);
    Team team = bench_team(&options, argv);
    int levels = (int)bench_next_of(options.counts, -1);
    bench_require(levels >= 0 && levels <= 6, "-k takes 0 to 6 levels");
    Report* report = bench_report("adaptive-mesh", "us or number", &options);
    for (long edge = bench_next_size(&options, 1); edge > 0; edge = bench_next_size(&options, edge)) {
        bench_require(edge % 2 == 0, "-s takes even numbers of cells");
        bench_require(!options.corners || edge >= 4, "with --corners -s takes numbers of cells from 4 on");
        measure(&team, &options, (int)edge, levels, report);
    }
    bench_team_print(&team, report);
    bench_team_end(&team);
    MPI_Finalize();
    return 0;
}
