// Reads profile files (docs/profile.md) strictly: malformed content causes a Refusal with file, line and reason. Unknown kinds of lines and
// unknown members are ignored, so that later versions may add some.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "run.h"

namespace starling::analysis {

/// Reads files line by line and combines them to one run. Must not be used after it has thrown a Refusal.
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

/// Reads all files as one run.
Run read_profiles(const std::vector<std::string>& files);

}  // namespace starling::analysis
