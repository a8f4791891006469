// Every call of libibverbs and librdmacm fails once: the n-th call, for all n. The plugin either reports an error text or continues;
// received data is right, and no resource leaks.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <map>
#include <set>

#include "plugins/verbs/plugin.h"
#include "verbs_pair.h"

namespace starling::verbs {
namespace {

using Kind = VerbsEvent::VerbsEventKind;

// Uses every function of the plugin while a library call fails. Checks only that operations which the plugin reported as done took place.
class Story {
  public:
    void run() {
        fake::add({.name = "fake0"});
        fake::add({.name = "fake1"});
        if (open("fake0", a) && open("fake1", b)) {
            datagrams();
            connections();
            memory();
            group();
            link();
            sleep();
        }
        for (Listener* side : {&a, &b})
            if (side->port) side->port->close();
    }
    std::string sentence;  ///< text of the last error

  private:
    bool open(const char* device, Listener& side) {
        PortFacts facts[4];
        const int count = starling_verbs_plugin.list(facts, 4, &options);
        for (int i = 0; i < count; ++i) {
            if (std::string(facts[i].device) != device) continue;
            if (facts[i].why_not[0]) return refused(facts[i].why_not);
            char problem[400] = {};
            side.port = starling_verbs_plugin.open(&facts[i], &options, problem, sizeof problem);
            return side.port || refused(problem);
        }
        return refused("no device was listed");
    }
    bool refused(const char* why) {
        sentence = why;
        EXPECT_GT(sentence.size(), 10u) << fake::failed_call();
        return false;
    }
    static iovec part(const std::string& text) { return {const_cast<char*>(text.data()), text.size()}; }

    void datagrams() {
        for (const std::string& text : {std::string("short"), std::string(1000, 'l')}) {
            const iovec one = part(text);
            if (a.port->send(b.port->address(), &one, 1) != WorkStatus::done) {
                refused(a.port->problem());
                continue;
            }
            // A datagram without a receive buffer is lost.
            Told told;
            for (int i = 0; i < 3; ++i) {
                a.poll();
                b.poll();
            }
            if (b.count(Kind::datagram)) {
                ASSERT_TRUE(b.next(Kind::datagram, &told));
                EXPECT_EQ(told.text, text);
            }
        }
    }

    bool connect() {
        from = a.port->make_queue(&from);
        if (!from) return refused(a.port->problem());
        to = b.port->make_queue(&to);
        if (!to) return refused(b.port->problem());
        if (!from->connect(to->address())) return refused(a.port->problem());
        return to->connect(from->address()) || refused(b.port->problem());
    }

    void connections() {
        connected_ = connect();
        if (!connected_) return;
        int sent = 0;
        for (; sent < 40; ++sent) {
            const std::string text = std::to_string(sent) + std::string(sent % 3 ? 0 : 500, '.');
            const iovec one = part(text);
            const WorkStatus status = from->send(&one, 1);
            if (status == WorkStatus::broken) break;
            if (status == WorkStatus::busy) a.poll();
            ASSERT_TRUE(status == WorkStatus::done || status == WorkStatus::busy);
            if (status == WorkStatus::busy) --sent;
        }
        if (sent < 40) { EXPECT_EQ(a.count(Kind::broken), 1u) << fake::failed_call(); }
        for (int i = 0; i < sent; ++i) {
            if (b.count(Kind::frame) == 0) {
                // Frames may be missing only after a reported break, and then only the last ones.
                EXPECT_LT(sent, 40) << fake::failed_call();
                break;
            }
            ASSERT_EQ(std::atoi(b.next_text(Kind::frame).c_str()), i);
        }
    }

    void memory() {
        alignas(8) static uint64_t mine[64], theirs[64];
        std::memset(theirs, 0, sizeof theirs);
        Memory ours, shown;
        const bool both = (a.port->enroll(mine, sizeof mine, false, ours) || refused(a.port->problem())) &&
                          (b.port->enroll(theirs, sizeof theirs, true, shown) || refused(b.port->problem()));
        if (both && connected_) transfers(mine, theirs, ours, shown);
        if (from) from->close(true);
        if (to) to->close(false);
        from = to = nullptr;
        a.port->dismiss(ours);
        b.port->dismiss(shown);
    }

