#include "transport/verbs/plugin.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/config.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/state.h"
#include "mpi.h"

namespace starling::verbs {

namespace {

/// Returns the folder of the kernel's devices, the one that libibverbs also searches.
std::string devices_folder() {
    const char* const root = std::getenv("SYSFS_PATH");
    return std::string(root && *root ? root : "/sys") + "/class/infiniband";
}

class Folder {
  public:
    explicit Folder(const std::string& path) : stream_(opendir(path.c_str())) {}
    Folder(const Folder&) = delete;
    ~Folder() {
        if (stream_) closedir(stream_);
    }
    /// Returns the name of the next entry, null at the end.
    const char* next() {
        while (const dirent* const entry = stream_ ? readdir(stream_) : nullptr)
            if (entry->d_name[0] != '.') return entry->d_name;
        return nullptr;
    }

  private:
    DIR* stream_;
};

/// Returns the port's state, for example "4: ACTIVE"; empty if the port does not exist.
std::string port_state(const std::string& port) {
    const int fd = open((port + "/state").c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return {};
    char text[32];
    const ssize_t bytes = ::read(fd, text, sizeof text);
    close(fd);
    return {text, bytes > 0 ? static_cast<size_t>(bytes) : 0};
}

// Returns the path of the plugin. Searches beside the object that contains this code (the library, or a tool), then in the lib folders
// beside that object's folder.
std::string plugin_path() {
    Dl_info info;
    char self[PATH_MAX];
    if (!dladdr(reinterpret_cast<void*>(&load_plugin), &info) || !info.dli_fname || !realpath(info.dli_fname, self))
        return kPluginFile;
    const std::string path(self), folder = path.substr(0, path.rfind('/') + 1);
    for (const char* const way : {"", "../lib/", "../lib64/"})
        if (access((folder + way + kPluginFile).c_str(), F_OK) == 0) return folder + way + kPluginFile;
    return kPluginFile;  // file name without a path, which the dynamic linker searches
}

STARLING_STATE const Plugin* instead = nullptr;

}  // namespace

bool has_device() { return instead || Folder(devices_folder()).next() != nullptr; }

uint64_t devices_seen() {
    const std::string root = devices_folder();
    uint64_t all = 0;
    Folder devices(root);
    while (const char* const device = devices.next()) {
        const std::string path = root + "/" + device;
        struct stat inode {};
        // Hash the inode too: it distinguishes a device from an earlier one with the same name.
        if (stat(path.c_str(), &inode) != 0) continue;
        all += hash_on(hash_on(kEmptyHash, device), inode.st_ino);
        Folder ports(path + "/ports");
        while (const char* const port = ports.next())
            all += hash_on(hash_on(hash_on(kEmptyHash, device), port), port_state(path + "/ports/" + port).c_str());
    }
    return all;
}

Link link_of(const char* device, uint8_t port) {
    const std::string path = devices_folder() + "/" + device;
    if (access(path.c_str(), F_OK) != 0) return Link::gone;
    return port_state(path + "/ports/" + std::to_string(port)).starts_with("4") ? Link::active : Link::down;
}

void use_plugin(const Plugin* plugin) { instead = plugin; }
bool plugin_is_a_tests() { return instead != nullptr; }

const Plugin* load_plugin() {
    if (instead) return instead;
    const std::string path = plugin_path();
    // The plugin is never unloaded, since other libraries may use the libraries that it has loaded.
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fail(MPI_ERR_OTHER, "%s (InfiniBand and RoCE need libibverbs.so.1 and librdmacm.so.1)", dlerror());
        return nullptr;
    }
    const auto* const plugin = static_cast<const Plugin*>(dlsym(library, kPluginSymbol));
    if (!plugin || plugin->version != kPluginVersion) {
        fail(MPI_ERR_OTHER, "%s is of another version of Starling than this library; install both from one release",
             path.c_str());
        return nullptr;
    }
    return plugin;
}

DeviceOptions configured_options() {
    DeviceOptions options;
    options.receive_buffers = static_cast<uint32_t>(config().verbs_receives);
    options.send_buffers = static_cast<uint32_t>(config().verbs_sends);
    options.gid_index = static_cast<int>(config().verbs_gid_index);
    options.service_level = static_cast<int>(config().verbs_sl);
    options.traffic_class = static_cast<int>(config().verbs_tc);
    options.pkey_index = static_cast<int>(config().verbs_pkey_index);
    return options;
}

}  // namespace starling::verbs
