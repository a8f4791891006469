// Profile files (docs/profile.md), read strictly: what is malformed is refused with one sentence that says which file and line,
// and why. Kinds of lines and members that are not known are passed over, so that a later version may add some.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "run.h"

namespace starling::analysis {

/// Takes files line by line, and gives what they say together. After a Refusal it is of no more use.
class Reader {
  public:
    Reader();
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    void begin_file(const std::string& name);
    void take(std::string_view line);
    void end_file();
    Run finish();

  private:
    struct Implementation;
    std::unique_ptr<Implementation> all_;
};

/// All of them, as one run.
Run read_profiles(const std::vector<std::string>& files);

}  // namespace starling::analysis
