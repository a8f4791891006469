// Ports, accept and connect (MPI 5.0 section 11.9). A port name contains the address of its owner's inbox, so no third process is needed.
// The connecting root sends a request there, with a context id for the exchange between the roots. Both roots then exchange their groups in
// that context.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/state.h"
#include "base/wire.h"
#include "datatype/datatype.h"
#include "dynamic/dynamic.h"
#include "dynamic/parent_comm.h"
#include "dynamic/root_result.h"
#include "job/environment.h"
#include "link/job_reclaim.h"
#include "link/peer.h"
#include "link/remote_peer.h"
#include "message/closed_contexts.h"
#include "message/point_to_point.h"
#include "progress/engine.h"

namespace starling::dynamic {

namespace {

/// Payload of a `knock` packet, which requests a connection to a port, or refuses or withdraws a request.
struct ConnectRequest {
    enum Type : uint32_t { connect, refused } type;
    uint32_t port;
    uint64_t context;  ///< context of the exchange between the two roots
};

struct WaitingConnector {
    link::Peer* peer;
    uint64_t context;
    link::JobHold hold{&peer->job};  ///< keeps the peer until its request is accepted
};

struct OpenPorts {
    uint32_t next = 1;
    std::map<uint32_t, std::list<WaitingConnector>> open;  ///< processes that wait for MPI_Comm_accept, by port, oldest first
    std::map<uint64_t, bool> talks;  ///< contexts of the exchanges in progress; value true: the other side has refused
};
STARLING_STATE Lazy<OpenPorts> made_ports;
OpenPorts& ports() { return made_ports.get(); }

void send_knock(link::Peer& peer, ConnectRequest knock) {
    link::send_control(peer, packet::PacketKind::knock, &knock, sizeof knock);
}

int fail_of_closed_port() {
    return fail(MPI_ERR_PORT, "the port was never opened, or has been closed; MPI_Open_port opens one");
}

void on_knock(link::Peer& peer, const link::Packet& packet) {
    ConnectRequest knock;
    if (packet.header.bytes < sizeof knock) return;
    std::memcpy(&knock, packet.payload, sizeof knock);
    const auto port = ports().open.find(knock.port);
    if (knock.type == ConnectRequest::refused) {
        if (const auto talk = ports().talks.find(knock.context); talk != ports().talks.end()) talk->second = true;
        // A connector that sends `refused` itself withdraws its request.
        if (port != ports().open.end())
            port->second.remove_if([&](const WaitingConnector& c) { return c.context == knock.context; });
        return;
    }
    if (port == ports().open.end())
        send_knock(peer, {ConnectRequest::refused, knock.port, knock.context});
    else
        port->second.push_back(WaitingConnector{&peer, knock.context});
}

struct PortName {
    job::JobAddress job;
    uint32_t rank = 0;
    uint32_t port = 0;
};

constexpr const char* kPrefix = "starling-port:";

std::string to_text(const PortName& name) {
    char host[24];
    std::snprintf(host, sizeof host, ":%" PRIx64 ":", name.job.host);
    return kPrefix + std::to_string(name.rank) + ":" + std::to_string(name.port) + host + job::to_string(name.job);
}

int parse(const char* text, PortName& name) {
    int used = 0;
    uint64_t host = 0;
    const size_t prefix = std::strlen(kPrefix);
    if (text && std::strncmp(text, kPrefix, prefix) == 0 &&
        std::sscanf(text + prefix, "%" SCNu32 ":%" SCNu32 ":%" SCNx64 ":%n", &name.rank, &name.port, &host, &used) == 3 &&
        used > 0 && job::parse_address(text + prefix + used, name.job)) {
        name.job.host = host;
        return MPI_SUCCESS;
    }
    return fail(MPI_ERR_PORT,
                "\"%.80s\" is not a port name of Starling; use one that MPI_Open_port or MPI_Lookup_name returned",
                text ? text : "");
}

/// A roster (list of the processes of a match context) with one process.
class OneProcess final : public message::Roster {
  public:
    explicit OneProcess(link::Process process) : process_(process), hold_(process.job) {}
    int size() const override { return 1; }
    link::Process at(int) const override { return process_; }

  private:
    link::Process process_;
    link::JobHold hold_;
};

/// A send that may outlive its caller: if the other side refuses or ends, the send deletes itself when it completes.
struct DetachedSend : message::SendRequest {
    std::string bytes;

