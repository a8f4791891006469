#include "transport/ip/tcp_hello.h"

#include <cstdio>

#include "base/state.h"

namespace starling::ip {

Greeting judge(const Hello& hello, const ProcessId& self, uint64_t key) {
    if (hello.magic != Hello::kMagic) return Greeting::stranger;
    if (hello.version != kTcpVersion) return Greeting::other_version;
    const bool for_us = hello.target_job == self.job && hello.target_rank == self.rank && hello.key == key;
    return for_us ? Greeting::fits : Greeting::stranger;
}

const char* refusal(const Welcome& welcome, uint64_t own_key) {
    if (welcome.magic != Welcome::kMagic) return "something other than Starling answered";
    switch (welcome.answer) {
        case Answer::welcome:
            break;
        case Answer::wrong_version: {
            STARLING_STATE static char text[96];
            std::snprintf(text, sizeof text, "it speaks version %u of the connection protocol and this process version %u",
                          welcome.version, kTcpVersion);
            return text;
        }
        case Answer::not_expected:
            return "it does not expect this connection any more";
        case Answer::too_many:
            return "it has no room for another socket";
        default:
            return "its answer makes no sense";
    }
    return welcome.key == own_key ? nullptr : "another process answered";
}

}  // namespace starling::ip
