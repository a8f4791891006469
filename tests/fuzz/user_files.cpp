// Files and variables of users and batch systems: hostfiles, lists of hosts, rank files, Slurm's lists, files of commands, the configuration file. Any text is
// read or is rejected with an error text that fits a screen. An accepted host name is safe on a command line.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "launch/client/allocation.h"
#include "launch/client/batch_hosts.h"
#include "launch/client/config_file.h"
#include "launch/client/rank_file.h"
#include "launch/common/hosts.h"
#include "launch/common/processor_placement.h"

using namespace starling;
using namespace starling::launch;

namespace {

/// An anonymous file (memfd) with this text.
class File {
  public:
    explicit File(std::string_view text)
        : fd_(memfd_create("fuzz", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {
        if (write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
    }
    ~File() { close(fd_); }
    const std::string& path() const { return path_; }

  private:
    const int fd_;
    const std::string path_;
};

void expect_sentence(const std::string& problem) {
    if (problem.size() > 400) std::abort();
    for (const char c : problem)
        if (static_cast<unsigned char>(c) < ' ' || c == 127) std::abort();
}

void expect_hosts(const std::vector<HostSlots>& hosts) {
    for (const HostSlots& host : hosts)
        if (!may_be_host(host.name) || host.name.find_first_of(std::string_view(" '\"$`;&|<>\\\n\0", 12)) != std::string::npos)
            std::abort();
}

void read_settings(std::string_view text) {
    const File file(text);
    setenv("STARLING_CONFIG", file.path().c_str(), 1);
    const int errors = dup(2), null = open("/dev/null", O_WRONLY);
    dup2(null, 2);
    read_config(true);
    dup2(errors, 2);
    close(errors);
    close(null);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    std::vector<HostSlots> hosts;
    std::vector<std::string> names;
    std::vector<uint32_t> counts;
    switch (data[0] % 9) {
        case 0:
            expect_sentence(read_hostfile(File(text).path(), hosts));
            expect_hosts(hosts);
            break;
        case 1:
            expect_sentence(read_hosts(text, hosts));
            expect_hosts(hosts);
            break;
        case 2:
            expect_sentence(read_rank_file(File(text).path(), names));
            for (const std::string& name : names)
                if (!name.empty() && name[0] != '+' && !may_be_host(name)) std::abort();
            break;
        case 3:
            if (expand_hosts(text, names) && names.size() > 100'000) std::abort();
            break;
        case 4:
            if (expand_counts(text, counts) && counts.size() > 100'000) std::abort();
            break;
        case 5:
            read_settings(text);
            break;
        case 7:
            expect_sentence(read_config_file(File(text).path(), names));
            break;
        case 8:
            if (ProcessorPlacement placement; ProcessorPlacement::parse(text, placement)) {
                ProcessorPlacement again;
                if (!ProcessorPlacement::parse(placement.text(), again) || again != placement) std::abort();
            }
            break;
        default:
            expect_sentence(parse_flux_resources(text, hosts));
            expect_hosts(hosts);
    }
    return 0;
}

const std::string* fuzz_seeds(size_t& count) {
    using namespace std::string_literals;
    static const std::string seeds[] = {
        "\0# hosts\nlab1 slots=2 max_slots=4\nlab2:3\n[::1]:2\nuser@lab3\n"s,
        "\1lab1:2,10.0.0.1,[::1]:4,user@lab2"s,
        "\2rank 0=lab1 slot=0:1\nrank 1 = +n1\n# none\n"s,
        "\3a[1-3,07]b[1-2],c"s,
        "\4"
        "4(x3),2,1(x2)"s,
        "\5WAIT = poll\nSTARLING_EAGER_LIMIT=4096\n# none\nprofile = x\nnonsense\n"s,
        "\6{\"execution\": {\"nodelist\": [\"f[1-2]\"], \"R_lite\": [{\"rank\": \"0-1\", \"children\": {\"core\": \"0-3\"}}]}}"s,
        "\7# commands\n-n 2 a 'b c' \\\n d\n-n 1 \"e\" f\\ g\n"s,
        "\10bind=core;map=package;rank=numa;elements=2;cpus=0-3,8;lists=0,2/1"s,
    };
    count = std::size(seeds);
    return seeds;
}
