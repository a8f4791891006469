#include "player.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <utility>

#include "daemon.h"

namespace starling::simulation {

namespace {

/// Filler bytes of receive buffers before the receive, and of send buffers after the send.
constexpr char kUntouched = '\x33', kSpent = '\x55';
/// Element size and extent of strided types, in bytes.
constexpr int kWord = 8, kStride = 24;

std::vector<char> spread(const std::vector<char>& bytes) {
    std::vector<char> memory(bytes.size() / kWord * kStride, kUntouched);
    for (size_t at = 0; at < bytes.size(); ++at) memory[at / kWord * kStride + at % kWord] = bytes[at];
    return memory;
}

/// A message of a crowd (several messages to one MPI_ANY_SOURCE receiver) starts with its step's number, because the receiver does not know
/// which message it will be.
std::vector<char> message_of(const Step& step, uint64_t way = 0) {
    std::vector<char> bytes(step.bytes);
    for (size_t at = 0; at < bytes.size(); at += 8) {
        const uint64_t value = step.kind == Kind::crowd && at == 0 ? step.id : word(step.id * 2 + way, at);
        std::memcpy(bytes.data() + at, &value, std::min<size_t>(8, bytes.size() - at));
    }
    return bytes;
}

const char* name_of(Kind kind) {
    static constexpr const char* kNames[] = {
        "message", "exchange",   "crowd",   "cancelled send", "cancelled receive", "collective", "split",   "duplicate",
        "release", "compute",    "phase",   "window",         "symmetric memory",  "spawn",      "connect", "across",
        "merge",   "disconnect", "survive", "files", "replace"};
    return kNames[static_cast<int>(kind)];
}

bool is_for_all(const Step& step) {
    switch (step.kind) {
        case Kind::message:
        case Kind::exchange:
        case Kind::crowd:
        case Kind::cancel_send:
        case Kind::cancel_receive:
        case Kind::compute:
            return false;
        default:
            return true;
    }
}

}  // namespace

Player::Allowed Player::with(const Step& step, int rank) const { return with(script_.communities[step.comm].members, rank); }

Player::Allowed Player::with_receiver(const Step& step, int rank) const {
    return with(script_.communities[step.comm].receivers(), rank);
}

// A spawned job of which a rank may die may be ended as a whole, while its parents go on and finish.
Player::Allowed Player::with(const std::vector<uint32_t>& group, int rank) const {
    if (process_.job > 0 && script_.doomed[me_]) return Allowed::anything;
    return script_.fails_with(group, rank) ? Allowed::death : Allowed::nothing;
}

bool Player::ok(int code, const char* what, Allowed allowed) {
    if (code == MPI_SUCCESS) return true;
    int error = 0, length = 0;
    char text[MPI_MAX_ERROR_STRING] = "";
    mpi_.Error_class(code, &error);
    mpi_.Error_string(code, text, &length);
    if (allowed == Allowed::anything || (allowed == Allowed::death && error == MPIX_ERR_PROC_FAILED) ||
        (allowed == Allowed::spawn_failure && error == MPI_ERR_SPAWN))
        return false;
    if (daemons()->is_ending()) world()->stay();
    fail_run("%s: %s", what, text);
}

void Player::begin_mpi() {
    process_.doing = "MPI_Init";
    ok(mpi_.Init(nullptr, nullptr), "MPI_Init");
    // Errors are returned only if ranks may die. In other runs the library's error handler reports an error and ends the run.
    if (script_.mortal) ok(mpi_.Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    const ScriptJob& job = script_.jobs[process_.job];
    check_place(MPI_COMM_WORLD, script_.communities[job.world]);
    comms_.assign(script_.communities.size(), MPI_COMM_NULL);
    for (size_t i = 0; i < comms_.size(); ++i)
        if (script_.communities[i].predefined && script_.communities[i].members == std::vector{me_}) comms_[i] = MPI_COMM_SELF;
    comms_[job.world] = MPI_COMM_WORLD;
    if (script_.mortal) ok(mpi_.Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    if (process_.job > 0) find_parents(job);
}

void Player::check_place(MPI_Comm made, const Community& wanted) {
    int rank = -1, size = -1;
    ok(mpi_.Comm_rank(made, &rank), "MPI_Comm_rank");
    ok(mpi_.Comm_size(made, &size), "MPI_Comm_size");
    if (rank != wanted.rank_of(me_) || size != static_cast<int>(wanted.members.size()))
        fail_run("is rank %d of %d, should be %d of %zu", rank, size, wanted.rank_of(me_), wanted.members.size());
}

// Waits for all processes with which this one has a communicator. All processes pass the barriers in the same order.
void Player::await_all() {
    for (size_t i = 0; i < comms_.size(); ++i)
        if (comms_[i] == MPI_COMM_WORLD || (comms_[i] != MPI_COMM_NULL && script_.spans_jobs(script_.communities[i])))
            ok(mpi_.Barrier(comms_[i]), "MPI_Barrier");
}

void Player::run() {
    if (process_.job > script_.placement.further.size()) return run_as_substitute();
    const bool symmetric = script_.symmetric && process_.job == 0;
    if (symmetric && script_.symmetric_first) begin_symmetric();
    begin_mpi();
    for (const Step& step : script_.steps) {
        if (step.id < script_.jobs[process_.job].first_step) continue;
        if (const std::string phase = script_.placement.plans.mark(step.id, me_); !phase.empty()) {
            done().add(Feature::plans);
            ok(mpi_.Phase_begin(MPI_COMM_WORLD, phase.c_str()), "MPIX_Phase_begin");
        }
        play(step);
    }
    wait_for_all();
    check_crowds();
    if (!script_.mortal) {
        process_.doing = "the last barrier";
        await_all();
        // Every message was received: none is left, and none came twice.
        int left = 0;
        MPI_Status status;
        for (const MPI_Comm each : comms_) {
            if (each == MPI_COMM_NULL) continue;
            ok(mpi_.Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, each, &left, &status), "MPI_Iprobe");
            if (left) fail_run("a message from %d with tag %d is left over", status.MPI_SOURCE, status.MPI_TAG);
        }
        await_all();
    }
    if (!script_.symmetric_last) end_symmetric();
    process_.doing = "MPI_Finalize";
    ok(mpi_.Finalize(), "MPI_Finalize");
    end_symmetric();
}

bool Player::is_member(const Step& step) const {
    const Community& community = script_.communities[step.comm];
    const auto holds = [this](const std::vector<uint32_t>& group) {
        return std::find(group.begin(), group.end(), me_) != group.end();
    };
    return holds(community.members) || holds(community.remote) ||
           (step.kind == Kind::connect && holds(script_.communities[step.other].members));
}

void Player::play(const Step& step) {
    const Community& community = script_.communities[step.comm];
    const auto is_rank = [this](const std::vector<uint32_t>& group, int rank) {
        return static_cast<size_t>(rank) < group.size() && group[static_cast<size_t>(rank)] == me_;
    };
    const bool sends = is_rank(community.members, step.from), receives = is_rank(community.receivers(), step.to);
    if (!sends && !receives && !(is_for_all(step) && is_member(step))) return;
    if (script_.mortal && community.is_inter() && comm(step) == MPI_COMM_NULL) return;  // the spawn failed, as allowed
    const bool collective = step.kind == Kind::collective || step.kind == Kind::across;
    char text[160];
    std::snprintf(text, sizeof text, "step %u, %s%s%s of %u bytes from %d to %d, tag %d, in communicator %u of %zu", step.id,
                  name_of(step.kind), collective ? " " : "", collective ? name_of(step.collective) : "",
                  collective ? step.count * 8 : step.bytes, step.from, step.to, step.tag, step.comm, community.members.size());
    // Not checked if ranks may die: a rank that is awake is not rung and checks for deaths only now and then, so it may notice them late.
    if (!script_.mortal && process_.lapsed == world()->switches())
        fail_run("a wake-up was lost: the rank slept on although its wait had ended, and no process rang it; next: %s", text);
    process_.doing = text;
    world()->note("step", me_, step.id);
    if (world()->trace) std::fprintf(stderr, "             %s\n", text);
    for (const Fault& fault : script_.faults)
        if (fault.rank == me_ && fault.step == step.id && fault.call == 0)
            world()->at(world()->now + fault.at, [&process = process_] {
                if (!process.gone()) daemons()->kill(process);
            });
    world()->happened();
    switch (step.kind) {
        case Kind::message:
        case Kind::crowd:
            // Exchanges with itself in either order, drawn at random: neither call waits.
            if (receives && sends && random_.one_in(2)) {
                receive(step, step.from);
                return send(step, step.to);
            }
            if (sends) send(step, step.to);
            if (receives) receive(step, step.kind == Kind::crowd ? MPI_ANY_SOURCE : step.from);
            return;
        case Kind::exchange:
            return take_part_in_exchange(step);
        case Kind::cancel_send:
            return cancel_send(step);
        case Kind::cancel_receive:
            return cancel_receive(step);
        case Kind::collective:
            return take_part(step);
        case Kind::split:
        case Kind::duplicate:
            return split(step);
        case Kind::release:
            ok(mpi_.Comm_free(&comms_[step.comm]), "MPI_Comm_free");
            if (community.is_inter()) comms_[step.comm + 1] = MPI_COMM_NULL;
            return;
        case Kind::spawn:
            return spawn(step);
        case Kind::connect:
            return connect(step);
        case Kind::across:
            return take_part_across(step);
        case Kind::merge:
            return merge(step);
        case Kind::disconnect:
            return disconnect(step);
        case Kind::survive:
            return survive(step);
        case Kind::files:
            return use_files(step);
        case Kind::replace:
            return replace(step);
        case Kind::window:
            return use_window(step);
        case Kind::symmetric:
            return use_symmetric(step);
        case Kind::phase:
            wait_for_all();
            ok(mpi_.Phase_begin(MPI_COMM_WORLD, ("phase " + std::to_string(step.count)).c_str()), "MPIX_Phase_begin");
            return;
        case Kind::compute:
            if (sends) world()->compute(step.ns);
            return;
    }
}

Player::Pending& Player::begin(const Step& step) {
    Pending& made = pending_.emplace_back();
    made.step = &step;
    return made;
}

void Player::keep_or_wait(const Step& step) {
    if (step.waits && step.kind != Kind::crowd && random_.one_in(2))
        wait_for_all();
    else if (step.waits && step.kind != Kind::crowd)
        wait_for_some();
}

MPI_Datatype Player::strided_type(uint32_t bytes) {
    MPI_Datatype type;
    ok(mpi_.Type_vector(static_cast<int>(bytes / kWord), kWord, kStride, MPI_BYTE, &type), "MPI_Type_vector");
    ok(mpi_.Type_commit(&type), "MPI_Type_commit");
    return type;
}

std::vector<char> Player::received(const Pending& pending) const {
    if (!pending.strided) return pending.in;
    std::vector<char> bytes;
    for (size_t at = 0; at < pending.in.size(); ++at) {
        if (at % kStride < kWord)
            bytes.push_back(pending.in[at]);
        else if (pending.in[at] != kUntouched)
            fail_run("step %u has written between the words of a strided type, at %zu", pending.step->id, at);
    }
    return bytes;
}

void Player::send(const Step& step, int to) {
    const Allowed allowed = with_receiver(step, to);
    Pending& pending = begin(step);
    pending.out = step.strided_out ? spread(message_of(step)) : message_of(step);
    pending.allowed = allowed;
    MPI_Datatype type = step.strided_out ? strided_type(step.bytes) : MPI_BYTE;
    const int count = step.strided_out ? 1 : static_cast<int>(step.bytes);
    char* const data = pending.out.data();
    switch (step.send) {
        case SendWay::send:
            ok(mpi_.Send(data, count, type, to, step.tag, comm(step)), "MPI_Send", allowed);
            break;
        case SendWay::ssend:
            ok(mpi_.Ssend(data, count, type, to, step.tag, comm(step)), "MPI_Ssend", allowed);
            break;
        case SendWay::isend:
            ok(mpi_.Isend(data, count, type, to, step.tag, comm(step), &pending.request), "MPI_Isend", allowed);
            break;
        case SendWay::issend:
            ok(mpi_.Issend(data, count, type, to, step.tag, comm(step), &pending.request), "MPI_Issend", allowed);
            break;
        case SendWay::persistent:
            pending.persistent = true;
            ok(mpi_.Ssend_init(data, count, type, to, step.tag, comm(step), &pending.request), "MPI_Ssend_init");
            ok(mpi_.Start(&pending.request), "MPI_Start", allowed);
            break;
    }
    // A datatype may be freed while it is in use.
    if (step.strided_out) ok(mpi_.Type_free(&type), "MPI_Type_free");
    if (pending.request != MPI_REQUEST_NULL) return keep_or_wait(step);
    // A completed operation's buffer may be reused.
    std::fill(pending.out.begin(), pending.out.end(), kSpent);
    pending_.pop_back();
}

// Returns the length of the receive buffer. The messages of a crowd (several to one MPI_ANY_SOURCE receiver) differ in length.
uint32_t Player::room_for(const Step& step) const {
    uint32_t room = step.bytes;
    const std::vector<Step>& all = script_.steps;
    for (uint32_t id = step.crowd;
         step.kind == Kind::crowd && id < all.size() && all[id].kind == Kind::crowd && all[id].crowd == step.crowd; ++id)
        room = std::max(room, all[id].bytes);
    return room;
}

void Player::receive(const Step& step, int source) {
    const Allowed allowed = with(step, step.from);
    const int tag = step.any_tag && step.kind == Kind::message ? MPI_ANY_TAG : step.tag;
    if (step.receive >= ReceiveWay::probe && step.receive != ReceiveWay::test) return take(step, source, tag, allowed);
    Pending& pending = begin(step);
    pending.allowed = allowed;
    pending.strided = step.strided_in;
    pending.in.assign(step.strided_in ? step.bytes / kWord * kStride : room_for(step), kUntouched);
    pending.check = [this](Pending& done, MPI_Status& status) { compare(*done.step, received(done), status, done.step->from); };
    MPI_Datatype type = step.strided_in ? strided_type(step.bytes) : MPI_BYTE;
    const int count = step.strided_in ? 1 : static_cast<int>(pending.in.size());
    char* const data = pending.in.data();
    if (step.receive == ReceiveWay::recv) {
        MPI_Status status;
        if (ok(mpi_.Recv(data, count, type, source, tag, comm(step), &status), "MPI_Recv", allowed))
            pending.check(pending, status);
    } else if (step.receive == ReceiveWay::persistent) {
        pending.persistent = true;
        ok(mpi_.Recv_init(data, count, type, source, tag, comm(step), &pending.request), "MPI_Recv_init");
        ok(mpi_.Start(&pending.request), "MPI_Start", allowed);
    } else {
        ok(mpi_.Irecv(data, count, type, source, tag, comm(step), &pending.request), "MPI_Irecv", allowed);
    }
    if (step.strided_in) ok(mpi_.Type_free(&type), "MPI_Type_free");
    if (step.receive == ReceiveWay::test && step.kind != Kind::crowd && step.from != step.to) test_until_done(pending);
    if (pending.request != MPI_REQUEST_NULL) return keep_or_wait(step);
    pending_.pop_back();
}

void Player::test_until_done(Pending& pending) {
    for (int done = 0; !done && pending.request != MPI_REQUEST_NULL;) {
        MPI_Status status;
        if (!ok(mpi_.Test(&pending.request, &done, &status), "MPI_Test", pending.allowed)) return;
        if (done) pending.check(pending, status);
    }
}

// Probes for the message first, then receives it.
void Player::take(const Step& step, int source, int tag, Allowed allowed) {
    MPI_Status seen, status;
    MPI_Message message = MPI_MESSAGE_NULL;
    int found = 0, bytes = 0;
    if (step.receive == ReceiveWay::mprobe) {
        if (!ok(mpi_.Mprobe(source, tag, comm(step), &message, &seen), "MPI_Mprobe", allowed)) return;
    } else if (step.receive == ReceiveWay::probe) {
        if (!ok(mpi_.Probe(source, tag, comm(step), &seen), "MPI_Probe", allowed)) return;
    } else {
        while (!found)
            if (!ok(mpi_.Iprobe(source, tag, comm(step), &found, &seen), "MPI_Iprobe", allowed)) return;
    }
    ok(mpi_.Get_count(&seen, MPI_BYTE, &bytes), "MPI_Get_count");
    std::vector<char> in(static_cast<size_t>(bytes), kUntouched);
    const int code = message != MPI_MESSAGE_NULL
                         ? mpi_.Mrecv(in.data(), bytes, MPI_BYTE, &message, &status)
                         : mpi_.Recv(in.data(), bytes, MPI_BYTE, seen.MPI_SOURCE, seen.MPI_TAG, comm(step), &status);
    if (ok(code, "receiving what was probed", allowed)) compare(step, in, status, step.from);
}

void Player::compare(const Step& step, const std::vector<char>& in, const MPI_Status& status, int source) {
    if (step.kind == Kind::crowd) return check_crowd(step, in, status);
    int bytes = -1;
    mpi_.Get_count(&status, MPI_BYTE, &bytes);
    if (status.MPI_SOURCE != source || status.MPI_TAG != step.tag || bytes != static_cast<int>(step.bytes))
        fail_run("step %u's message is from %d, tag %d, %d bytes; it should be from %d, tag %d, %u bytes", step.id,
                 status.MPI_SOURCE, status.MPI_TAG, bytes, source, step.tag, step.bytes);
    const std::vector<char> wanted = message_of(step, step.kind == Kind::exchange && source == step.to && source != step.from);
    if (wanted.empty() || std::memcmp(wanted.data(), in.data(), wanted.size()) == 0) return;
    const auto wrong = std::mismatch(wanted.begin(), wanted.end(), in.begin());
    fail_run("step %u's message of %u bytes differs from byte %td on", step.id, step.bytes, wrong.first - wanted.begin());
}

void Player::check_crowd(const Step& step, const std::vector<char>& in, const MPI_Status& status) {
    uint64_t id = 0;
    std::memcpy(&id, in.data(), std::min<size_t>(8, in.size()));
    const bool known =
        id < script_.steps.size() && script_.steps[id].kind == Kind::crowd && script_.steps[id].crowd == step.crowd;
    if (!known) fail_run("step %u, one of a crowd, has received a message that no rank sent to it", step.id);
    const Step& sent = script_.steps[id];
    int bytes = -1;
    mpi_.Get_count(&status, MPI_BYTE, &bytes);
    const std::vector<char> wanted = message_of(sent);
    if (status.MPI_SOURCE != sent.from || status.MPI_TAG != sent.tag || bytes != static_cast<int>(sent.bytes) ||
        !std::equal(wanted.begin(), wanted.end(), in.begin()))
        fail_run("step %u has received step %" PRIu64 "'s message, but as from %d, tag %d, %d bytes, or with other content",
                 step.id, id, status.MPI_SOURCE, status.MPI_TAG, bytes);
    crowds_[step.crowd][step.place] = sent.id;
}

// Checks that each message of a crowd (several to one MPI_ANY_SOURCE receiver) arrived once, and those of one sender in order.
void Player::check_crowds() {
    for (const auto& [first, received] : crowds_) {
        std::map<int, uint32_t> last;
        std::vector<uint32_t> ids;
        for (const auto& [place, id] : received) {
            ids.push_back(id);
            const int from = script_.steps[id].from;
            if (last.count(from) && last[from] >= id) fail_run("step %u's message was overtaken by step %u's", last[from], id);
            last[from] = id;
        }
        std::sort(ids.begin(), ids.end());
        for (size_t i = 0; i < ids.size(); ++i)
            if (ids[i] != first + i) fail_run("a message of the crowd of step %u is missing or arrived twice", first);
    }
}

void Player::take_part_in_exchange(const Step& step) {
    const Community& community = script_.communities[step.comm];
    const bool first = community.rank_of(me_) == step.from;
    const int other = first ? step.to : step.from;
    const Allowed allowed = with(step, other);
    std::vector<char> out = message_of(step, first ? 0 : 1), in(step.bytes, kUntouched);
    const auto bytes = static_cast<int>(step.bytes);
    MPI_Status status;
    if (ok(mpi_.Sendrecv(out.data(), bytes, MPI_BYTE, other, step.tag, in.data(), bytes, MPI_BYTE, other, step.tag, comm(step),
                         &status),
           "MPI_Sendrecv", allowed))
        compare(step, in, status, other);
}

// Sends a message and cancels it. The sender then reports whether it was cancelled, so that the receiver knows whether to receive it.
void Player::cancel_send(const Step& step) {
    const Community& community = script_.communities[step.comm];
    MPI_Status status;
    int cancelled = 0;
    if (community.rank_of(me_) == step.from) {
        std::vector<char> out = message_of(step);
        MPI_Request request;
        const auto start = step.send == SendWay::issend ? mpi_.Issend : mpi_.Isend;
        ok(start(out.data(), static_cast<int>(step.bytes), MPI_BYTE, step.to, step.tag, comm(step), &request), "MPI_Isend");
        if (random_.one_in(2)) world()->compute(random_.below(200'000));
        ok(mpi_.Cancel(&request), "MPI_Cancel");
        ok(mpi_.Wait(&request, &status), "MPI_Wait");
        ok(mpi_.Test_cancelled(&status, &cancelled), "MPI_Test_cancelled");
        std::fill(out.begin(), out.end(), kSpent);
        ok(mpi_.Send(&cancelled, 1, MPI_INT, step.to, step.tag + 1, comm(step)), "MPI_Send");
        return;
    }
    ok(mpi_.Recv(&cancelled, 1, MPI_INT, step.from, step.tag + 1, comm(step), &status), "MPI_Recv");
    if (cancelled) return;
    std::vector<char> in(step.bytes, kUntouched);
    ok(mpi_.Recv(in.data(), static_cast<int>(step.bytes), MPI_BYTE, step.from, step.tag, comm(step), &status), "MPI_Recv");
    compare(step, in, status, step.from);
}

void Player::cancel_receive(const Step& step) {
    const Community& community = script_.communities[step.comm];
    const bool comes = !step.any_tag;
    if (community.rank_of(me_) == step.from) {
        if (comes) send(step, step.to);
        return;
    }
    std::vector<char> in(step.bytes, kUntouched);
    MPI_Request request;
    MPI_Status status;
    int cancelled = 0;
    const auto post = [&] {
        ok(mpi_.Irecv(in.data(), static_cast<int>(step.bytes), MPI_BYTE, step.from, step.tag, comm(step), &request),
           "MPI_Irecv");
    };
    post();
    if (random_.one_in(2)) world()->compute(random_.below(200'000));
    int done = 0;
    if (random_.one_in(2)) ok(mpi_.Iprobe(step.from, step.tag, comm(step), &done, &status), "MPI_Iprobe");
    ok(mpi_.Cancel(&request), "MPI_Cancel");
    ok(mpi_.Wait(&request, &status), "MPI_Wait");
    ok(mpi_.Test_cancelled(&status, &cancelled), "MPI_Test_cancelled");
    if (!comes && !cancelled) fail_run("step %u: a receive without a message was not cancelled", step.id);
    if (!comes) return;
    if (cancelled) {
        post();
        ok(mpi_.Wait(&request, &status), "MPI_Wait");
    }
    compare(step, in, status, step.from);
}

void Player::split(const Step& step) {
    const int rank = script_.communities[step.comm].rank_of(me_);
    const auto color = static_cast<uint32_t>(rank) % step.colors;
    MPI_Comm& made = comms_[step.made + color];
    if (step.kind == Kind::duplicate)
        ok(mpi_.Comm_dup(comm(step), &made), "MPI_Comm_dup");
    else
        ok(mpi_.Comm_split(comm(step), static_cast<int>(color), -rank, &made), "MPI_Comm_split");
    check_place(made, script_.communities[step.made + color]);
}

void Player::wait(Pending& pending) {
    MPI_Status status;
    if (pending.request == MPI_REQUEST_NULL) return;  // the operation failed at once, as allowed
    const std::string before =
        std::exchange(process_.doing, process_.doing + "; waits for step " + std::to_string(pending.step->id));
    const bool good = ok(mpi_.Wait(&pending.request, &status), "MPI_Wait", pending.allowed);
    process_.doing = before;
    if (!good) pending.check = nullptr;
    finish(pending, status);
}

void Player::finish(Pending& pending, MPI_Status& status) {
    if (pending.persistent) ok(mpi_.Request_free(&pending.request), "MPI_Request_free");
    if (pending.check) pending.check(pending, status);
    std::fill(pending.out.begin(), pending.out.end(), kSpent);
}

/// Returns the requests of all pending operations, and names their steps for reports of a hang.
std::vector<MPI_Request> Player::all_pending() {
    std::vector<MPI_Request> requests;
    process_.doing += "; waits for steps";
    for (const Pending& pending : pending_) {
        requests.push_back(pending.request);
        process_.doing += " " + std::to_string(pending.step->id);
    }
    return requests;
}

void Player::wait_for_any() {
    const std::string before = process_.doing;
    std::vector<MPI_Request> requests = all_pending();
    MPI_Status status;
    int index = MPI_UNDEFINED;
    ok(mpi_.Waitany(static_cast<int>(requests.size()), requests.data(), &index, &status), "MPI_Waitany");
    process_.doing = before;
    if (index == MPI_UNDEFINED) fail_run("MPI_Waitany returned MPI_UNDEFINED for %zu requests", requests.size());
    Pending& done = pending_[static_cast<size_t>(index)];
    done.request = requests[static_cast<size_t>(index)];
    finish(done, status);
    pending_.erase(pending_.begin() + index);
}

void Player::wait_for_all_at_once() {
    const std::string before = process_.doing;
    std::vector<MPI_Request> requests = all_pending();
    std::vector<MPI_Status> statuses(requests.size());
    ok(mpi_.Waitall(static_cast<int>(requests.size()), requests.data(), statuses.data()), "MPI_Waitall");
    process_.doing = before;
    for (size_t i = 0; i < requests.size(); ++i) {
        pending_[i].request = requests[i];
        finish(pending_[i], statuses[i]);
    }
    pending_.clear();
}

void Player::wait_for_some() {
    for (uint64_t count = random_.below(4); count > 0 && !pending_.empty(); --count) {
        const auto at = pending_.begin() + static_cast<std::ptrdiff_t>(random_.below(pending_.size()));
        wait(*at);
        pending_.erase(at);
    }
}

// If failures are allowed, waits one by one, because each operation has its own error.
void Player::wait_for_all() {
    const uint64_t way = script_.mortal ? 0 : random_.below(3);
    if (way == 1 && !pending_.empty()) return wait_for_all_at_once();
    while (!pending_.empty()) {
        if (way == 2) {
            wait_for_any();
            continue;
        }
        wait(pending_.front());
        pending_.pop_front();
    }
}

}  // namespace starling::simulation
