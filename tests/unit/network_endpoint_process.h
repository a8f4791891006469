// Datagram endpoints of several simulated MPI processes within one test program, over the loopback device.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "mpi.h"
#include "transport/network/datagram/endpoint.h"

namespace starling::network {

/// Returns whether to encrypt: the tests run twice, without encryption and with STARLING_ENCRYPTION=on.
inline bool seal_processes() {
    const char* const value = std::getenv("STARLING_ENCRYPTION");
    return value && std::string_view(value) == "on";
}

inline constexpr uint64_t kJob = 77;

inline uint64_t key_of(uint32_t rank) { return 0x1000 + rank; }

/// One simulated process: its endpoint, and everything that the endpoint received.
class Process final : public transport::PacketReceiver {
  public:
    explicit Process(uint32_t rank, bool sealed = seal_processes()) : rank_(rank) {
        set_variable("STARLING_IP_INTERFACES", "lo");
        by_user()[this] = this;
        current() = this;
        EndpointUpcalls upcalls{
            [](void*, job::JobId job, uint32_t rank, uint64_t key) -> Session* {
                Process* const me = current();
                return me->hospitable ? me->endpoint->add(job, rank, key, {me, nullptr}, me) : nullptr;
            },
            [](void* user) { ++static_cast<Process*>(user)->given_up; },
        };
        static constexpr job::NetworkSecret kSecret{{5, 4, 3, 2, 1}};
        upcalls.secret = [](void*, job::JobId job, uint32_t) { return job == kJob ? &kSecret : nullptr; };
        EXPECT_EQ(Endpoint::open({kJob, rank, key_of(rank), sealed ? kSecret : job::NetworkSecret()}, upcalls, endpoint),
                  MPI_SUCCESS)
            << failure_text();
    }
    ~Process() { by_user().erase(this); }
    void deliver(void*, const transport::Packet& packet) override {
        got.emplace_back(packet.header.message.context,
                         std::string(reinterpret_cast<const char*>(packet.payload), packet.header.bytes));
        if (on_packet) on_packet();
    }

    Session& meet(uint32_t rank, uint16_t port) {
        Session* const session = endpoint->add(kJob, rank, key_of(rank), {this, nullptr}, this);
        const uint32_t address = htonl(INADDR_LOOPBACK);
        endpoint->set_addresses(*session, &address, 1, port);
        return *session;
    }
    bool send(Session& session, uint64_t number, const std::string& text) {
        std::byte* payload;
        packet::Header* header;
        if (!endpoint->reserve(session, static_cast<uint32_t>(text.size()), payload, header)) return false;
        header->kind = packet::PacketKind::eager;
        header->operation = 0;
        header->message.sequence = 0;
        header->message.tag = 0;
        header->message.source = static_cast<int32_t>(rank_);
        header->message.context = number;
        std::memcpy(payload, text.data(), text.size());
        endpoint->commit(session, static_cast<uint32_t>(text.size()));
        return true;
    }
    void poll(uint64_t now = now_ns()) {
        current() = this;
        endpoint->poll(now);
    }

    Endpoint* endpoint = nullptr;
    std::vector<std::pair<uint64_t, std::string>> got;
    std::function<void()> on_packet;
    bool hospitable = true;
    int given_up = 0;

  private:
    static std::map<void*, Process*>& by_user() {
        static std::map<void*, Process*> all;
        return all;
    }
    static Process*& current() {
        static Process* process = nullptr;
        return process;
    }
    uint32_t rank_;
};

/// Polls the processes in turn until the condition holds; false after ten seconds.
inline bool poll_until(std::initializer_list<Process*> processes, const std::function<bool()>& condition) {
    const uint64_t end = now_ns() + 10 * kSecond;
    while (!condition()) {
        for (Process* process : processes) process->poll();
        if (now_ns() > end) return false;
    }
    return true;
}

}  // namespace starling::network