    explicit DetachedSend(std::string_view text) : bytes(text) { operations = &kClass; }
    static void leave(DetachedSend* send) {
        if (send->done)
            delete send;
        else
            send->orphaned = true;
    }
    static const progress::RequestClass kClass;
};
constexpr progress::RequestClass DetachedSend::kClass{
    .dispose = [](progress::Request& r) { delete static_cast<DetachedSend*>(&r); }};
using OutgoingPointer = std::unique_ptr<DetachedSend, decltype([](DetachedSend* send) { DetachedSend::leave(send); })>;

/// The exchange of messages between the two roots of a connection, in a context that is used for nothing else.
class Talk {
  public:
    Talk(uint64_t context, link::Process other)
        : other_(other), channel_(context, other_, 0), refused_(ports().talks.try_emplace(context, false).first->second) {}
    ~Talk() {
        ports().talks.erase(channel_.context());
        message::retire_context(channel_.context());
    }
    Talk(const Talk&) = delete;
    Talk& operator=(const Talk&) = delete;

    /// Sends `mine` and receives the other root's text. A refusal by the other side ends the exchange early.
    int swap(std::string_view mine, std::string& theirs) {
        const OutgoingPointer send = start(mine, kText);
        uint64_t size = mine.size();
        if (const int error = swap_word(kSize, size)) return error;
        theirs.resize(size);
        message::ReceiveRequest receive;
        start(receive, theirs.data(), size, kText);
        progress::wait(receive);
        progress::wait(*send);
        return receive.outcome.error ? progress::error_of(receive) : progress::error_of(*send);
    }
    /// Exchanges with the other side whether all members of a side have what they need for the connection; `error` is this side's result,
    /// with failure_text(). Returns an error if either side failed. A side that fails earlier, for lack of memory, refuses, so that neither
    /// side proceeds alone.
    int agree(int error) {
        const std::string text(error ? failure_text() : std::string_view());
        uint64_t word = kAllIsWell + static_cast<uint64_t>(error);
        const int lost = swap_word(kAgreed, word);
        if (error) return fail(error, "%s", text.c_str());
        if (lost) return lost;
        return word == kAllIsWell
                   ? MPI_SUCCESS
                   : fail(MPI_ERR_OTHER,
                          "a process on the other side of the port failed; the error of its call has the reason");
    }
    void refuse(uint32_t port) {
        const link::Process other = other_.at(0);
        if (link::Peer* peer = other.job->peer(other.rank))
            send_knock(*peer, {ConnectRequest::refused, port, channel_.context()});
    }

  private:
    enum Tag : int { kText, kSize, kAgreed };
    static constexpr uint64_t kAllIsWell = 1;

    int swap_word(Tag tag, uint64_t& word) {
        const OutgoingPointer send = start({reinterpret_cast<char*>(&word), sizeof word}, tag);
        message::ReceiveRequest receive;
        start(receive, &word, sizeof word, tag);
        progress::wait_until([&] { return receive.done || refused_ || finalized(); });
        progress::poll();  // handles packets that the other side sent before it ended
        if (refused_ || !receive.done) {
            message::cancel_receive(receive);
            return fail_of_closed_port();
        }
        if (receive.outcome.error) return progress::error_of(receive);
        progress::wait(*send);
        return progress::error_of(*send);
    }

    /// Returns whether the other side has called MPI_Finalize, and so will never reply.
    bool finalized() const {
        const link::Peer* other = other_.at(0).job->find_peer(other_.at(0).rank);
        return other && link::has_finalized(*other);
    }

    void start(message::ReceiveRequest& receive, void* into, uint64_t bytes, Tag tag) {
        message::start_receive(receive, channel_, into, static_cast<int64_t>(bytes), datatype::predefined(MPI_BYTE), 0, tag);
    }
    OutgoingPointer start(std::string_view text, Tag tag) {
        OutgoingPointer send(new DetachedSend(text));
        message::start_send(*send, channel_, send->bytes.data(), static_cast<int64_t>(send->bytes.size()),
                            datatype::predefined(MPI_BYTE), 0, tag, message::SendMode::standard);
        return send;
    }

