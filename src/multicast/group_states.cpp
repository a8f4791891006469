#include "multicast/group_states.h"

namespace starling::multicast {

namespace {

using enum GroupState;

// clang-format off
constexpr GroupStep kTable[kStates][kEvents] = {
    //             want                joined             refused       all_answer            silence                        unready                abandoned                        unwanted                drained
    /* absent   */ {{creating, kJoin}, {absent, kLeave},  {absent, 0},  {absent, 0},          {absent, 0},                   {absent, 0},           {absent, 0},                   {absent, 0},            {absent, 0}},
    /* creating */ {{creating, 0},     {testing, kTest},  {absent, kTellUnready}, {creating, 0}, {absent, kTellUnready},     {creating, 0},         {absent, kTellUnready},        {absent, 0},            {creating, 0}},
    /* testing  */ {{testing, 0},      {testing, 0},      {absent, kTellUnready | kLeave}, {ready, kTellReady}, {leaving, kTellUnready}, {leaving, 0}, {leaving, kTellUnready},  {leaving, 0},           {testing, 0}},
    /* ready    */ {{ready, 0},        {ready, 0},        {leaving, kTellUnready}, {ready, 0}, {ready, 0},                   {leaving, 0},          {leaving, kTellUnready},       {leaving, 0},           {ready, 0}},
    /* leaving  */ {{leaving, 0},      {leaving, 0},      {leaving, 0}, {leaving, 0},         {leaving, 0},                  {leaving, 0},          {leaving, 0},                  {leaving, 0},           {absent, kLeave}},
};
// clang-format on

}  // namespace

GroupStep step(GroupState state, GroupEvent event) { return kTable[static_cast<int>(state)][static_cast<int>(event)]; }

const char* name_of(GroupState state) {
    constexpr const char* kNames[kStates] = {"absent", "creating", "testing", "ready", "leaving"};
    return kNames[static_cast<int>(state)];
}

}  // namespace starling::multicast
