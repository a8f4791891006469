// Finds functions and source lines for call sites of a profile, in files that the profiled job has used.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace starling::launch {

/// A program or library, as a profile names it.
struct ModuleFile {
    std::string path;
    std::string build_id;  ///< as hexadecimal digits; empty: the file has none
};

/// Opens each file once, and keeps it open. Never downloads debug information.
class Symbolizer {
  public:
    /// `trusts_path`: a module without build id is taken to be the file at its path, because the job has just ended on this machine.
    explicit Symbolizer(bool trusts_path);
    ~Symbolizer();
    Symbolizer(const Symbolizer&) = delete;
    Symbolizer& operator=(const Symbolizer&) = delete;

    /// Returns text such as "heat2d.c:118 (exchange)" for the call that returns to `offset`, counted from the module's first byte in
    /// memory. Without debug information the text is "exchange (heat2d)". Returns an empty string if nothing is known, or if neither the file
    /// at the path nor the system's separate debug information has the module's build id.
    std::string label(const ModuleFile& module, uint64_t offset);

  private:
    struct OpenModule;
    OpenModule* open(const ModuleFile& module);

    const bool trusts_path_;

    std::map<std::pair<std::string, std::string>, std::unique_ptr<OpenModule>> modules_;  ///< by path and build id
};

}  // namespace starling::launch
