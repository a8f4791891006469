// render-farm: renders one picture with POV-Ray on workers that join and leave during the run.
#include <fcntl.h>
#include <getopt.h>
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "coordinator.h"
#include "worker.h"

namespace farm {
namespace {

constexpr const char* kUsage =
    "usage: mpiexec -n 1 render-farm --scene FILE [options] [-- povray options]\n"
    "       mpiexec -n 1+K ...: K workers from the start to the end, none is spawned\n"
    "  --scene FILE      the scene (.pov)\n"
    "  --output FILE     the picture, PNG (default: picture.png)\n"
    "  --size WxH        its size in pixels (default: 320x240)\n"
    "  --tile WxH        size of a tile (default: about ten tiles per worker; each costs one start of\n"
    "                    povray, 0.5 s of which it sleeps, and reading the scene)\n"
    "  --workers N       workers at the start (default: as many as cores)\n"
    "  --grow K          spawn K more when a third is done\n"
    "  --shrink K        release K when two thirds are done\n"
    "  --kill K          kill K workers during the run, to show that their tiles are redone\n"
    "  --ahead N         tiles a worker has at a time (default: 2)\n"
    "  --baseline        first let one povray make the whole picture: measures the speed-up and compares "
    "the pictures\n"
    "  --json FILE       write the report as JSON, too\n"
    "  --verbose         print the pids of the workers\n"
    "  --quiet           no progress\n";

struct Options {
    Plan plan;
    std::string output = "picture.png";
    std::string json;
    bool baseline = false;
};

// Ends the run: rank 0, and the members of its job that wait to become workers.
[[noreturn]] void leave(int code) {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > 1) MPI_Abort(MPI_COMM_WORLD, code);
    MPI_Finalize();
    exit(code);
}

[[noreturn]] void refuse(const std::string& message) {
    fprintf(stderr, "render-farm: %s\n", message.c_str());
    leave(2);
}

int number(const char* option, const char* text, int least) {
    char* end = nullptr;
    const long value = strtol(text, &end, 10);
    if (*end || end == text || value < least || value > 100000) {
        refuse(std::string("--") + option + " takes a number from " + std::to_string(least) + ", not \"" + text + "\"");
    }
    return int(value);
}

void size(const char* option, const char* text, int* width, int* height) {
    char rest;
    if (sscanf(text, "%dx%d%c", width, height, &rest) != 2 || *width < 1 || *height < 1 || *width > 30000 || *height > 30000) {
        refuse(std::string("--") + option + " takes a size such as 320x240, not \"" + text + "\"");
    }
}

int cores() {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// Chooses the size of a tile so that there are about ten tiles per worker. Tiles should be small enough that all workers finish at about
// the same time, and large enough that povray's start-up hardly matters.
void choose_tiles(Plan* plan) {
    const double wanted = 10.0 * (plan->workers + plan->grow);
    const double side = std::sqrt(double(plan->job.width) * plan->job.height / wanted);
    const auto fit = [side](int length) {
        const int pieces = std::max(1, int(std::lround(length / side)));
        return std::max(std::min(16, length), (length + pieces - 1) / pieces);
    };
    plan->tile_width = fit(plan->job.width);
    plan->tile_height = fit(plan->job.height);
}

// `members` is the number of other processes in the job.
Options read_options(int argc, char** argv, int members) {
    enum {
        kScene = 256,
        kOutput,
        kSize,
        kTile,
        kWorkers,
        kGrow,
        kShrink,
        kKill,
        kAhead,
        kBaseline,
        kJson,
        kVerbose,
        kQuiet,
        kHelp
    };
    const option table[] = {
        {"scene", 1, nullptr, kScene},       {"output", 1, nullptr, kOutput},   {"size", 1, nullptr, kSize},
        {"tile", 1, nullptr, kTile},         {"workers", 1, nullptr, kWorkers}, {"grow", 1, nullptr, kGrow},
        {"shrink", 1, nullptr, kShrink},     {"kill", 1, nullptr, kKill},       {"ahead", 1, nullptr, kAhead},
        {"baseline", 0, nullptr, kBaseline}, {"json", 1, nullptr, kJson},       {"verbose", 0, nullptr, kVerbose},
        {"quiet", 0, nullptr, kQuiet},       {"help", 0, nullptr, kHelp},       {nullptr, 0, nullptr, 0}};
    Options options;
    Plan& plan = options.plan;
    plan.workers = 0;
    for (int key; (key = getopt_long(argc, argv, "", table, nullptr)) != -1;) {
        switch (key) {
            case kScene:
                plan.job.scene = optarg;
                break;
            case kOutput:
                options.output = optarg;
                break;
            case kSize:
                size("size", optarg, &plan.job.width, &plan.job.height);
                break;
            case kTile:
                size("tile", optarg, &plan.tile_width, &plan.tile_height);
                break;
            case kWorkers:
                plan.workers = number("workers", optarg, 1);
                break;
            case kGrow:
                plan.grow = number("grow", optarg, 0);
                break;
            case kShrink:
                plan.shrink = number("shrink", optarg, 0);
                break;
            case kKill:
                plan.kill = number("kill", optarg, 0);
                break;
            case kAhead:
                plan.ahead = number("ahead", optarg, 1);
                break;
            case kBaseline:
                options.baseline = true;
                break;
            case kJson:
                options.json = optarg;
                break;
            case kVerbose:
                plan.verbose = true;
                break;
            case kQuiet:
                plan.quiet = true;
                break;
            case kHelp:
                fputs(kUsage, stdout);
                fflush(stdout);
                leave(0);
            default:
                refuse("see --help");
        }
    }
    if (members > 0) {
        if (plan.workers > 0 || plan.grow || plan.shrink || plan.kill) {
            refuse("--workers, --grow, --shrink and --kill are for mpiexec -n 1: a job's own members stay");
        }
        plan.members = true;
    }
    if (plan.workers == 0) plan.workers = members > 0 ? members : cores();
    plan.job.options.assign(argv + optind, argv + argc);
    if (plan.job.scene.empty()) refuse("--scene is missing; see --help");
    if (access(plan.job.scene.c_str(), R_OK) != 0) refuse(plan.job.scene + ": " + strerror(errno));
    // Opens the output file before the work, so that a file that cannot be written is reported at once.
    const int file = open(options.output.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) refuse(options.output + ": " + strerror(errno));
    close(file);
    if (plan.tile_width == 0) choose_tiles(&plan);
    plan.tile_width = std::min(plan.tile_width, plan.job.width);
    plan.tile_height = std::min(plan.tile_height, plan.job.height);
    return options;
}

// Renders the whole picture with one povray and one thread; returns the seconds.
double render_baseline(const Job& job, Picture* picture) {
    Povray povray;
    std::vector<uint8_t> pixels;
    Cost cost;
    const Tile all{0, 0, job.width, job.height};
    if (!povray.start(job, all, 1) || !povray.finish(&pixels, &cost)) refuse(povray.error());
    picture->paste(all, pixels.data());
    return cost.wall;
}

void write_json(const Options& options, const Outcome& o, double baseline, const Difference* difference) {
    FILE* file = fopen(options.json.c_str(), "w");
    if (!file) refuse(options.json + ": " + strerror(errno));
    fprintf(file,
            "{\"tiles\": %d, \"spawned\": %d, \"lost\": %d, \"let_go\": %d, \"seconds\": %.6f, "
            "\"spawning\": %.6f, "
            "\"disconnecting\": %.6f, \"tile_cpu\": %.6f, \"baseline\": %.6f, \"different_pixels\": %ld}\n",
            o.tiles, o.spawned, o.lost, o.let_go, o.elapsed, o.spawning, o.disconnecting, o.tile_cpu, baseline,
            difference ? long(difference->pixels) : -1);
    fclose(file);
}

void report(const Options& options, const Outcome& o, double baseline, const Difference* difference) {
    const Plan& plan = options.plan;
    printf("%s: %dx%d pixels in %.2f s, %d tiles of up to %dx%d\n", options.output.c_str(), plan.job.width, plan.job.height,
           o.elapsed, o.tiles, plan.tile_width, plan.tile_height);
    printf("workers: %d %s, %d released early, %d lost\n", o.spawned, plan.members ? "in the job" : "spawned", o.let_go,
           o.lost);
    if (baseline > 0) {
        printf("speed-up: %.2f over one povray call (measured: %.2f s)\n", baseline / o.elapsed, baseline);
    } else {
        printf("speed-up: %.2f over one worker (estimated: the tiles took %.2f s of processor time)\n", o.tile_cpu / o.elapsed,
               o.tile_cpu);
    }
    printf("%s: %.1f ms, %.2f %% of the time; per worker %.1f ms\n", plan.members ? "meeting" : "spawning", o.spawning * 1e3,
           100 * o.spawning / o.elapsed, o.spawning * 1e3 / std::max(o.spawned, 1));
    if (difference && difference->pixels == 0) {
        printf("the picture is the one povray makes, pixel for pixel\n");
    } else if (difference) {
        printf("%zu pixels differ from the picture povray makes, by up to %d of 255\n", difference->pixels,
               difference->largest);
    }
}

// Returns the exit code.
int coordinate(int argc, char** argv) {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const Options options = read_options(argc, argv, size - 1);
    const Job& job = options.plan.job;
    Picture expected(job.width, job.height), picture(job.width, job.height);
    const double baseline = options.baseline ? render_baseline(job, &expected) : 0;
    const Outcome outcome = Coordinator(options.plan, &picture).run();
    if (!outcome.error.empty()) {
        fprintf(stderr, "render-farm: %s\n", outcome.error.c_str());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    const std::string problem = picture.write_png(options.output);
    if (!problem.empty()) refuse(problem);
    Difference difference;
    if (options.baseline) difference = compare(picture, expected);
    const Difference* shown = options.baseline ? &difference : nullptr;
    report(options, outcome, baseline, shown);
    if (!options.json.empty()) write_json(options, outcome, baseline, shown);
    return difference.pixels == 0 ? 0 : 1;
}

}  // namespace
}  // namespace farm

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm parent = MPI_COMM_NULL;
    MPI_Comm_get_parent(&parent);
    int code = 0, rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const bool worker = argc > 1 && strcmp(argv[1], farm::kWorkerArgument) == 0;
    if (worker && parent != MPI_COMM_NULL) {
        farm::run_worker(parent);
    } else if (rank > 0) {
        farm::run_member();
    } else {
        code = farm::coordinate(argc, argv);
    }
    MPI_Finalize();
    return code;
}
