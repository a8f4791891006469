// The system as simulated processes see it: these functions replace libc's. The world serves calls of simulated processes; any other call
// passes through to libc. This file has time, cores, identity, memory and interfaces; sockets are in sockets.cpp.
#include "system.h"

#include <fcntl.h>
#include <getopt.h>
#include <ifaddrs.h>
#include <link.h>
#include <linux/futex.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "daemon.h"
#include "devices.h"
#include "features.h"
#include "files.h"

using namespace starling::simulation;

namespace {

/// Returns the time at which a futex wait ends. A wait with a bitset has an absolute limit.
uint64_t end_of_sleep(int operation, const timespec* limit) {
    if (!limit) return UINT64_MAX;
    return operation == FUTEX_WAIT ? world()->now + ns_of(*limit) : ns_of(*limit);
}

long futex(Process& me, void* word, int operation, uint32_t value, const timespec* limit, uint32_t bits) {
    const bool for_some =
        (operation & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET || (operation & FUTEX_CMD_MASK) == FUTEX_WAKE_BITSET;
    if (!for_some) bits = FUTEX_BITSET_MATCH_ANY;
    switch (operation & FUTEX_CMD_MASK) {
        case FUTEX_WAIT:
        case FUTEX_WAIT_BITSET:
            if (*static_cast<volatile uint32_t*>(word) != value) return after(failed(EAGAIN));
            if (!me.fiber) return failed(EAGAIN);
            me.futex = word;
            me.futex_bits = bits;
            world()->note("sleep", me.number);
            return world()->sleep_until(end_of_sleep(operation & FUTEX_CMD_MASK, limit)) ? 0 : failed(ETIMEDOUT);
        case FUTEX_WAKE:
        case FUTEX_WAKE_BITSET:
            return after(world()->wake_futex(word, bits), prices().call + prices().of.system_futex_wake);
        default:
            fail_run("futex operation %d is not simulated", operation);
    }
}

cpu_set_t cores_of_host() {
    cpu_set_t all;
    CPU_ZERO(&all);
    for (uint32_t cpu = 0; cpu < daemons()->cores(); ++cpu) CPU_SET(cpu, &all);
    return all;
}

/// Returns the real process whose memory holds the simulated process's; -1: that process has ended. All simulated processes share one real
/// memory, so without this check a copy could read memory that a dead process has freed.
pid_t owner_of_memory(pid_t pid) {
    const Process* const other = world()->find(pid);
    world()->happened();
    return other && !other->gone() ? REAL(getpid)() : -1;
}

/// Returns the price of a copy between processes; negative: it failed.
uint64_t price_of_copy(ssize_t bytes) {
    return prices().with_bytes(prices().call, prices().of.shared_memory_copied_byte,
                               bytes < 0 ? 0 : static_cast<uint64_t>(bytes));
}

/// Ends the calling process by exit() or _exit(), if the world allows it.
void end_process(Process& process, int code) {
    if (world()->on_exit) world()->on_exit(process, code);
}

}  // namespace

// Functions for time and turns.

uint64_t starling::simulation::simulated_cycles() {
    Process* const me = caller();
    return me ? me->copy_times.read() : 0;
}

void starling::simulation::simulated_pause() {
    const Process* const me = caller();
    if (me && me->meter)
        world()->pass_idle_poll(prices().of.processor_poll, prices().of.processor_poll + me->meter->rings_price());
}

SIMULATED int clock_gettime(clockid_t clock, timespec* out) noexcept {
    if (!caller()) return REAL(clock_gettime)(clock, out);
    world()->pass_idly(prices().clock);
    out->tv_sec = static_cast<time_t>(world()->now / 1'000'000'000);
    out->tv_nsec = static_cast<long>(world()->now % 1'000'000'000);
    return 0;
}

SIMULATED int sched_yield() noexcept {
    if (!caller()) return REAL(sched_yield)();
    world()->yield();
    return 0;
}

SIMULATED int usleep(useconds_t us) {
    if (!caller()) return REAL(usleep)(us);
    world()->compute(uint64_t{us} * 1000);
    return 0;
}

SIMULATED int nanosleep(const timespec* time, timespec* left) {
    if (!caller()) return REAL(nanosleep)(time, left);
    world()->compute(ns_of(*time));
    return 0;
}

SIMULATED unsigned sleep(unsigned seconds) {
    if (!caller()) return REAL(sleep)(seconds);
    world()->compute(uint64_t{seconds} * 1'000'000'000);
    return 0;
}

SIMULATED int gettimeofday(timeval* out, void* zone) noexcept {
    if (!caller()) return REAL(gettimeofday)(out, zone);
    world()->pass(prices().clock);
    out->tv_sec = static_cast<time_t>(world()->now / 1'000'000'000);
    out->tv_usec = static_cast<suseconds_t>(world()->now % 1'000'000'000 / 1000);
    return 0;
}

SIMULATED time_t time(time_t* out) noexcept {
    if (!caller()) return REAL(time)(out);
    world()->pass(prices().clock);
    const auto now = static_cast<time_t>(world()->now / 1'000'000'000);
    if (out) *out = now;
    return now;
}

void starling_simulated_compute(unsigned long ns) {
    if (caller()) world()->pass(ns);
}

// Reads six arguments although the caller may have passed fewer: the sixth is then a word of the caller's frame.
SIMULATED [[gnu::no_sanitize("address")]] long syscall(long number, ...) noexcept {
    va_list list;
    va_start(list, number);
    long a[6];
    for (long& each : a) each = va_arg(list, long);
    va_end(list);
    if (caller()) {
        if (number == SYS_futex)
            return futex(*world()->current(), reinterpret_cast<void*>(a[0]), static_cast<int>(a[1]),
                         static_cast<uint32_t>(a[2]), reinterpret_cast<const timespec*>(a[3]), static_cast<uint32_t>(a[5]));
        if (number == SYS_futex_waitv) return failed(ENOSYS);  // not available, as before Linux 5.16
        if (number == SYS_membarrier) return 0;
        if (number == SYS_sched_getattr || number == SYS_sched_setattr)
            return failed(EPERM);  // the world draws whose turn it is
        // not available: its events would arrive on another thread
        if (number == SYS_userfaultfd) return failed(EPERM);
    }
    return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

// Functions for processor cores.

SIMULATED int sched_getcpu() noexcept {
    const Process* const me = caller();
    return me ? static_cast<int>(me->cpu) : REAL(sched_getcpu)();
}

SIMULATED int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t* out) noexcept {
    if (!caller()) return REAL(sched_getaffinity)(pid, bytes, out);
    *out = cores_of_host();
    return 0;
}

SIMULATED int sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t* set) noexcept {
    Process* const me = caller();
    if (!me) return REAL(sched_setaffinity)(pid, bytes, set);
    for (uint32_t cpu = 0; cpu < daemons()->cores() && !CPU_ISSET(me->cpu, set); ++cpu)
        if (CPU_ISSET(cpu, set)) me->cpu = cpu;
    return 0;
}

// Functions for the identity of process and host.

SIMULATED pid_t getpid() noexcept {
    const Process* const me = caller();
    return me ? me->pid : REAL(getpid)();
}

SIMULATED int kill(pid_t pid, int signal) noexcept {
    if (!caller()) return REAL(kill)(pid, signal);
    const Process* const other = world()->find(pid);
    return other && !other->gone() ? 0 : failed(ESRCH);
}

SIMULATED char* getenv(const char* name) noexcept {
    const Process* const me = caller();
    if (me && me->fiber && std::strcmp(name, "STARLING_JOB") == 0) return const_cast<char*>(daemons()->job_variable(*me));
    if (me && me->fiber && std::strcmp(name, "STARLING_RANK") == 0)
        return const_cast<char*>(daemons()->rank_variable(me->rank));
    return REAL(getenv)(name);
}

// The parser of command lines has global variables. A process's first call starts it again; no other process runs while one parses.
static void begin_to_parse() {
    Process* const me = caller();
    if (me && !std::exchange(me->parses_options, true)) optind = 0;
}

SIMULATED int getopt(int count, char* const* arguments, const char* options) noexcept {
    begin_to_parse();
    return REAL(getopt)(count, arguments, options);
}

SIMULATED int getopt_long(int count, char* const* arguments, const char* options, const option* names, int* index) noexcept {
    begin_to_parse();
    return REAL(getopt_long)(count, arguments, options, names, index);
}

SIMULATED ssize_t getrandom(void* out, size_t bytes, unsigned flags) {
    if (!caller()) return REAL(getrandom)(out, bytes, flags);
    for (size_t i = 0; i < bytes; ++i) static_cast<unsigned char*>(out)[i] = static_cast<unsigned char>(world()->random.next());
    return static_cast<ssize_t>(bytes);
}

SIMULATED void exit(int code) noexcept {
    if (Process* const me = caller()) {
        end_process(*me, code);
        fail_run("the program ends the process with code %d", code);
    }
    REAL(exit)(code);
    __builtin_unreachable();
}

SIMULATED void _exit(int code) {
    if (Process* const me = caller()) {
        end_process(*me, code);
        const auto says = [me](const char* what) { return me->said.find(what) != std::string::npos; };
        // Whether OpenSHMEM's message gives a death as the reason. "a member failed" and "failed at another member" are accepted too: with an
        // eager limit of a few bytes there is no error marker, which would name the cause (message/error_marker.h).
        const bool knows_why = says(" has died") || says(" has failed") || says(" has ended") || says(" is gone") ||
                               says(" ended before ") || says(" ended while ") || says(" could not create its part ") ||
                               says(" a member failed") || says(" failed at another member: it ended");
        if (code == 1 && knows_why) daemons()->end_job(*me);
        fail_run("the library ends the process with code %d: %s", code, me->said.c_str());
    }
    REAL(_exit)(code);
    __builtin_unreachable();
}

// OpenSHMEM's message before it ends a job because of a death is recorded as part of the run, not printed to the test's output.
SIMULATED int fprintf(FILE* file, const char* format, ...) {
    va_list list;
    va_start(list, format);
    char text[2000];
    Process* const me = caller();
    const bool complains = me && done().has(Feature::deaths) && std::strncmp(format, "starling: PE ", 13) == 0;
    const int length = complains ? std::vsnprintf(text, sizeof text, format, list) : std::vfprintf(file, format, list);
    va_end(list);
    if (complains) me->said = text;
    return length;
}

// Functions for files and memory.

namespace {
/// Returns whether the path is that of a descriptor of a simulated rank, which is one of this program; `own` is its path here, empty if the
/// rank has ended.
bool is_descriptor_path(const char* path, std::string& own) {
    int pid, descriptor;
    if (std::sscanf(path, "/proc/%d/fd/%d", &pid, &descriptor) != 2 || !world()->find(pid)) return false;
    if (owner_of_memory(pid) >= 0) own = "/proc/self/fd/" + std::to_string(descriptor);
    return true;
}
}  // namespace

SIMULATED int lstat(const char* path, struct stat* out) noexcept {
    std::string own;
    if (!caller() || !is_descriptor_path(path, own)) return REAL(lstat)(path, out);
    return own.empty() ? failed(ENOENT) : REAL(lstat)(own.c_str(), out);
}

// By this link the library checks whether /proc shows its processes.
SIMULATED ssize_t readlink(const char* path, char* text, size_t bytes) noexcept {
    if (!caller() || std::strcmp(path, "/proc/self") != 0) return REAL(readlink)(path, text, bytes);
    const std::string pid = std::to_string(getpid());
    return static_cast<ssize_t>(pid.copy(text, bytes));
}

SIMULATED int open(const char* path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const mode_t mode = (flags & O_CREAT) ? va_arg(list, mode_t) : 0;
    va_end(list);
    if (caller()) {
        // Hides the real machine's load and its kernel's data about processes from the library.
        if (std::strcmp(path, "/proc/loadavg") == 0) return failed(ENOENT);
        if (std::strncmp(path, "/proc/", 6) == 0 && std::strstr(path, "/stat")) return failed(EACCES);
        if (is_about_devices(path)) return open_device_file(path);
        std::string own;
        if (is_descriptor_path(path, own)) return own.empty() ? failed(ENOENT) : REAL(open)(own.c_str(), flags, mode);
        const int fd = REAL(open)(path, flags, mode);
        note_file(path, fd);
        return fd;
    }
    return REAL(open)(path, flags, mode);
}

SIMULATED void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
    if (caller() && fd >= 0)
        if (void* const shared = daemons()->mapping(fd)) return shared;
    return REAL(mmap)(at, bytes, protection, flags, fd, offset);
}

SIMULATED int munmap(void* at, size_t bytes) noexcept {
    if (caller() && daemons()->is_mapping(at)) return 0;
    return REAL(munmap)(at, bytes);
}

SIMULATED ssize_t process_vm_readv(pid_t pid, const iovec* local, unsigned long local_count, const iovec* remote,
                                   unsigned long remote_count, unsigned long flags) noexcept {
    if (!caller()) return REAL(process_vm_readv)(pid, local, local_count, remote, remote_count, flags);
    const ssize_t n = REAL(process_vm_readv)(owner_of_memory(pid), local, local_count, remote, remote_count, flags);
    return after(n, price_of_copy(n));
}

SIMULATED ssize_t process_vm_writev(pid_t pid, const iovec* local, unsigned long local_count, const iovec* remote,
                                    unsigned long remote_count, unsigned long flags) noexcept {
    if (!caller()) return REAL(process_vm_writev)(pid, local, local_count, remote, remote_count, flags);
    const ssize_t n = REAL(process_vm_writev)(owner_of_memory(pid), local, local_count, remote, remote_count, flags);
    return after(n, price_of_copy(n));
}

namespace {

/// A search of the loaded objects for the caller's program, or for all others.
struct ObjectVisit {
    uint64_t program;
    bool of_program;
    int (*callback)(dl_phdr_info*, size_t, void*);
    void* argument;
};

int visit_object(dl_phdr_info* info, size_t bytes, void* of) {
    const auto& visit = *static_cast<const ObjectVisit*>(of);
    if ((info->dlpi_addr == visit.program) != visit.of_program) return 0;
    return visit.callback(info, bytes, visit.argument);
}

// The program comes first, as in a real process.
[[gnu::noinline]] int visit_objects(const Process& of, int (*callback)(dl_phdr_info*, size_t, void*), void* argument) {
    ObjectVisit visit{of.program, true, callback, argument};
    if (const int result = REAL(dl_iterate_phdr)(&visit_object, &visit)) return result;
    visit.of_program = false;
    return REAL(dl_iterate_phdr)(&visit_object, &visit);
}

}  // namespace

// AddressSanitizer calls this before a function with variables on the stack can run.
SIMULATED [[gnu::no_sanitize("address")]] int dl_iterate_phdr(int (*callback)(dl_phdr_info*, size_t, void*), void* argument) {
    const Process* const me = caller();
    if (!me || me->program == 0) return REAL(dl_iterate_phdr)(callback, argument);
    return visit_objects(*me, callback, argument);
}

// Functions for network interfaces.

namespace {

struct RailEntry {
    ifaddrs list;
    sockaddr_in address, netmask;
    char name[IF_NAMESIZE];
};

}  // namespace

SIMULATED int getifaddrs(ifaddrs** out) noexcept {
    const Process* const me = caller();
    if (!me) return REAL(getifaddrs)(out);
    const uint32_t rails = network()->rails();
    auto* const entries = new RailEntry[rails]{};
    for (uint32_t rail = 0; rail < rails; ++rail) {
        RailEntry& entry = entries[rail];
        entry.address = to_system({network()->address(me->host, rail), 0});
        entry.netmask = to_system({Network::netmask(), 0});
        std::snprintf(entry.name, sizeof entry.name, "rail%u", rail);
        entry.list.ifa_next = rail + 1 < rails ? &entries[rail + 1].list : nullptr;
        entry.list.ifa_name = entry.name;
        entry.list.ifa_flags = network()->is_up(me->host, rail) ? IFF_UP | IFF_RUNNING : IFF_UP;
        entry.list.ifa_addr = reinterpret_cast<sockaddr*>(&entry.address);
        entry.list.ifa_netmask = reinterpret_cast<sockaddr*>(&entry.netmask);
    }
    *out = &entries[0].list;
    return after(0);
}

SIMULATED void freeifaddrs(ifaddrs* list) noexcept {
    if (!caller()) return REAL(freeifaddrs)(list);
    delete[] reinterpret_cast<RailEntry*>(list);
}

SIMULATED unsigned if_nametoindex(const char* name) noexcept {
    if (!caller()) return REAL(if_nametoindex)(name);
    return static_cast<unsigned>(std::atoi(name + std::strlen("rail"))) + 2;
}

SIMULATED int ioctl(int fd, unsigned long request, ...) noexcept {
    va_list list;
    va_start(list, request);
    void* const argument = va_arg(list, void*);
    va_end(list);
    if (!descriptor(fd)) return REAL(ioctl)(fd, request, argument);
    if (request != SIOCGIFMTU) return failed(EINVAL);
    static_cast<ifreq*>(argument)->ifr_mtu = static_cast<int>(network()->weather().mtu);
    return 0;
}
