// Reads frames that are laid out as in Python 3.14. Machines for tests have an older Python, whose frames tests/profile reads.
#include "profile/python_frames.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string_view>

// The interpreter's functions and objects that the reader looks up.
#pragma GCC visibility push(default)
extern "C" {
extern const char PyCode_Type[];
const char PyCode_Type[416] = {};
const char* Py_GetVersion();
const char* Py_GetVersion() { return "3.14.10 (main, Oct 26 2026, 15:12:11) [GCC 16.2.0]"; }
int PyCode_Addr2Line(void* code, int offset);
int PyCode_Addr2Line(void*, int offset) { return 10 + offset / 2; }
}
#pragma GCC visibility pop

namespace starling::profile {
namespace {

/// An object of the interpreter; `members` are at the offsets that Python 3.14.10 reports in _PyRuntime.debug_offsets.
struct PythonObject {
    alignas(16) unsigned char members[512] = {};

    template <class T>
    void set(size_t offset, T value) {
        std::memcpy(members + offset, &value, sizeof value);
    }
    uint64_t address() const { return reinterpret_cast<uint64_t>(members); }
};

struct Text : PythonObject {
    explicit Text(std::string_view text) {
        set<uint64_t>(16, text.size());
        std::memcpy(members + 40, text.data(), text.size());
    }
};

/// A frame and its code object.
struct Frame {
    Frame(std::string_view path, std::string_view called, int instruction) : file(path), name(called) {
        code.set(8, reinterpret_cast<uint64_t>(PyCode_Type));
        code.set(112, file.address());
        code.set(120, name.address());
        frame.set<uint64_t>(0, code.address() | 1);  // a borrowed reference
        frame.set<uint64_t>(56, code.address() + 208 + 2 * instruction);
    }
    Text file, name;
    PythonObject code, frame;
};

struct PythonFrames : testing::Test {
    PythonFrames() {
        state.set(72, inner.frame.address());
        inner.frame.set(8, entry.address());
        entry.set(8, outer.frame.address());
        entry.set<uint8_t>(74, 3);  // the interpreter's entry, without code
    }
    PythonPlace place() const { return read_innermost_place(state.members, MemoryAccess::checked); }

    PythonObject state, entry;
    Frame inner{"/lib/mpi4py/futures/pool.py", "submit", 4}, outer{"/home/user/work.py", "step", 7};
};

TEST_F(PythonFrames, TheLineOutsideOfTheBindingIsFound) { EXPECT_EQ(place(), (PythonPlace{"/home/user/work.py", "step", 17})); }

TEST_F(PythonFrames, TheInnermostLineIsFoundIfAllAreTheBindings) {
    entry.set<uint64_t>(8, 0);
    EXPECT_EQ(place(), (PythonPlace{"/lib/mpi4py/futures/pool.py", "submit", 14}));
}

TEST_F(PythonFrames, AFrameWithoutCodeHasNoPlace) {
    entry.set<uint8_t>(74, 0);
    EXPECT_EQ(place(), PythonPlace());
}

TEST_F(PythonFrames, AnInvalidAddressHasNoPlace) {
    inner.frame.set<uint64_t>(8, 8);
    EXPECT_EQ(place(), PythonPlace());
}

}  // namespace
}  // namespace starling::profile
