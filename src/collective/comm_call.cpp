#include "collective/comm_call.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/current_function.h"
#include "base/delay.h"
#include "collective/collective.h"
#include "collective/collective_request.h"
#include "collective/comm_call_known.h"
#include "collective/shm/operations.h"
#include "profile/collectives.h"

namespace starling::collective {

namespace {

/// The root and the members of an operation with a root, as participant numbers of the collective's exchange. On an inter-communicator the
/// members are the group without the root.
struct Rooted {
    int root;
    node::ParticipantRange members;
    Rooted(const Exchange& exchange, int argument) {
        if (!exchange.inter()) {
            root = argument;
            members = {0, exchange.size};
        } else if (argument == MPI_ROOT) {
            root = exchange.rank;
            members = {exchange.remote_base, exchange.remote_base + exchange.remote_size};
        } else {
            root = exchange.remote_base + argument;
            members = {exchange.local_base, exchange.local_base + exchange.local_size};
        }
    }
};

Task settle(QueueTurn given, Task making) {
    QueueTurn turn = std::move(given);
    co_await turn;
    co_return co_await making;
}

Task one_after_the_other(Task first, Task second) {
    co_await first;
    co_return co_await second;
}

/// Wraps a rooted operation of an inter-communicator that is done by messages although there is a shared-memory stage. In the root's group
/// only the root knows which of the two is used; the others count an operation of the stage (no_part()). All members must count alike, so
/// the participants count one, too.
Task beside_node(const CommCall& call, Task by_messages) {
    if (!call.stage.node_of_all()) return by_messages;
    Task skipped = node::skip(call.on_node_with_root());
    if (!skipped.handle()) return by_messages;
    return one_after_the_other(std::move(skipped), std::move(by_messages));
}

/// Returns the index in StageMeter of the operations that are measured; -1: of others. A reduction by messages was slower everywhere.
int metered_kind(CollectiveKind kind) {
    switch (kind) {
        case CollectiveKind::bcast:
            return 0;
        case CollectiveKind::allgather:
            return 1;
        case CollectiveKind::alltoall:
            return 2;
        default:
            return -1;
    }
}

}  // namespace

void CommCall::run_in_turn(QueueTurn turn, Task making) { run(settle(std::move(turn), std::move(making))); }

bool CommCall::messages_are_faster(const CallParameters& call) {
    const int kind = metered_kind(call.kind);
    if (kind < 0 || inter() || view.steering || has_override(call.kind)) return false;
    StageTimes& times = stage.meter()->of(static_cast<size_t>(kind), call.bytes);
    if (times.is_decision_due()) {
        const std::array<int64_t, 2> mine = times.times();
        std::array<int64_t, 2> sums{};
        // After a failed sum the stage is unusable, so the operation itself reports the error.
        if (run(node::allreduce(on_node(), exchange, mine.data(), sums.data(), 2, datatype::predefined(MPI_INT64_T),
                                datatype::predefined(MPI_SUM)),
                label(calling)) != MPI_SUCCESS)
            return false;
        times.decide(sums);
    }
    const StageTimes::Call next = times.next();
    way_ = next.way;
    if (next.measured) {
        timed_ = &times;
        began_ = now_ns();
    }
    return next.way == StageWay::messages;
}

int run(const CommCall& call, Task task) {
    const int error = task.handle() ? run(std::move(task), call.label(calling)) : task.result();
    call.complete();
    delay_at("collective operation left");
    return error;
}

Task no_part(CommCall& call) {
    return call.when_known(
        [](CommCall& c) { return c.stage.node_of_all() ? node::skip(c.on_node_with_root()) : Task::completed(MPI_SUCCESS); });
}

Task barrier(CommCall& call) {
    return call.when_known([](CommCall& c) {
        if (c.fits_node({CollectiveKind::barrier})) return node::barrier(c.on_node());
        return c.inter() ? inter::barrier(c.view) : barrier(c.view);
    });
}

Task bcast(CommCall& call, void* buffer, int64_t count, const Datatype& type, int root) {
    return call.when_known([=, &type](CommCall& c) {
        CallParameters wanted{CollectiveKind::bcast};
        wanted.bytes = datatype::packed_size(type, count);
        wanted.pieces = !c.inter() || node::fits_room(c.exchange.size, wanted.bytes);
        if (c.fits_node(wanted)) {
            const Rooted of(c.exchange, root);
            return node::bcast(c.on_node_with_root(), of.root, of.members.has(c.exchange.rank), buffer, count, type, c.inter());
        }
        if (!c.inter()) return bcast(c.view, buffer, count, type, root);
        return beside_node(c, inter::bcast(c.view, buffer, count, type, root));
    });
}

Task reduce(CommCall& call, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, int root) {
    return call.when_known([=, &type, &op](CommCall& c) {
        CallParameters wanted{CollectiveKind::reduce};
        wanted.commutative = op.commutative;
        wanted.bytes = datatype::packed_size(type, count);
        wanted.pieces = !c.inter() && node::is_fragmented(type);
        if (c.fits_node(wanted)) {
            const Rooted of(c.exchange, root);
            return node::reduce(c.on_node_with_root(), of.root, of.members, input_of(send, receive), receive, count, type, op);
        }
        if (!c.inter()) return reduce(c.view, send, receive, count, type, op, root);
        return beside_node(c, inter::reduce(c.view, send, receive, count, type, op, root));
    });
}

Task allreduce(CommCall& call, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op) {
    return call.when_known([=, &type, &op](CommCall& c) {
        CallParameters wanted{CollectiveKind::allreduce};
        wanted.commutative = op.commutative;
        wanted.bytes = datatype::packed_size(type, count);
        wanted.pieces = node::is_fragmented(type);
        if (c.fits_node(wanted))
            return node::allreduce(c.on_node(), c.exchange, input_of(send, receive), receive, count, type, op);
        return c.inter() ? inter::allreduce(c.view, send, receive, count, type, op)
                         : allreduce(c.view, send, receive, count, type, op);
    });
}

Task gather(CommCall& call, const void* send, int64_t count, const Datatype& type, const Blocks& receive, int root) {
    return call.when_known([=, &type](CommCall& c) {
        const Rooted of(c.exchange, root);
        CallParameters wanted{CollectiveKind::gather};
        wanted.bytes = of.root == c.exchange.rank ? receive.bytes(0) : datatype::packed_size(type, count);
        wanted.uniform = receive.uniform();
        if (c.fits_node(wanted)) return node::gather(c.on_node_with_root(), of.root, of.members, send, count, type, receive);
        if (!c.inter()) return gather(c.view, send, count, type, receive, root);
        return beside_node(c, inter::gather(c.view, send, count, type, receive, root));
    });
}

Task scatter(CommCall& call, const Blocks& send, void* receive, int64_t count, const Datatype& type, int root) {
    return call.when_known([=, &type](CommCall& c) {
        const Rooted of(c.exchange, root);
        CallParameters wanted{CollectiveKind::scatter};
        wanted.bytes = of.root == c.exchange.rank ? send.bytes(0) : datatype::packed_size(type, count);
        wanted.uniform = send.uniform();
        // In an inter-communicator the root's other group members count the operation without knowing its size.
        wanted.pieces = !c.inter() || node::fits_room(c.exchange.size,
                                                      static_cast<uint64_t>(of.members.last - of.members.first) * wanted.bytes);
        if (c.fits_node(wanted)) return node::scatter(c.on_node_with_root(), of.root, of.members, send, receive, count, type);
        if (!c.inter()) return scatter(c.view, send, receive, count, type, root);
        return beside_node(c, inter::scatter(c.view, send, receive, count, type, root));
    });
}

Task allgather(CommCall& call, const void* send, int64_t count, const Datatype& type, const Blocks& receive) {
    return call.when_known([=, &type](CommCall& c) {
        CallParameters wanted{CollectiveKind::allgather};
        wanted.bytes = std::max(send == MPI_IN_PLACE ? 0 : datatype::packed_size(type, count), receive.bytes(0));
        wanted.uniform = receive.uniform();
        wanted.pieces = true;
        if (c.fits_node(wanted)) return node::allgather(c.on_node(), c.exchange, send, count, type, receive);
        return c.inter() ? inter::allgather(c.view, send, count, type, receive) : allgather(c.view, send, count, type, receive);
    });
}

Task alltoall(CommCall& call, bool in_place, const Blocks& send, const Blocks& receive) {
    return call.when_known([=](CommCall& c) {
        if (c.inter()) return inter::alltoall(c.view, send, receive);
        CallParameters wanted{CollectiveKind::alltoall};
        wanted.bytes = receive.uniform() ? receive.bytes(0) : 0;
        wanted.uniform = receive.uniform();
        wanted.pieces = true;
        if (c.fits_node(wanted)) return node::alltoall(c.on_node(), in_place ? receive : send, receive);
        return alltoall(c.view, in_place, send, receive);
    });
}

Task reduce_scatter(CommCall& call, const void* send, void* receive, const Shares& shares, const Datatype& type, const Op& op) {
    return call.when_known([=, &type, &op](CommCall& c) {
        CallParameters wanted{CollectiveKind::reduce_scatter};
        wanted.commutative = op.commutative;
        wanted.bytes = datatype::packed_size(type, shares.total(c.exchange.local_size));
        wanted.pieces = node::is_fragmented(type);
        if (c.fits_node(wanted))
            return node::reduce_scatter(c.on_node(), c.exchange, input_of(send, receive), receive, shares, type, op);
        return c.inter() ? inter::reduce_scatter(c.view, send, receive, shares, type, op)
                         : reduce_scatter(c.view, send, receive, shares, type, op);
    });
}

Task scan(CommCall& call, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, bool exclusive) {
    if (call.is_planned()) {  // Use messages at once, because a persistent scan needs no stage.
        call.view = View::all(call.exchange);
        return scan(call.view, send, receive, count, type, op, exclusive);
    }
    return call.when_known([=, &type, &op](CommCall& c) { return scan(c.view, send, receive, count, type, op, exclusive); });
}

}  // namespace starling::collective