    /// Number of transfers; the last has `more` set, so the device is not yet notified.
    static constexpr uint64_t kTransfers = 23;
    void transfers(uint64_t* mine, uint64_t* theirs, const Memory& ours, const Memory& shown) {
        std::map<uint64_t, WorkStatus> ends;
        std::set<uint64_t> taken;
        const auto collect = [&] {
            while (a.count(Kind::done)) {
                Told told;
                ASSERT_TRUE(a.next(Kind::done, &told));
                EXPECT_TRUE(ends.emplace(told.event.token, told.event.status).second) << "completed twice";
            }
        };
        b.forget();
        for (uint64_t i = 1; i <= kTransfers; ++i) {
            mine[i] = i;
            const Queue::Transfer one = {.token = i,
                                         .memory = mine + i,
                                         .local = ours.local,
                                         .bytes = 8,
                                         .address = reinterpret_cast<uint64_t>(theirs + i),
                                         .remote = shown.remote,
                                         .more = i % 4 != 0};
            const WorkStatus status = i % 5 == 0   ? from->fetch_add(one, 1)
                                      : i % 7 == 0 ? from->read(one)
                                      : i % 6 == 0 ? from->write_with_note(one, static_cast<uint32_t>(i))
                                                   : from->write(one);
            if (status == WorkStatus::done) taken.insert(i);
            ASSERT_NE(status, WorkStatus::busy);
        }
        // This frame notifies the peer; it is chained to the last write.
        const std::string text = "written";
        const iovec word = part(text);
        const WorkStatus status = from->send(&word, 1);
        ASSERT_NE(status, WorkStatus::busy);
        collect();
        for (Told told; b.count(Kind::note) && b.next(Kind::note, &told);) {
            EXPECT_EQ(theirs[told.event.word], told.event.word);
        }
        if (b.count(Kind::frame)) {
            EXPECT_EQ(b.next_text(Kind::frame), text);
            EXPECT_EQ(theirs[kTransfers], kTransfers);
        }
        const bool broken = ends.size() < taken.size() || a.count(Kind::broken);
        for (const auto& [token, status] : ends) {
            EXPECT_TRUE(taken.contains(token)) << token << " was not taken";
            if (status == WorkStatus::done && token % 5 && token % 7) { EXPECT_EQ(theirs[token], token); }
        }
        if (!broken) { EXPECT_EQ(ends.size(), kTransfers) << fake::failed_call(); }
        from->close(false);
        from = nullptr;
        collect();
        EXPECT_EQ(ends.size(), taken.size()) << fake::failed_call();
    }

    void group() {
        const uint8_t gid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3};
        PortMembership* one = a.port->join(gid);
        PortMembership* other = b.port->join(gid);
        if (!one || !other) return static_cast<void>(refused((one ? b : a).port->problem()));
        settle(a, one);
        settle(b, other);
        const std::string text = "to all";
        const iovec part = this->part(text);
        if (one->state() == PortMembership::MembershipState::failed) refused(a.port->problem());
        if (other->state() == PortMembership::MembershipState::failed) refused(b.port->problem());
        if (one->send(&part, 1) == WorkStatus::done && b.count(Kind::datagram)) {
            EXPECT_EQ(b.next_text(Kind::datagram), text);
        }
        one->leave();
    }
    static void settle(Listener& side, PortMembership* member) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(200);
        while (member->state() == PortMembership::MembershipState::joining && std::chrono::steady_clock::now() < end)
            side.poll();
        EXPECT_NE(member->state(), PortMembership::MembershipState::joining) << fake::failed_call();
    }

    // A port whose link has returned works again within a second of the failure.
    void link() {
        b.forget();
        fake::set_gid("fake1", 0, "::ffff:10.9.9.9");
        EXPECT_TRUE(b.next(Kind::down)) << fake::failed_call();
        EXPECT_TRUE(b.next(Kind::up)) << fake::failed_call();
        const std::string text = "again";
        const iovec one = part(text);
        for (int i = 0; i < 3 && !b.count(Kind::datagram); ++i) {
            a.poll();
            static_cast<void>(a.port->send(b.port->address(), &one, 1));
        }
        if (b.count(Kind::datagram)) { EXPECT_EQ(b.next_text(Kind::datagram), text); }
    }

    void sleep() {
        b.port->arm();
        b.port->arm();
        const std::string text = "wake";
        const iovec one = part(text);
        static_cast<void>(a.port->send(b.port->address(), &one, 1));
        b.poll();
        b.port->arm();
    }

    DeviceOptions options;
    Listener a, b;
    Queue *from = nullptr, *to = nullptr;
    bool connected_ = false;
};

TEST(VerbsFailures, EveryLibraryCallFailsOnce) {
    uint64_t total = 0;
    {
        fake::reset();
        Story story;
        story.run();
        total = fake::calls();
        EXPECT_EQ(story.sentence, "");
        ASSERT_EQ(fake::living(), "");
    }
    EXPECT_GT(total, 100u);
    std::set<std::string> failed;
    for (uint64_t n = 1; n <= total; ++n) {
        fake::reset();
        fake::fail_call(n, n % 2 ? EIO : ENOMEM);
        Story story;
        story.run();
        failed.insert(fake::failed_call());
        ASSERT_EQ(fake::living(), "") << "after the failure of call " << n << ", " << fake::failed_call();
        ASSERT_FALSE(HasFailure()) << "after the failure of call " << n << ", " << fake::failed_call()
                                   << "; error: " << story.sentence;
    }
    for (const char* function : {"ibv_create_qp", "ibv_modify_qp", "ibv_post_send", "ibv_post_srq_recv", "ibv_create_ah",
                                 "ibv_reg_mr", "ibv_attach_mcast", "rdma_join_multicast", "ibv_req_notify_cq"})
        EXPECT_TRUE(failed.contains(function)) << function;
}

}  // namespace
}  // namespace starling::verbs
