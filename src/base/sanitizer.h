// Annotations of this library for ThreadSanitizer. Empty in other builds.
#pragma once

#ifdef __SANITIZE_THREAD__
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace starling {

/// A scope in which a thread accesses the program's memory on behalf of another process. (Elsewhere that process accesses it directly or by
/// a device.) The program orders its own accesses with these through messages of the other process, which the sanitizer does not see.
class AccessForOthers {
  public:
#ifdef __SANITIZE_THREAD__
    AccessForOthers() {
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    }
    ~AccessForOthers() {
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    }
#else
    AccessForOthers() {}
#endif
    AccessForOthers(const AccessForOthers&) = delete;
    AccessForOthers& operator=(const AccessForOthers&) = delete;
};

}  // namespace starling
