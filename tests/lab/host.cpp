#include "host.h"

#include <fcntl.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <csignal>

#include "frames.h"
#include "problem.h"
#include "session.h"

namespace starling::lab {
namespace {

constexpr int clock_step = 1000;  // seconds between the monotonic clocks of neighboring hosts
constexpr char shared_root[] = "/run/starling-lab";

void write_file(const std::string& path, const std::string& text) {
    int fd = must(open(path.c_str(), O_WRONLY | O_CLOEXEC), path.c_str());
    if (!write_all(fd, text.data(), text.size())) die(path.c_str());
    close(fd);
}

sockaddr_in socket_address(int host, int rail) {
    sockaddr_in result{};
    result.sin_family = AF_INET;
    result.sin_addr.s_addr = htonl(10u << 24 | 77u << 16 | unsigned(rail) << 8 | unsigned(host));
    return result;
}

void mount_fresh(const char* type, const char* path, const char* options) {
    must(mount(type, path, type, MS_NOSUID | MS_NODEV, options), path);
}

// Mounts an empty /run that still contains the labs' directory.
void mount_run() {
    int labs = must(open(shared_root, O_PATH | O_CLOEXEC), shared_root);
    mount_fresh("tmpfs", "/run", "mode=755");
    must(mkdir(shared_root, 0755), shared_root);
    std::string through = "/proc/self/fd/" + std::to_string(labs);
    must(mount(through.c_str(), shared_root, nullptr, MS_BIND | MS_REC, nullptr), shared_root);
    close(labs);
}

// Returns the directory in /tmp that contains these programs, or an empty string if they are elsewhere: all hosts must see a build in /tmp.
std::string build_in_tmp() {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    const std::string program(path, length > 0 ? static_cast<size_t>(length) : 0);
    return program.starts_with("/tmp/") ? program.substr(0, program.find('/', 5)) : std::string();
}

// Mounts an empty /tmp that still contains the build, if it is there.
void mount_tmp() {
    const std::string build = build_in_tmp();
    int kept = build.empty() ? -1 : must(open(build.c_str(), O_PATH | O_CLOEXEC), build.c_str());
    mount_fresh("tmpfs", "/tmp", "mode=1777");
    if (kept < 0) return;
    must(mkdir(build.c_str(), 0755), build.c_str());
    std::string through = "/proc/self/fd/" + std::to_string(kept);
    must(mount(through.c_str(), build.c_str(), nullptr, MS_BIND | MS_REC, nullptr), build.c_str());
    close(kept);
}

// Mounts the host's own /proc, /sys, /dev/shm, /run and /tmp. All hosts share the rest of the file system, like a shared home.
void mount_own(const Plan& plan) {
    must(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "private mounts");
    mount_fresh("proc", "/proc", nullptr);
    must(mount("/sys/fs/cgroup", "/mnt", nullptr, MS_BIND | MS_REC, nullptr), "/sys/fs/cgroup");
    mount_fresh("sysfs", "/sys", nullptr);
    must(mount("/mnt", "/sys/fs/cgroup", nullptr, MS_MOVE, nullptr), "/sys/fs/cgroup");
    mount_fresh("tmpfs", "/dev/shm", "mode=1777");
    mount_run();
    if (!plan.shared_tmp) mount_tmp();
    for (const char* file : {"hosts", "resolv.conf", "nsswitch.conf"}) {
        std::string own = plan.state + "/" + file, place = std::string("/etc/") + file;
        must(mount(own.c_str(), place.c_str(), nullptr, MS_BIND, nullptr), place.c_str());
    }
}

void interface_up(int fd, const char* name) {
    ifreq request{};
    std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    must(ioctl(fd, SIOCGIFFLAGS, &request), name);
    request.ifr_flags |= IFF_UP;
    must(ioctl(fd, SIOCSIFFLAGS, &request), name);
}

void set_address(int fd, const char* name, int host, int rail) {
    ifreq request{};
    std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    sockaddr_in address = socket_address(host, rail);
    std::memcpy(&request.ifr_addr, &address, sizeof address);
    must(ioctl(fd, SIOCSIFADDR, &request), name);
    address.sin_addr.s_addr = htonl(0xffffff00u);
    std::memcpy(&request.ifr_netmask, &address, sizeof address);
    must(ioctl(fd, SIOCSIFNETMASK, &request), name);
}

// Adds a permanent ARP entry for a neighbor.
void fix_neighbour(int fd, const char* name, int host, int rail) {
    arpreq request{};
    sockaddr_in address = socket_address(host, rail);
    std::memcpy(&request.arp_pa, &address, sizeof address);
    const unsigned char hardware[6] = {2, 0x77, 0, 0, static_cast<unsigned char>(rail), static_cast<unsigned char>(host)};
    request.arp_ha.sa_family = ARPHRD_ETHER;
    std::memcpy(request.arp_ha.sa_data, hardware, sizeof hardware);
    request.arp_flags = ATF_COM | ATF_PERM;
    std::strncpy(request.arp_dev, name, sizeof request.arp_dev - 1);
    must(ioctl(fd, SIOCSARP, &request), "neighbour");
}

void configure_network(const Plan& plan, int index) {
    int fd = must(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");
    interface_up(fd, "lo");
    for (int rail = 0; rail < plan.rails && index > 0; ++rail) {
        std::string name = "rail" + std::to_string(rail);
        interface_up(fd, name.c_str());
        set_address(fd, name.c_str(), index, rail);
        for (int other = 1; other <= plan.hosts && plan.fixed_neighbours; ++other)
            if (other != index) fix_neighbour(fd, name.c_str(), other, rail);
    }
    close(fd);
}

[[noreturn]] void live(const Plan& plan, int index, int go, int ready) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(go, STDIN_FILENO);
    dup2(ready, STDOUT_FILENO);
    close_range(3, ~0u, 0);
    setsid();
    std::string name = index == 0 ? "switch" : "lab" + std::to_string(index);
    must(sethostname(name.data(), name.size()), "host name");
    prctl(PR_SET_NAME, name.c_str());
    mount_own(plan);
    // Disable IPv6, because its address detection and multicast listener reports would be sent on hundreds of interfaces.
    write_file("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
    write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    char byte;
    if (!read_all(STDIN_FILENO, &byte, 1)) std::exit(failed);
    int null = must(open("/dev/null", O_RDWR), "/dev/null");
    dup2(null, STDIN_FILENO);
    close(null);
    configure_network(plan, index);
    serve_host(index > 0, "r");
}

}  // namespace

std::string address_of(int host, int rail) { return "10.77." + std::to_string(rail) + "." + std::to_string(host); }

Host start_host(const Plan& plan, int index) {
    int go[2], ready[2];
    if (pipe2(go, O_CLOEXEC) != 0 || pipe2(ready, O_CLOEXEC) != 0) die("cannot create the pipes of a host");
    must(unshare(CLONE_NEWTIME), "time namespace");
    std::string ahead = std::to_string(index * clock_step);
    write_file("/proc/self/timens_offsets", "monotonic " + ahead + " 0\nboottime " + ahead + " 0\n");
    long flags = CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID | SIGCHLD;
    auto pid = static_cast<pid_t>(syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr));
    must(pid, "namespaces of a host");
    if (pid == 0) live(plan, index, go[0], ready[1]);
    close(go[0]);
    close(ready[1]);
    return {pid, go[1], ready[0]};
}

}  // namespace starling::lab
