#include "collective/core/frame_pool.h"

#include <new>

#include "base/kept_memory.h"
#include "base/state.h"

namespace starling::collective {

namespace {

// Frames are pooled in size classes, in steps of 256 bytes. Coroutine frames of the algorithms take 0.5 to 2.5 KB. Frames larger than the
// largest class are allocated by malloc.
constexpr std::size_t kClassBytes = 256;
constexpr std::size_t kClasses = 16;

struct FreeFrame {
    FreeFrame* next;
};

STARLING_STATE FreeFrame* free_frames[kClasses] = {};
STARLING_STATE std::size_t live = 0;

std::size_t class_of(std::size_t bytes) { return (bytes - 1) / kClassBytes; }

}  // namespace

void* allocate_frame(std::size_t bytes) {
    const std::size_t size_class = class_of(bytes);
    void* frame;
    if (size_class < kClasses && free_frames[size_class]) {
        frame = free_frames[size_class];
        free_frames[size_class] = free_frames[size_class]->next;
    } else {
        frame = ::operator new(size_class < kClasses ? (size_class + 1) * kClassBytes : bytes);
    }
    ++live;
    KeptMemory::Use::begin();
    return frame;
}

void release_frame(void* frame, std::size_t bytes) noexcept {
    --live;
    KeptMemory::Use::end();
    const std::size_t size_class = class_of(bytes);
    if (size_class >= kClasses) {
        ::operator delete(frame);
        return;
    }
    auto* free_frame = static_cast<FreeFrame*>(frame);
    free_frame->next = free_frames[size_class];
    free_frames[size_class] = free_frame;
}

std::size_t live_frames() { return live; }

}  // namespace starling::collective
