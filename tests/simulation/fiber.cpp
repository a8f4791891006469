#include "fiber.h"

#include <asm/prctl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace starling::simulation {

namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr size_t kStack = 2 << 20;
#else
constexpr size_t kStack = 512 << 10;
#endif
constexpr size_t kGuard = 4096;

#ifdef __SANITIZE_ADDRESS__
// AddressSanitizer finds the bounds of the stack in use in thread-local variables, which belong to the real thread or to the one at a
// fiber's thread pointer. So a stack is announced after the switch to it, once the variables are those of its thread; until then only the
// functions of this file run on it.
struct Stack {
    const void* bottom;
    size_t bytes;
    void** fake;  ///< place for AddressSanitizer's copies of variables while another stack is in use
};

const void* outer_bottom = nullptr;
size_t outer_bytes = 0;
void* outer_fake = nullptr;
Stack on_real_thread{nullptr, 0, &outer_fake};  ///< what the real thread's variables describe; no bottom: not a fiber's stack

/// Announces the stack to AddressSanitizer, in place of `before`.
void announce(const Stack& before, const Stack& now) {
    const void* bottom = nullptr;
    size_t bytes = 0;
    __sanitizer_start_switch_fiber(before.fake, now.bottom, now.bytes);
    __sanitizer_finish_switch_fiber(*now.fake, &bottom, &bytes);
    if (outer_bottom) return;
    outer_bottom = bottom;
    outer_bytes = bytes;
}
#endif

/// Makes this thread pointer the processor's: thread-local variables are at constant distances from it. Called directly before a switch of
/// stacks, since the compiler may keep addresses of such variables over any other call.
void set_thread_pointer(void* pointer) {
    static void* const own = __builtin_thread_pointer();  // the first call is enter(), on the real thread's stack
    static void* now = own;
    static const bool has_instruction = getauxval(AT_HWCAP2) >> 1 & 1;  // HWCAP2_FSGSBASE
    if (!pointer) pointer = own;
    if (std::exchange(now, pointer) == pointer) return;
    if (has_instruction) {
        asm volatile("wrfsbase %0" : : "r"(pointer) : "memory");
        return;
    }
    long result = SYS_arch_prctl;
    asm volatile("syscall" : "+a"(result) : "D"(long{ARCH_SET_FS}), "S"(pointer) : "rcx", "r11", "memory");
    if (result != 0) std::abort();
}

// A fiber that ends leaves functions that have not returned, whose variables the next stack at this address must not find guarded.
void forget_variables([[maybe_unused]] const void* bottom) {
#ifdef __SANITIZE_ADDRESS__
    __asan_unpoison_memory_region(bottom, kStack);
#endif
}

}  // namespace

// Saves the registers that a call must preserve on the current stack, and restores those saved on the other stack.
extern "C" void starling_simulation_switch(void** left, void* entered);
extern "C" void starling_simulation_begin();
asm(R"(
.text
.globl starling_simulation_switch
.hidden starling_simulation_switch
.type starling_simulation_switch, @function
starling_simulation_switch:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
.size starling_simulation_switch, . - starling_simulation_switch
.globl starling_simulation_begin
.hidden starling_simulation_begin
.type starling_simulation_begin, @function
starling_simulation_begin:
    .cfi_startproc
    .cfi_undefined rip
    mov %rbx, %rdi
    call *%rbp
    ud2
    .cfi_endproc
.size starling_simulation_begin, . - starling_simulation_begin
)");

Fiber::Fiber(void (*run)(void*), void* argument, void* thread_pointer)
    : run_(run), argument_(argument), thread_pointer_(thread_pointer) {
    void* const memory =
        mmap(nullptr, kGuard + kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, kGuard, PROT_NONE) != 0) {
        std::perror("simulation: a stack");
        std::abort();
    }
    memory_ = static_cast<std::byte*>(memory);
    // A state as if the fiber had left just before its first instruction. At a call the stack is aligned to 16 bytes.
    auto* top = reinterpret_cast<void**>(memory_ + kGuard + kStack);
    *--top = nullptr;
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(&starling_simulation_begin);
    *--top = reinterpret_cast<void*>(&Fiber::begin);  // rbp
    *--top = this;                                    // rbx
    for (int i = 0; i < 4; ++i) *--top = nullptr;     // r12 to r15
    inside_ = top;
}

Fiber::~Fiber() {
    forget_variables(memory_ + kGuard);
    munmap(memory_, kGuard + kStack);
}

void Fiber::begin(Fiber* self) {
    self->arrive();
    self->run_(self->argument_);
    std::abort();
}

/// Called on the fiber after each switch to it. The thread at a fiber's own thread pointer runs on no other fiber.
void Fiber::arrive() {
#ifdef __SANITIZE_ADDRESS__
    const Stack mine{memory_ + kGuard, kStack, &fake_inside_};
    if (thread_pointer_) {
        static void* unused;  // the real thread behind the pointer does not run again
        if (!std::exchange(announced_, true)) announce({nullptr, 0, &unused}, mine);
    } else if (on_real_thread.bottom != mine.bottom) {
        announce(std::exchange(on_real_thread, mine), mine);
    }
#endif
}

void Fiber::enter() {
    set_thread_pointer(thread_pointer_);
    starling_simulation_switch(&outside_, inside_);
#ifdef __SANITIZE_ADDRESS__
    const Stack outer{outer_bottom, outer_bytes, &outer_fake};
    if (on_real_thread.bottom) announce(std::exchange(on_real_thread, {nullptr, 0, &outer_fake}), outer);
#endif
}

void Fiber::leave() {
    set_thread_pointer(nullptr);
    starling_simulation_switch(&inside_, outside_);
    arrive();
}

void Fiber::leave_to(Fiber& other) {
    other.outside_ = outside_;
    set_thread_pointer(other.thread_pointer_);
    starling_simulation_switch(&inside_, other.inside_);
    arrive();
}

}  // namespace starling::simulation
