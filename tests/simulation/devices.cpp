#include "devices.h"

#include <dirent.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device_port.h"
#include "system.h"

namespace starling::simulation {

namespace {

Devices* the_devices = nullptr;

verbs::PortFacts facts_of(const Process& of, uint32_t rail) {
    verbs::PortFacts facts;
    std::snprintf(facts.device, sizeof facts.device, "sim%u", rail);
    std::snprintf(facts.interface, sizeof facts.interface, "rail%u", rail);
    facts.port = 1;
    facts.ethernet = true;
    facts.active = network()->is_up(of.host, rail);
    facts.gid[10] = facts.gid[11] = 0xff;
    const uint32_t address = network()->address(of.host, rail);
    std::memcpy(facts.gid + 12, &address, sizeof address);
    const DeviceWeather& weather = devices()->weather();
    facts.mtu = weather.mtu;
    facts.inline_bytes = weather.inline_bytes;
    facts.most_queues = 65536;
    facts.most_registered = UINT64_MAX;
    return facts;
}

int list(verbs::PortFacts* out, int most, const verbs::DeviceOptions*) {
    int count = 0;
    for (uint32_t rail = 0; rail < network()->rails(); ++rail) {
        if (!devices()->is_there(caller()->host, rail)) continue;
        if (count < most) out[count] = facts_of(*caller(), rail);
        ++count;
    }
    return after(count);
}

verbs::Port* open(const verbs::PortFacts* which, const verbs::DeviceOptions*, char* problem, size_t problem_size) {
    const auto rail = static_cast<uint32_t>(std::atoi(which->device + std::strlen("sim")));
    if (devices()->is_there(caller()->host, rail))
        return after(new SimulatedPort(*devices(), *caller(), rail, facts_of(*caller(), rail)));
    std::snprintf(problem, problem_size, "%s has been removed", which->device);
    return nullptr;
}

}  // namespace

Devices* devices() { return the_devices; }

Devices::Devices(World& world, const DeviceWeather& weather)
    : world_(world), weather_(weather), there_(size_t{network()->hosts()} * network()->rails()) {
    the_devices = this;
    for (size_t i = 0; i < weather.fitted.size(); ++i)
        if (weather.fitted[i]) there_[i] = next_identity_++;
}

Devices::~Devices() { the_devices = nullptr; }

void Devices::set_there(uint32_t host, uint32_t rail, bool there) {
    if (is_there(host, rail) == there) return;
    world_.note(there ? "device put in" : "device pulled out", host, rail);
    there_[index(host, rail)] = there ? next_identity_++ : 0;
    for (SimulatedPort* const port : ports)
        if (!there && port->host() == host && port->rail() == rail) port->removed();
}

void Devices::link_changed(uint32_t host, uint32_t rail, bool up) {
    for (SimulatedPort* const port : ports)
        if (port->host() == host && port->rail() == rail) port->link_changed(up);
}

bool Devices::carries(const SimulatedPort& from, const SimulatedPort& to) const {
    if (from.gone() || to.gone() || (from.rail() != to.rail() && !weather_.routed)) return false;
    return network()->works(from.host(), from.rail()) && network()->works(to.host(), to.rail());
}

void become_plugin(const char* file) {
    // Libraries find the plugin by its name, because it is loaded already.
    void* const library = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
    auto* const plugin = library ? static_cast<verbs::Plugin*>(dlsym(library, verbs::kPluginSymbol)) : nullptr;
    if (!plugin) {
        std::fprintf(stderr, "simulation: %s\n", dlerror());
        std::exit(2);
    }
    plugin->list = &list;
    plugin->open = &open;
}

}  // namespace starling::simulation

// The kernel's files about devices, as simulated processes see them: /sys/class/infiniband. Directories are lists of names.

namespace starling::simulation {

namespace {

constexpr char kFolder[] = "/sys/class/infiniband";

struct Names {
    std::vector<dirent> all;
    size_t next = 0;
};
std::vector<Names*> open_folders;

/// Finds the rail of the device that a path names or is in, and the rest of the path; returns false if there is none.
bool device_of(const char* path, uint32_t& rail, std::string& rest) {
    const std::string text(path);
    const size_t begin = sizeof kFolder, end = std::min(text.find('/', begin), text.size());
    if (text.size() <= begin || text.compare(begin, 3, "sim") != 0) return false;
    rail = static_cast<uint32_t>(std::atoi(text.c_str() + begin + 3));
    rest = text.substr(end);
    return rail < network()->rails() && devices()->is_there(caller()->host, rail);
}

Names* list_of(const char* path) {
    std::vector<std::string> names;
    uint32_t rail = 0;
    std::string rest;
    if (std::strcmp(path, kFolder) == 0) {
        for (uint32_t each = 0; each < network()->rails(); ++each)
            if (devices()->is_there(caller()->host, each)) names.push_back("sim" + std::to_string(each));
        if (names.empty()) return nullptr;
    } else if (device_of(path, rail, rest) && rest == "/ports") {
        names.emplace_back("1");
    } else {
        return nullptr;
    }
    auto* const made = open_folders.emplace_back(new Names);
    for (const std::string& name : names)
        std::snprintf(made->all.emplace_back().d_name, sizeof(dirent::d_name), "%s", name.c_str());
    return made;
}

Names* names_of(const void* stream) {
    const auto at = std::find(open_folders.begin(), open_folders.end(), stream);
    return at == open_folders.end() ? nullptr : *at;
}

}  // namespace

bool is_about_devices(const char* path) { return std::strncmp(path, kFolder, sizeof kFolder - 1) == 0; }

int open_device_file(const char* path) {
    uint32_t rail = 0;
    std::string rest;
    if (!device_of(path, rail, rest) || rest != "/ports/1/state") return failed(ENOENT);
    const int fd = memfd_create("state", MFD_CLOEXEC);
    const std::string text = network()->is_up(caller()->host, rail) ? "4: ACTIVE\n" : "1: DOWN\n";
    if (fd < 0 || pwrite(fd, text.data(), text.size(), 0) < 0)
        fail_run("a file of the simulated kernel: %s", std::strerror(errno));
    return after(fd);
}

}  // namespace starling::simulation

using namespace starling::simulation;

SIMULATED DIR* opendir(const char* path) {
    if (!caller() || !is_about_devices(path)) return REAL(opendir)(path);
    auto* const made = list_of(path);
    if (!made) errno = ENOENT;
    return reinterpret_cast<DIR*>(after(made));
}

SIMULATED dirent* readdir(DIR* stream) {
    Names* const names = names_of(stream);
    if (!names) return REAL(readdir)(stream);
    return names->next < names->all.size() ? &names->all[names->next++] : nullptr;
}

SIMULATED int closedir(DIR* stream) {
    Names* const names = names_of(stream);
    if (!names) return REAL(closedir)(stream);
    std::erase(open_folders, names);
    delete names;
    return 0;
}

SIMULATED int stat(const char* path, struct stat* out) noexcept {
    if (!caller() || !is_about_devices(path)) return REAL(stat)(path, out);
    uint32_t rail = 0;
    std::string rest;
    if (!device_of(path, rail, rest)) return failed(ENOENT);
    *out = {};
    out->st_ino = devices()->identity(caller()->host, rail);
    return after(0);
}

SIMULATED int access(const char* path, int mode) noexcept {
    if (!caller() || !is_about_devices(path)) return REAL(access)(path, mode);
    uint32_t rail = 0;
    std::string rest;
    return device_of(path, rail, rest) ? after(0) : failed(ENOENT);
}
