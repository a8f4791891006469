// Finds the source lines of a profile's call sites when the job has ended, while the files are those that it has used: so a profile can be
// read on another machine, and after the program has changed.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "launch/process/symbolizer.h"

namespace starling::launch {

/// Collects the call sites in the lines of a profile.
class ProfileSites {
  public:
    /// Takes whole lines.
    void take(std::string_view lines);
    /// Returns a "site" line for each call site whose source is known. Files with much debug information take a second.
    std::string lines() const;

  private:
    struct NamedModule {
        ModuleFile file;
        bool is_ambiguous = false;      ///< two modules of the job have this name
        std::set<std::string> offsets;  ///< offsets of the call sites, as hexadecimal digits
    };
    void take_module(std::string_view line);
    void take_offsets(std::string_view line);

    std::map<std::string, NamedModule, std::less<>> modules_;  ///< by name
};

}  // namespace starling::launch
