#include "profile/python_frames.h"

#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/state.h"
#include "base/symbol.h"
#include "profile/python_site.h"

namespace starling::profile {

namespace {

constexpr uint64_t kLongestName = 4096;  ///< limit of the length of a file's or function's name, bytes
/// The lowest _PyInterpreterFrame::owner of a frame that stands for C code; 3.14 has two such values.
constexpr uint8_t kOwnedByC = 3;
constexpr uint64_t kTags = 7;  ///< bits of a reference that are not of its address; set from 3.14 on

/// Offsets of members, bytes; those of a frame are in _PyInterpreterFrame, those of code in PyCodeObject.
struct FrameLayout {
    std::string_view version;
    bool has_c_frame = false;           ///< whether `current` is reached through PyThreadState::cframe
    uint64_t c_frame = 0, current = 0;  ///< of PyThreadState, and of what it points to if has_c_frame
    uint64_t code = 0, previous = 0, instruction = 0, owner = 0;
    uint64_t file = 0, name = 0, instructions = 0;
    uint64_t text = 0;  ///< of the characters of a string that has only ASCII characters
};

constexpr uint64_t kType = 8;     // PyObject::ob_type
constexpr uint64_t kLength = 16;  // PyASCIIObject::length
constexpr FrameLayout kLayouts[] = {
    {"3.11.", true, 56, 8, 32, 48, 56, 69, 112, 120, 184, 48},
    {"3.12.", true, 56, 0, 0, 8, 56, 70, 112, 120, 192, 40},
    {"3.13.", false, 0, 72, 0, 8, 56, 70, 112, 120, 200, 40},
    {"3.14.", false, 0, 72, 0, 8, 56, 74, 112, 120, 208, 40},
};

struct PythonFrameReader {
    const FrameLayout* layout = nullptr;
    const void* code_type = nullptr;
    int (*line_of)(void* code, int offset) = nullptr;  ///< reads only the code object, which does not change
};

bool is_free_threaded(std::string_view version) { return version.find("free-threading") != version.npos; }

PythonFrameReader find_reader() {
    PythonFrameReader reader;
    const char* (*version_function)() = nullptr;
    int (*line_of)(void*, int) = nullptr;
    if (!find_symbol(RTLD_DEFAULT, "Py_GetVersion", version_function) ||
        !find_symbol(RTLD_DEFAULT, "PyCode_Addr2Line", line_of))
        return reader;
    const std::string_view version = version_function();
    for (const FrameLayout& layout : kLayouts)
        if (version.starts_with(layout.version) && !is_free_threaded(version)) reader.layout = &layout;
    reader.line_of = line_of;
    reader.code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
    return reader;
}

/// The reader for this process's interpreter.
const PythonFrameReader& reader() {
    STARLING_STATE static PythonFrameReader found{};
    STARLING_STATE static std::atomic<int8_t> state = 0;  // 1: being searched, 2: found or not
    int8_t none = 0;
    if (state.load(std::memory_order_acquire) == 0 && state.compare_exchange_strong(none, 1)) {
        found = find_reader();
        state.store(2, std::memory_order_release);
    }
    STARLING_STATE static const PythonFrameReader nothing{};
    return state.load(std::memory_order_acquire) == 2 ? found : nothing;
}

/// Reads this process's memory. After a failed read all values are 0.
class MemoryReader {
  public:
    explicit MemoryReader(MemoryAccess access) : checks_(access == MemoryAccess::checked) {}

    bool read(uint64_t address, void* out, size_t bytes) {
        if (failed_ || address < kLowest) return fail(out, bytes);
        if (!checks_) {
            std::memcpy(out, reinterpret_cast<const void*>(address), bytes);
            return true;
        }
        const iovec here{out, bytes}, there{reinterpret_cast<void*>(address), bytes};
        return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes) || fail(out, bytes);
    }
    template <class T = uint64_t>
    T at(uint64_t address) {
        T value{};
        read(address, &value, sizeof value);
        return value;
    }
    bool failed() const { return failed_; }

  private:
    static constexpr uint64_t kLowest = 4096;  // below are null pointers with an offset
    bool fail(void* out, size_t bytes) {
        std::memset(out, 0, bytes);
        failed_ = true;
        return false;
    }
    bool checks_, failed_ = false;
};

/// Returns the text of a string object; empty if it has other than ASCII characters: then the bytes at that place are numbers.
std::string text_of(MemoryReader& memory, uint64_t object, uint64_t offset) {
    const auto length = memory.at(object + kLength);
    if (length == 0 || length > kLongestName) return {};
    std::string text(length, '\0');
    if (!memory.read(object + offset, text.data(), length)) return {};
    const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return c > 0; });
    return plain ? text : std::string();
}

}  // namespace

PythonPlace read_innermost_place(const void* thread_state, MemoryAccess access) {
    const PythonFrameReader& python = reader();
    if (!python.layout || !python.code_type) return {};
    const FrameLayout& layout = *python.layout;
    MemoryReader memory(access);
    auto state = reinterpret_cast<uint64_t>(thread_state);
    if (layout.has_c_frame) state = memory.at(state + layout.c_frame);
    PythonPlace first;
    uint64_t frame = memory.at(state + layout.current);
    for (int i = 0; i < kMostPythonFrames && frame != 0; ++i, frame = memory.at(frame + layout.previous)) {
        if (memory.at<uint8_t>(frame + layout.owner) >= kOwnedByC) continue;
        const uint64_t code = memory.at(frame + layout.code) & ~kTags;
        if (memory.at(code + kType) != reinterpret_cast<uint64_t>(python.code_type)) return {};
        PythonPlace place;
        place.file = text_of(memory, memory.at(code + layout.file), layout.text);
        place.function = text_of(memory, memory.at(code + layout.name), layout.text);
        const uint64_t offset = memory.at(frame + layout.instruction) - (code + layout.instructions);
        if (memory.failed() || place.file.empty() || place.function.empty() || offset > INT32_MAX) return {};
        place.line = python.line_of(reinterpret_cast<void*>(code), static_cast<int>(offset));
        if (!is_in_binding(place.file)) return place;
        if (first.file.empty()) first = std::move(place);
    }
    return memory.failed() ? PythonPlace() : first;
}

}  // namespace starling::profile