    OneProcess other_;
    message::MatchContext channel_;
    const bool& refused_;
};

/// The data that each root sends to the other root, which broadcasts it to the members of its own side.
struct ConnectSide {
    uint64_t context = 0;  ///< context of the new communicator; the accepting side's is used
    std::string group;
};
std::string encode(const ConnectSide& side) { return Writer().number(side.context).string(side.group).take(); }
bool decode(std::string_view bytes, ConnectSide& side) {
    Reader reader(bytes);
    side.context = reader.number<uint64_t>();
    side.group = reader.string();
    return reader.done();
}

/// The root's state of a connection, until both sides have agreed.
struct Meeting {
    std::optional<Talk> talk;
    uint32_t port = 0;
    std::string result;  ///< description of the other side, encoded for the members of this side

    void refuse() {
        if (talk) talk->refuse(port);
        talk.reset();
    }
};

int connect_roots(Meeting& meeting, comm::Comm& comm, uint64_t context, bool accepting) {
    std::string theirs;
    const ConnectSide mine{context, encode(comm.local_group())};
    if (const int error = meeting.talk->swap(encode(mine), theirs)) {
        meeting.talk.reset();
        return error;
    }
    ConnectSide other;
    comm::Group* remote = decode(theirs, other) ? comm::decode_group(other.group) : nullptr;
    if (!remote)
        return fail(MPI_ERR_INTERN,
                    "the message from the other side of a port is invalid; use one version of "
                    "Starling on both sides");
    const bool apart = disjoint(comm.local_group(), *remote);
    remote->release();
    if (!apart) {
        meeting.talk.reset();  // no refusal is sent: the other side detects the same error
        return fail(MPI_ERR_COMM, "a process is on both sides of the port; the two groups must have no process in common");
    }
    if (accepting) other.context = context;
    meeting.result = encode(other);
    return MPI_SUCCESS;
}

/// Calls connect_roots(). After an error, refuses the connection, so that the other root does not wait forever.
int connect_or_refuse(Meeting& meeting, link::Process other, comm::Comm& comm, uint64_t talk_context, uint64_t context,
                      bool accepting) {
    try {
        meeting.talk.emplace(talk_context, other);
        const int error = connect_roots(meeting, comm, context, accepting);
        const std::string text(error ? failure_text() : std::string_view());
        if (!error) return MPI_SUCCESS;
        meeting.refuse();
        return fail(error, "%s", text.c_str());
    } catch (const std::bad_alloc&) {
        if (link::Peer* peer = other.job->peer(other.rank))
            send_knock(*peer, {ConnectRequest::refused, meeting.port, talk_context});
        meeting.talk.reset();
        throw;
    }
}

bool is_self(const job::JobAddress& job, uint32_t rank) {
    return job == link::self().job->address() && rank == link::self().rank;
}

int fail_of_own_port() {
    return fail(MPI_ERR_COMM,
                "a process has connected to a port of its own; the groups on both sides must have no process in common");
}

int accept_at_root(comm::Comm& comm, const char* name_text, Meeting& meeting) {
    PortName name;
    if (const int error = parse(name_text, name)) return error;
    const bool ours = is_self(name.job, name.rank);
    auto port = ports().open.end();
    const auto comes = [&] {
        port = ports().open.find(name.port);
        return port == ports().open.end() || !port->second.empty();
    };
    // Repeat the wait: another thread may close the port meanwhile, or the connector may have withdrawn when the wait ends.
    do {
        if (ours) progress::wait_until(comes);
    } while (ours && !comes());
    if (!ours || port == ports().open.end())
        return fail(MPI_ERR_PORT, "the port was not opened by this process, or was closed; MPI_Open_port opens one");
    const WaitingConnector caller = port->second.front();
    port->second.pop_front();
    const uint64_t context = comm::new_context();
    const bool own = is_self(caller.peer->job.address(), caller.peer->rank);
    if (const int error = own ? fail_of_own_port() : comm::check_context(context)) {
        send_knock(*caller.peer, {ConnectRequest::refused, name.port, caller.context});
        return error;
    }
    meeting.port = name.port;
    return connect_or_refuse(meeting, {&caller.peer->job, caller.peer->rank}, comm, caller.context, context, true);
}

int connect_at_root(comm::Comm& comm, const char* name_text, Meeting& meeting) {
    PortName name;
    if (const int error = parse(name_text, name)) return error;
    link::Job* job = link::find_job(name.job);
    link::Peer* peer = job->peer(name.rank);
    if (!peer && !job->dead()) return MPI_ERR_OTHER;
    if (!peer || peer->dead) return fail(MPI_ERR_PORT, "the process that opened the port has ended");
    const bool own = is_self(name.job, name.rank);
    if (own && ports().open.find(name.port) == ports().open.end()) return fail_of_closed_port();
    const uint64_t context = comm::new_context();
    if (const int error = comm::check_context(context)) return error;
    send_knock(*peer, {ConnectRequest::connect, name.port, context});
    meeting.port = name.port;
    const int error = connect_or_refuse(meeting, {job, name.rank}, comm, context, 0, false);
    // A failed connection to a port of this process gets a text that names the cause: both sides of the exchange would use one context.
    return error && own ? fail_of_own_port() : error;
}

/// Creates the inter-communicator on one side from its root's result. Every member maps the jobs of the other side now, so that their end
/// is noticed.
int join_sides(comm::Comm& comm, const std::string& result, bool accepting, comm::Comm*& made) {
    ConnectSide other;
    comm::Group* remote = decode(result, other) ? comm::decode_group(other.group) : nullptr;
    if (!remote)
        return fail(MPI_ERR_INTERN,
                    "the root sent an invalid description of the connection; use one version of Starling in all processes");
    for (const comm::GroupRun& run : remote->runs())
        if (const int error = run.job->map()) {
            remote->release();
            message::retire_context(other.context);
            return error;
        }
    made = comm::make_intercomm(other.context, comm.local_group().retain(), comm.rank, remote, accepting, comm.errhandler);
    return MPI_SUCCESS;
}

/// Agrees among all members of this side first, then with the other side.
int agree_on_both_sides(comm::Comm& comm, int root, Meeting& meeting, int error) {
    error = agree(comm, error);
    RootResult last;
    if (comm.rank == root) {
        last.error = meeting.talk->agree(error);
        if (last.error) last.text = failure_text();
    }
    return broadcast_result(comm, root, last);
}

int connect_at_port(comm::Comm& comm, int root, const char* port, bool accepting, comm::Comm*& made) {
    link::make_room_for_jobs();
    RootResult verdict;
    Meeting meeting;  // state of the connection; used at the root only
    if (comm.rank == root) {
        verdict = evaluate_at_root([&](std::string& result) {
            const int error = accepting ? accept_at_root(comm, port, meeting) : connect_at_root(comm, port, meeting);
            result = std::move(meeting.result);
            return error;
        });
    }
    if (const int error = broadcast_result(comm, root, verdict)) {
        const std::string text(failure_text());
        meeting.refuse();
        return fail(error, "%s", text.c_str());
    }
    comm::Comm* mine = nullptr;
    int error;
    try {
        error = join_sides(comm, verdict.result, accepting, mine);
    } catch (const std::bad_alloc&) { error = fail(MPI_ERR_NO_MEM, "out of memory for an inter-communicator"); }
    error = agree_on_both_sides(comm, root, meeting, error);
    if (!error) {
        made = mine;
    } else if (mine) {
        mine->release();
    }
    return error;
}

}  // namespace

void start_ports() { link::register_handler(packet::PacketKind::knock, on_knock); }

std::string open_port() {
    const uint32_t number = ports().next++;
    ports().open[number];
    return to_text({link::self().job->address(), link::self().rank, number});
}

int close_port(const char* text) {
    PortName name;
    if (const int error = parse(text, name)) return error;
    const auto port = ports().open.find(name.port);
    if (name.job != link::self().job->address() || port == ports().open.end())
        return fail(MPI_ERR_PORT, "the port was not opened by this process, or was closed; MPI_Open_port opens one");
    for (const WaitingConnector& caller : port->second)
        send_knock(*caller.peer, {ConnectRequest::refused, name.port, caller.context});
    ports().open.erase(port);
    return MPI_SUCCESS;
}

int accept(comm::Comm& comm, int root, const char* port, comm::Comm*& made) {
    return connect_at_port(comm, root, port, true, made);
}

int connect(comm::Comm& comm, int root, const char* port, comm::Comm*& made) {
    return connect_at_port(comm, root, port, false, made);
}

}  // namespace starling::dynamic
