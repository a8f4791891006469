// Verbs ports: which are used, the reasons reported for the others, and their changes at run time.
#include "transport/verbs/ports.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "mpi.h"
#include "transport/verbs/plugin.h"
#include "verbs_fabric.h"

namespace starling::verbs {
namespace {

bool takes(const char* choice, const char* device, uint8_t port) {
    DeviceChoice parsed;
    EXPECT_EQ(DeviceChoice::parse(choice, parsed), MPI_SUCCESS) << choice;
    return parsed.takes(device, port);
}

TEST(DeviceChoice, NamesDevicesAndPorts) {
    EXPECT_TRUE(takes(nullptr, "mlx5_0", 1));
    EXPECT_TRUE(takes("", "mlx5_0", 1));
    EXPECT_TRUE(takes("mlx5_0", "mlx5_0", 2));
    EXPECT_FALSE(takes("mlx5_0", "mlx5_01", 1));
    EXPECT_FALSE(takes("mlx5_01", "mlx5_0", 1));
    EXPECT_TRUE(takes("rxe0,mlx5_0:2", "mlx5_0", 2));
    EXPECT_FALSE(takes("rxe0,mlx5_0:2", "mlx5_0", 1));
    EXPECT_FALSE(takes("^mlx5_0", "mlx5_0", 1));
    EXPECT_TRUE(takes("^mlx5_0:1,rxe0", "mlx5_0", 2));
    EXPECT_FALSE(takes("^mlx5_0:1,rxe0", "rxe0", 1));
}

TEST(DeviceChoice, ReportsErrors) {
    for (const char* const text :
         {",", "mlx5_0,", "mlx5_0:", "mlx5_0:0", "mlx5_0:256", "mlx5_0:x", "mlx5_0:1x", ":1", "^", "a/b"}) {
        DeviceChoice choice;
        EXPECT_EQ(DeviceChoice::parse(text, choice), MPI_ERR_ARG) << text;
        EXPECT_NE(failure_text().find(text), std::string_view::npos) << text;
    }
}

/// Sets a variable for the duration of a test.
struct Setting {
    Setting(const char* its_name, const char* value, const char* its_default) : name(its_name), usual(its_default) {
        EXPECT_EQ(set_variable(name, value), MPI_SUCCESS);
    }
    ~Setting() { set_variable(name, usual); }
    const char *const name, *const usual;
};

TEST(Ports, ChosenUsablePortsAreUsed) {
    Fabric fabric;
    fabric.add_device(0, "a");
    std::strcpy(fabric.add_device(0, "b").why_not, "it has no datagrams");
    fabric.add_device(0, "c").active = false;
    fabric.add_device(0, "d");
    fabric.add_device(1, "elsewhere");
    const Setting choice("STARLING_VERBS_DEVICES", "^d", "");
    std::unique_ptr<Ports> ports;
    ASSERT_EQ(Ports::open(fabric.host(0), ports), MPI_SUCCESS);
    ASSERT_EQ(fabric.ports.size(), 1u);
    EXPECT_STREQ(ports->port(0)->facts().device, "a");
    EXPECT_TRUE(ports->usable(0));
    EXPECT_FALSE(ports->port(1));
    const std::string_view why = ports->why_not();
    EXPECT_EQ(why, "b:1: it has no datagrams; c:1: its link is down; d:1: not among STARLING_VERBS_DEVICES");
}

TEST(Ports, TheNumberOfPortsIsLimited) {
    Fabric fabric;
    for (const char* const name : {"a", "b", "c", "d", "e"}) fabric.add_device(0, name);
    std::unique_ptr<Ports> ports;
    ASSERT_EQ(Ports::open(fabric.host(0), ports), MPI_SUCCESS);
    EXPECT_EQ(fabric.ports.size(), size_t{Ports::kMost});
    EXPECT_EQ(std::string_view(ports->why_not()).substr(0, 4), "e:1:");
}

TEST(Ports, UnusableRequiredPortsAreAnErrorWithTheReason) {
    Fabric fabric;
    fabric.add_device(0, "a");
    fabric.refusal = "64 KB may be locked (ulimit -l): raise it";
    const Setting require("STARLING_VERBS", "require", "auto");
    std::unique_ptr<Ports> ports;
    EXPECT_EQ(Ports::open(fabric.host(0), ports), MPI_ERR_OTHER);
    EXPECT_NE(failure_text().find("a:1: 64 KB may be locked (ulimit -l): raise it"), std::string_view::npos) << failure_text();
    EXPECT_FALSE(ports);
}

/// A fake directory of the kernel's files about devices; libibverbs accepts its path in SYSFS_PATH.
struct Kernel {
    Kernel() {
        setenv("SYSFS_PATH", root.c_str(), 1);
        std::filesystem::create_directories(root / "class");
    }
    ~Kernel() {
        unsetenv("SYSFS_PATH");
        std::filesystem::remove_all(root);
    }
    void set_link(const char* device, const char* state) const {
        const auto port = root / "class/infiniband" / device / "ports/1";
        std::filesystem::create_directories(port);
        std::ofstream(port / "state") << state << '\n';
    }
    void remove(const char* device) const { std::filesystem::remove_all(root / "class/infiniband" / device); }
    static std::filesystem::path make() {
        char text[] = "/tmp/starling-tests-XXXXXX";
        return mkdtemp(text);
    }
    const std::filesystem::path root = make();
};

TEST(Ports, WithoutADeviceNoPluginIsLoaded) {
    const Kernel kernel;
    std::unique_ptr<Ports> ports;
    EXPECT_EQ(Ports::open(ports), MPI_SUCCESS);
    EXPECT_FALSE(ports);
    const Setting require("STARLING_VERBS", "require", "auto");
    EXPECT_EQ(Ports::open(ports), MPI_ERR_OTHER);
    EXPECT_NE(failure_text().find("no InfiniBand or RoCE device"), std::string_view::npos);
    clear_failure();
    const Setting off("STARLING_VERBS", "off", "auto");
    kernel.set_link("rxe0", "4: ACTIVE");
    EXPECT_EQ(Ports::open(ports), MPI_SUCCESS);
    EXPECT_FALSE(ports);
}

TEST(Plugin, TheKernelsFilesListDevices) {
    const Kernel kernel;
    EXPECT_FALSE(has_device());
    const uint64_t none = devices_seen();
    kernel.set_link("rxe0", "4: ACTIVE");
    EXPECT_TRUE(has_device());
    EXPECT_EQ(link_of("rxe0", 1), Link::active);
    EXPECT_EQ(link_of("rxe0", 2), Link::down);
    EXPECT_EQ(link_of("rxe1", 1), Link::gone);
    const uint64_t one = devices_seen();
    EXPECT_NE(one, none);
    EXPECT_EQ(one, devices_seen());
    kernel.set_link("rxe0", "1: DOWN");
    EXPECT_NE(one, devices_seen());
    EXPECT_EQ(link_of("rxe0", 1), Link::down);
    kernel.set_link("rxe1", "4: ACTIVE");
    const uint64_t two = devices_seen();
    kernel.remove("rxe1");
    EXPECT_NE(two, devices_seen());
}

struct Listener final : QueueListener {
    void happened(uint16_t place, Port&, const VerbsEvent& event) override { seen.emplace_back(place, event.kind); }
    void closing(uint16_t place, Port&) override { closed.push_back(place); }
    std::vector<std::pair<uint16_t, VerbsEvent::VerbsEventKind>> seen;
    std::vector<uint16_t> closed;
};

TEST(Ports, LinkDownAndUpAreReported) {
    Fabric fabric;
    fabric.add_device(0, "a");
    std::unique_ptr<Ports> ports;
    ASSERT_EQ(Ports::open(fabric.host(0), ports), MPI_SUCCESS);
    Listener listener;
    ports->listen(listener);
    const VerbsAddress before = ports->port(0)->address();
    uint32_t version = ports->version();
    fabric.set_link(fabric.port(0), false);
    EXPECT_EQ(ports->poll(), 0);
    EXPECT_FALSE(ports->usable(0));
    EXPECT_TRUE(ports->port(0));
    EXPECT_NE(std::exchange(version, ports->version()), ports->version());
    fabric.set_link(fabric.port(0), true);
    EXPECT_EQ(ports->poll(), 0);
    EXPECT_TRUE(ports->usable(0));
    EXPECT_NE(version, ports->version());
    EXPECT_FALSE(ports->port(0)->address() == before);
    using Kind = VerbsEvent::VerbsEventKind;
    EXPECT_EQ(listener.seen, (std::vector<std::pair<uint16_t, Kind>>{{0, Kind::down}, {0, Kind::up}}));
    ports.reset();
    EXPECT_EQ(listener.closed, std::vector<uint16_t>{0});
    EXPECT_TRUE(fabric.ports.empty());
}

TEST(Ports, ANewDeviceIsUsed) {
    Fabric fabric;
    std::unique_ptr<Ports> ports;
    ASSERT_EQ(Ports::open(fabric.host(0), ports), MPI_SUCCESS);
    ASSERT_TRUE(ports);
    EXPECT_FALSE(ports->port(0));
    const uint32_t version = ports->version();
    fabric.add_device(0, "a");
    ports->refresh(now_ns());
    EXPECT_FALSE(ports->port(0));  // the kernel's files show no device
    ports->refresh(now_ns(), true);
    ASSERT_TRUE(ports->port(0));
    EXPECT_NE(version, ports->version());
    ports->refresh(now_ns(), true);
    EXPECT_EQ(fabric.ports.size(), 1u);
}

TEST(Ports, ASleeperIsWoken) {
    Fabric fabric;
    fabric.add_device(0, "a");
    fabric.add_device(1, "b");
    std::unique_ptr<Ports> here, there;
    ASSERT_EQ(Ports::open(fabric.host(0), here), MPI_SUCCESS);
    ASSERT_EQ(Ports::open(fabric.host(1), there), MPI_SUCCESS);
    const int epoll = epoll_create1(0);
    here->watch(epoll, 7);
    epoll_event event{};
    char text[] = "12345678";
    const iovec part{text, 8};
    const auto send = [&] { EXPECT_EQ(there->port(0)->send(here->port(0)->address(), &part, 1), WorkStatus::done); };
    EXPECT_TRUE(here->arm());
    EXPECT_EQ(epoll_wait(epoll, &event, 1, 0), 0);
    send();
    EXPECT_EQ(epoll_wait(epoll, &event, 1, 0), 1);
    EXPECT_EQ(event.data.u64, 7u);
    ASSERT_EQ(here->poll(), 1);
    const Came& came = here->datagram(0);
    EXPECT_EQ(came.place, 0);
    EXPECT_EQ(came.event.bytes, 8u);
    EXPECT_EQ(std::memcmp(came.event.data, text, 8), 0);
    here->return_buffer(came);
    EXPECT_EQ(fabric.port(0).lent, 0);
    send();
    EXPECT_FALSE(here->arm()) << "a sleeper would not be woken";
    ASSERT_EQ(here->poll(), 1);
    here->return_buffer(here->datagram(0));
    close(epoll);
}

}  // namespace
}  // namespace starling::verbs
