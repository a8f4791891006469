#pragma once

#include "picture.h"
#include "povray.h"

namespace farm {

/// What coordinator and worker say to each other over the inter-communicator between them; each has one
/// process, rank 0, on its side. Both run the same program on the same kind of machine, so plain structs go
/// as bytes.
///
///   worker → coordinator   kReady    pid of the worker (once)
///   coordinator → worker   kJob      Job::pack() (once)
///   coordinator → worker   kOrder    Order, one for the first and one for every result: the worker may
///   wait for it worker → coordinator   kResult   ResultHeader, then the pixels of the tile or the text of
///   an error
enum Tag : int { kReady = 1, kJob, kOrder, kResult };

struct Order {
    enum Kind : int {
        kRender,   ///< render this tile
        kNothing,  ///< no tile now: finish what you have; another order comes when there is more
        kLeave,    ///< disconnect and end (sent only to a worker that has no tile)
    };
    int kind = kNothing;
    int tile_number = -1;
    Tile tile;
};

struct ResultHeader {
    int tile_number = -1;
    int failed = 0;  ///< 0: pixels follow; 1: the text of an error follows
    int length = 0;  ///< bytes that follow
    Cost cost;
};

/// Texts of errors are cut to this length.
inline constexpr size_t kMaxErrorText = 4000;

/// Tag of MPI_Intercomm_create between the coordinator and a member of its job.
inline constexpr int kMeetingTag = 5;

/// The argument that makes the program a worker.
inline constexpr const char* kWorkerArgument = "--worker";

}  // namespace farm
