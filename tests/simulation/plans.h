// Plans and marks of phases that make trouble, drawn from the seed: peers that are never talked to, the rank itself, ranks that there
// are not, priorities that are equal or as high as can be, another plan for each rank, answers that come late or are garbled.
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
    /// STARLING_PLAN_COLLECTIVES: algorithms for some calls on communicators of up to `ranks`, whether they can serve them or not.
    std::string collectives(uint32_t ranks) const;
    /// The phase that `rank` begins before this step; empty: none. Mostly the same for all ranks.
    std::string mark(uint32_t step, uint32_t rank) const;
    /// What the daemon answers a rank.
    std::string reply(uint32_t rank, uint32_t ranks) const;

  private:
    uint64_t seed_;
    const char* source_;
    uint32_t every_ = 0;  ///< steps between marks; 0: there are none
    uint32_t phases_ = 1;
    bool replaces_soon_ = true;
    bool honest_ = true;  ///< partners are ranks of the job, and the two of a pair rank each other alike
};

}  // namespace starling::simulation
