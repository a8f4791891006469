#include "profile/python_site.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/mutex.h"
#include "base/state.h"
#include "base/symbol.h"
#include "profile/python_frames.h"

namespace starling::profile {

namespace {

using Object = void;
constexpr size_t kMostSites = 65536;  ///< limit of the texts, for programs that create code while they run

/// The functions of the interpreter. All but the first two are in its stable interface or in every version from 3.9 on.
struct Interpreter {
    Object* (*current_state_checked)() =
        nullptr;  ///< the thread state that holds the lock; may be another thread's before 3.12
    Object* (*first_interpreter)() = nullptr;
    Object* (*next_interpreter)(Object*) = nullptr;
    Object* (*first_state)(Object*) = nullptr;
    Object* (*next_state)(Object*) = nullptr;
    Object* (*own_state)() = nullptr;
    int (*is_initialized)() = nullptr;
    int (*acquire)() = nullptr;
    void (*release)(int) = nullptr;
    int (*collector_off)() = nullptr;
    int (*collector_on)() = nullptr;
    Object* (*frame)() = nullptr;
    Object* (*frame_back)(Object*) = nullptr;
    Object* (*frame_code)(Object*) = nullptr;
    int (*frame_line)(Object*) = nullptr;
    Object* (*attribute)(Object*, const char*) = nullptr;
    const char* (*text)(Object*, ptrdiff_t*) = nullptr;
    void (*forget)(Object*) = nullptr;
    void (*clear_error)() = nullptr;
};

bool load(Interpreter& python) {
    return (find_symbol(RTLD_DEFAULT, "PyThreadState_GetUnchecked", python.current_state_checked) ||
            find_symbol(RTLD_DEFAULT, "_PyThreadState_UncheckedGet", python.current_state_checked)) &&
           find_symbol(RTLD_DEFAULT, "PyInterpreterState_Head", python.first_interpreter) &&
           find_symbol(RTLD_DEFAULT, "PyInterpreterState_Next", python.next_interpreter) &&
           find_symbol(RTLD_DEFAULT, "PyInterpreterState_ThreadHead", python.first_state) &&
           find_symbol(RTLD_DEFAULT, "PyThreadState_Next", python.next_state) &&
           find_symbol(RTLD_DEFAULT, "PyGILState_GetThisThreadState", python.own_state) &&
           find_symbol(RTLD_DEFAULT, "Py_IsInitialized", python.is_initialized) &&
           find_symbol(RTLD_DEFAULT, "PyGILState_Ensure", python.acquire) &&
           find_symbol(RTLD_DEFAULT, "PyGILState_Release", python.release) &&
           find_symbol(RTLD_DEFAULT, "PyGC_Disable", python.collector_off) &&
           find_symbol(RTLD_DEFAULT, "PyGC_Enable", python.collector_on) &&
           find_symbol(RTLD_DEFAULT, "PyEval_GetFrame", python.frame) &&
           find_symbol(RTLD_DEFAULT, "PyFrame_GetBack", python.frame_back) &&
           find_symbol(RTLD_DEFAULT, "PyFrame_GetCode", python.frame_code) &&
           find_symbol(RTLD_DEFAULT, "PyFrame_GetLineNumber", python.frame_line) &&
           find_symbol(RTLD_DEFAULT, "PyObject_GetAttrString", python.attribute) &&
           find_symbol(RTLD_DEFAULT, "PyUnicode_AsUTF8AndSize", python.text) &&
           find_symbol(RTLD_DEFAULT, "Py_DecRef", python.forget) &&
           find_symbol(RTLD_DEFAULT, "PyErr_Clear", python.clear_error);
}

STARLING_STATE Mutex loading;

const Interpreter* interpreter() {
    STARLING_STATE static Interpreter python{};
    STARLING_STATE static std::atomic<int8_t> loaded = 0;  // 1: yes, -1: there is none
    int8_t state = loaded.load(std::memory_order_acquire);
    if (state == 0) {
        Interpreter fresh;
        state = load(fresh) ? 1 : -1;
        const MutexGuard guard(loading);
        if (loaded.load(std::memory_order_relaxed) == 0) python = fresh;
        loaded.store(state, std::memory_order_release);
    }
    return state > 0 ? &python : nullptr;
}

std::string text_attribute(const Interpreter& python, Object* object, const char* name) {
    Object* const value = python.attribute(object, name);
    const char* const text = value ? python.text(value, nullptr) : nullptr;
    std::string copy(text ? text : "");
    if (!text) python.clear_error();
    if (value) python.forget(value);
    return copy;
}

PythonPlace place_of(const Interpreter& python, Object* frame) {
    PythonPlace place;
    place.line = python.frame_line(frame);
    if (Object* const code = python.frame_code(frame)) {
        place.file = text_attribute(python, code, "co_filename");
        place.function = text_attribute(python, code, "co_name");
        python.forget(code);
    }
    return place;
}

/// Returns the innermost place outside of mpi4py; if all frames are mpi4py's, the innermost one. Requires the interpreter's lock.
PythonPlace innermost_place(const Interpreter& python) {
    Object* frame = python.frame();  // borrowed
    if (!frame) return {};
    const PythonPlace first = place_of(python, frame);
    PythonPlace place = first;
    bool owned = false;
    for (int i = 0; i < kMostPythonFrames && frame; ++i) {
        if (!is_in_binding(place.file)) break;
        Object* const outer = python.frame_back(frame);
        if (owned) python.forget(frame);
        owned = true;
        frame = outer;
        place = frame ? place_of(python, frame) : first;
    }
    if (owned && frame) python.forget(frame);
    return place;
}

/// Returns whether a call that acquires the interpreter's lock returns at once: no other thread can hold it.
bool is_alone(const Interpreter& python) {
    Object* const main = python.first_interpreter();
    if (!main || python.next_interpreter(main)) return false;
    Object* const state = python.first_state(main);
    return state && state == python.own_state() && !python.next_state(state);
}

/// The texts that were returned. An element's address stays the same.
struct Labels {
    Mutex mutex;
    std::unordered_set<std::string> texts;
    std::unordered_set<const void*> addresses;
};
STARLING_STATE Lazy<Labels> labels;
STARLING_STATE std::atomic<bool> any_label = false;

const char* keep(const PythonPlace& place) {
    Labels& all = labels.get();
    const std::string text =
        place.file.substr(place.file.rfind('/') + 1) + ':' + std::to_string(place.line) + " (" + place.function + ')';
    const MutexGuard guard(all.mutex);
    if (all.texts.size() >= kMostSites && !all.texts.contains(text)) return nullptr;
    const char* const address = all.texts.insert(text).first->c_str();
    all.addresses.insert(address);
    any_label.store(true, std::memory_order_relaxed);
    return address;
}

/// Whether read_innermost_place() returns what the interpreter's functions return: 0 not known yet, 1 yes, -1 no.
STARLING_STATE std::atomic<int8_t> frames_readable = 0;

void compare(const PythonPlace& place, const Object* state) {
    if (frames_readable.load(std::memory_order_relaxed) != 0 || place.file.empty()) return;
    const bool equal = read_innermost_place(state, MemoryAccess::checked) == place;
    frames_readable.store(equal ? 1 : -1, std::memory_order_relaxed);
}

}  // namespace

const char* python_site() {
    const Interpreter* const python = interpreter();
    if (!python || !python->is_initialized() || !python->own_state()) return nullptr;
    Object* const state = python->own_state();
    const bool holds_lock = python->current_state_checked() == state;
    if (!holds_lock && !is_alone(*python)) {
        if (frames_readable.load(std::memory_order_relaxed) <= 0) return nullptr;
        const PythonPlace place = read_innermost_place(state, MemoryAccess::direct);
        return place.file.empty() ? nullptr : keep(place);
    }
    const int held = python->acquire();
    // A frame object is created, which must not start the garbage collector: the collector may run code of the program.
    const int collected = python->collector_off();
    const PythonPlace place = innermost_place(*python);
    if (collected) python->collector_on();
    python->release(held);
    compare(place, state);
    return place.file.empty() ? nullptr : keep(place);
}

bool is_in_binding(std::string_view path) { return path.find("/mpi4py/") != path.npos || path.find("/shmem4py/") != path.npos; }

bool is_python_site(const void* site) {
    if (!any_label.load(std::memory_order_relaxed)) return false;
    Labels& all = labels.get();
    const MutexGuard guard(all.mutex);
    return all.addresses.contains(site);
}

}  // namespace starling::profile
