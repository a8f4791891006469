#include <string_view>

#include "file/system/open_file.h"

namespace starling::file {

namespace {

/// Prefixes that users of ROMIO write before names, and the driver here. File systems that need no other driver behave as posix does.
struct NamePrefix {
    std::string_view prefix, driver;
};
constexpr NamePrefix kPrefixes[] = {
    {"ufs:", "posix"},     {"posix:", "posix"}, {"nfs:", "nfs"},     {"xfs:", "posix"},
    {"lustre:", "lustre"}, {"gpfs:", "posix"},  {"panfs:", "posix"}, {"testfs:", "posix"},
};

}  // namespace

std::string split_prefix(std::string& name) {
    for (const NamePrefix& known : kPrefixes)
        if (name.starts_with(known.prefix)) {
            name.erase(0, known.prefix.size());
            return std::string(known.driver);
        }
    return {};
}

}  // namespace starling::file
