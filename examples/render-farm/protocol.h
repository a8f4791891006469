#pragma once

#include "picture.h"
#include "povray.h"

namespace farm {

/// The messages between coordinator and worker over their inter-communicator, in which each side has one process, rank 0. Both run the same
/// program on the same kind of machine, so structs are sent as bytes.
///
///   worker → coordinator   kReady    pid of the worker (once)
///   coordinator → worker   kJob      Job::pack() (once)
///   coordinator → worker   kOrder    Order: one at the begin and one after every result; the worker may wait for it
///   worker → coordinator   kResult   ResultHeader, then the pixels of the tile or an error message
enum Tag : int { kReady = 1, kJob, kOrder, kResult };

struct Order {
    enum Kind : int {
        kRender,   ///< render this tile
        kNothing,  ///< no tile now: finish the current ones; another order follows when there are more
        kLeave,    ///< disconnect and end (sent only to a worker without a tile)
    };
    int kind = kNothing;
    int tile_number = -1;
    Tile tile;
};

struct ResultHeader {
    int tile_number = -1;
    int failed = 0;  ///< 0: the message contains pixels; 1: it contains an error text
    int length = 0;  ///< number of bytes that follow the header
    Cost cost;
};

/// Error messages are cut to this length.
inline constexpr size_t kMaxErrorText = 4000;

/// Tag of MPI_Intercomm_create between the coordinator and a member of its job.
inline constexpr int kMeetingTag = 5;

/// The argument that makes the program a worker.
inline constexpr const char* kWorkerArgument = "--worker";

}  // namespace farm
