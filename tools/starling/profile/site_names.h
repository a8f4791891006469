// The sources of a file's call sites: from its "site" lines, which mpiexec writes at the end of the job, or else from the program and
// libraries on this machine, if their build ids are those of the file's "module" lines.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "fields.h"
#include "launch/process/symbolizer.h"

namespace starling::analysis {

class SiteNames {
  public:
    /// Takes a line of kind "module" or "site".
    void take(const Json& object);
    /// Returns text such as "heat2d.c:118 (exchange)"; the site itself if its source is not known.
    std::string name_of(const std::string& site);

  private:
    std::unordered_map<std::string, std::string> sources_;         ///< by site
    std::unordered_map<std::string, launch::ModuleFile> modules_;  ///< by name; without a path if two have the name
    std::unique_ptr<launch::Symbolizer> symbolizer_;               ///< created on the first use
};

}  // namespace starling::analysis
