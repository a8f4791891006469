// The interface between the library and its PMIx plugin. The plugin is the only part of Starling that needs OpenPMIx's library; it is
// loaded only into processes that a PMIx manager has started. Plain C, since each side may use a different C++ library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling::bootstrap {

inline constexpr uint32_t kPmixPluginVersion = 1;
inline constexpr const char* kPmixPluginSymbol = "starling_pmix_plugin";
inline constexpr const char* kPmixPluginFile = "libstarling_pmix.so";

struct PmixJob {
    char name[256];  ///< the PMIx namespace
    uint32_t rank, size, appnum, universe_size;
    /// One "name:rank,rank,…;" per host, from malloc; the caller frees it.
    char* hosts;
};

using PmixFound = void (*)(void* context, uint32_t rank, const char* value, bool later);

/// The plugin's functions. Each returns 0, or another value with an error text in `problem`.
struct PmixPlugin {
    uint32_t version;
    int (*start)(PmixJob* job, char* problem, size_t problem_size);
    int (*put)(const char* key, const char* value, char* problem, size_t problem_size);
    int (*commit)(char* problem, size_t problem_size);
    /// Requests a value. `found` is called once, on PMIx's thread, with the value or nullptr; `later`: a later call may succeed.
    int (*get)(uint32_t rank, const char* key, PmixFound found, void* context, char* problem, size_t problem_size);
    /// Waits for the answers to all get()s, a few seconds at most.
    int (*leave)(char* problem, size_t problem_size);
    void (*abort)(int code, const char* text);
};

}  // namespace starling::bootstrap
