// Difficult plans and phase marks, drawn from the seed. Plans name peers without traffic, the rank itself, or nonexistent ranks; priorities
// are equal or maximal; each rank has another plan; daemons' answers are late or garbled.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "random.h"

namespace starling::simulation {

class Plans {
  public:
    explicit Plans(uint64_t seed);

    bool are_used() const { return every_ != 0; }
    const char* source() const { return source_; }                                ///< STARLING_PLAN
    const char* replace_messages() const { return replaces_soon_ ? "1" : "64"; }  ///< STARLING_REPLACE_MESSAGES
    /// Returns the text of STARLING_PLAN_COLLECTIVES: algorithms for some calls on communicators of up to `ranks`, whether or not the
    /// algorithms support them.
    std::string collectives(uint32_t ranks) const;
    /// Returns the phase that `rank` begins before this step; empty: none. Mostly the same on all ranks.
    std::string mark(uint32_t step, uint32_t rank) const;
    /// Returns the daemon's answer to a rank.
    std::string reply(uint32_t rank, uint32_t ranks) const;

  private:
    uint64_t seed_;
    const char* source_;
    uint32_t every_ = 0;  ///< steps between phase marks; 0: no marks
    uint32_t phases_ = 1;
    bool replaces_soon_ = true;
    bool honest_ = true;  ///< whether partners are ranks of the job, and both ranks of a pair give each other equal priority
};

}  // namespace starling::simulation
