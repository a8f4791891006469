// What is behind class Tcp: sockets, connections and the listener. For the files tcp*.cpp only.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/list.h"
#include "transport/network/tcp/frames.h"
#include "transport/network/tcp/handshake.h"
#include "transport/network/tcp/rails.h"
#include "transport/network/tcp/records.h"
#include "transport/network/tcp/socket.h"
#include "transport/network/tcp/tcp.h"

namespace starling::network {

/// What a socket has besides whose connection is sealed.
struct SocketSeal {
    GreetingProof awaited;  ///< of the caller
    RecordSealer out;
    RecordOpener in;
    SocketSeal(const Cipher& cipher, Suite suite, const SealKey& outward, const SealKey& inward)
        : out(cipher, cipher.prepare(suite, outward)), in(cipher, cipher.prepare(suite, inward)) {}
};

/// One socket, from connect() or accept() on.
struct TcpSocket {
    enum class State : uint8_t {
        connecting,
        greeting,  ///< hello sent, answer awaited
        caller,    ///< accepted, hello awaited; of no connection yet
        open,
        dead,
    };
    State state = State::connecting;
    bool blocked = false;    ///< the kernel took no more; EPOLLOUT ends it
    bool unsettled = false;  ///< something was written since its health was last looked at, or waits for an answer
    bool unread = false;     ///< a read has left something: epoll won't tell of it again
    bool finishing = false;  ///< the peer has said that nothing more comes,
    bool ended = false;      ///< and nothing more has
    bool finish_said = false, shut = false;  ///< we have said so, and sent it
    bool doomed = false;                     ///< the next poll buries it
    bool hot = false;                        ///< read at every poll, without asking epoll
    int fd = -1;
    PathId path = 0;  ///< unique in this process
    Connection* connection = nullptr;
    RailPair rail;
    uint64_t deadline = 0;                          ///< of the states before open; then when its health is looked at
    uint64_t acked = 0;                             ///< bytes that the peer's host has acknowledged, as of the last look,
    uint64_t acked_at = 0;                          ///< and when there were more of them, or nothing was outstanding; ns
    uint64_t asked_at = 0;                          ///< when the peer was asked another way, since there were not; 0: not
    uint64_t answered_at = 0;                       ///< when it was seen to have answered that; before asked_at: not yet
    uint64_t sent_before = 0, repeated_before = 0;  ///< segments, when the connection was last trusted
    uint64_t last_active = 0;                       ///< number of the poll
    size_t read_bytes = 0;                          ///< what the next read asks for
    FrameReader reader;
    FrameWriter writer;
    std::unique_ptr<SocketSeal> seal;     ///< from the greeting on, if connections are sealed
    SealedHello said;                     ///< by the one that connects; the salt only if connections are sealed
    std::unique_ptr<std::byte[]> packed;  ///< a piece of data that does not lie in one block
    std::byte words[sizeof(SealedHello) + sizeof(GreetingProof)] = {};  ///< hello or welcome as far as it has come
    size_t word_bytes = 0;
    std::string grave;  ///< what it died of
};

struct ConnectionParts {
    TcpEngine* engine = nullptr;
    uint64_t peer_key = 0;
    SealKey pair;
    uint64_t token = 0;             ///< of our offer; 0: none
    ConnectionOffer theirs;         ///< what we dial
    bool dialler = false;           ///< we connected: then more sockets are ours to open, too
    bool room_wanted = false;       ///< send() has said busy
    bool addresses_wanted = false;  ///< our rails have changed and the dialler has not been told yet
    bool ended_told = false;
    bool to_pump = false;
    uint64_t deadline = UINT64_MAX;  ///< in state waiting
    uint64_t redial_at = UINT64_MAX;
    uint64_t redial_pause = 0;
    uint64_t doubt_ends = UINT64_MAX;  ///< in doubt: not before
    uint64_t doubt = 0;                ///< how long the last one was, at least
    uint64_t trusted_since = 0;
    std::vector<TcpSocket*> sockets;  ///< of it, whatever their state
    TcpSocket* primary = nullptr;     ///< carries the frames
    StreamList working;               ///< streams that have work, next first
    StreamList waiting;               ///< all given to sockets, not confirmed yet
    std::string last_failure;
};

struct TcpEngine {
    Connections* tcp = nullptr;  ///< that this is behind
    TcpOptions options;
    TcpUpcalls upcalls;
    TcpCounters counters;
    int epoll = -1;
    struct Listener {
        int fd;
        uint32_t address;  ///< 0: all
    };
    std::vector<Listener> listeners;  ///< on one port
    int spare = -1;                   ///< given up for a moment to hang up on a caller when descriptors have run out
    uint16_t port = 0;
    bool told_descriptors = false;
    bool anything = false;  ///< happened in this poll
    uint64_t now = 0, polls = 0;
    uint64_t next_event = UINT64_MAX;  ///< no time limit ends before; 0: a poll is due
    PathId next_path = 1;
    int blocked = 0, callers = 0;  ///< sockets that are
    std::vector<TcpRail> rails;
    std::vector<std::unique_ptr<Connection>> connections;
    std::vector<std::unique_ptr<TcpSocket>> sockets;
    std::vector<TcpSocket*> hot, doomed;
    std::vector<Connection*> to_pump;                    ///< had more to send than one poll may take
    std::vector<std::unique_ptr<TcpSocket>> buried;      ///< freed when no call can be using them
    std::vector<std::unique_ptr<Connection>> forgotten;  ///< likewise
    std::unique_ptr<std::byte[]> buffer;                 ///< of reads

    ~TcpEngine();
    static ConnectionParts& parts(Connection& connection) { return *static_cast<TcpConnection&>(connection).parts_; }

    // tcp.cpp: lives and deaths, and the poll
    Connection& add(const ProcessId& peer, uint64_t peer_key, void* user, Session* session, const SealKey& pair);
    TcpSocket& adopt(int fd, TcpSocket::State state, Connection* connection);
    void doom(TcpSocket& socket, std::string why);
    void bury_doomed();
    void bury(TcpSocket& socket);
    void close_socket(TcpSocket& socket);
    void lose_path(Connection& connection, PathId path);
    void broken(Connection& connection, const std::string& why);
    void drop(Connection& connection);
    void heat(TcpSocket& socket);
    void cool(size_t index);
    void take_events();
    void handle(TcpSocket& socket, uint32_t events);
    void serve(TcpSocket& socket, uint32_t events);
    void watch_clock();
    bool poll(uint64_t time);
    void arm(uint64_t time) { next_event = time < next_event ? time : next_event; }

    // stall_detection.cpp: whether what was sent arrives
    Health ask_kernel(const TcpSocket& socket) const;
    void unsettle(TcpSocket& socket);
    void watch_socket(TcpSocket& socket);
    void look_at_health(TcpSocket& socket);
    bool loses_much(const TcpSocket& socket, const Health& health) const;
    bool is_stuck(TcpSocket& socket, const Health& health);
    void come_back();
    uint64_t back_at = 0;                            ///< when this process last looked after it had not for long
    static constexpr uint64_t kAwayNs = 10'000'000;  ///< between two polls of a process that waits there is less
    bool stalls(Connection& connection);
    void doubt(Connection& connection);
    void watch_doubt(Connection& connection);
    bool has_delivered(const ConnectionParts& of) const;
    void trust(Connection& connection);

    // connect.cpp: until a socket is open, and rails
    int ensure_listeners();
    bool listen_on(uint32_t address);
    int offer(Connection& connection, ConnectionOffer& out);
    int dial(Connection& connection, const ConnectionOffer& theirs);
    void dial_missing(Connection& connection);
    void dial_one(Connection& connection, RailPair rail);
    void accept_callers();
    void accept_from(const Listener& listener);
    bool hang_up_for_want_of_descriptors(const Listener& listener);
    bool read_words(TcpSocket& socket, size_t wanted);
    void on_connected(TcpSocket& socket);
    void on_welcome(TcpSocket& socket);
    void on_hello(TcpSocket& socket);
    Answer find_called(const Hello& hello, Connection*& called);
    bool answer(TcpSocket& socket, Answer answer, Connection* called);
    void admit(TcpSocket& socket, Connection& called);
    bool prove(TcpSocket& socket, const SealedWelcome& words);
    void on_proof(TcpSocket& socket);
    uint16_t version() const { return options.cipher ? kSealedTcpVersion : kTcpVersion; }
    void become_open(TcpSocket& socket);
    void attempt_failed(Connection& connection);
    void too_late(TcpSocket& socket);
    void set_rails(std::span<const TcpRail> usable);
    void lose_remote(Connection& connection, uint32_t address);
    bool take_addresses(Connection& connection, const std::byte* contents, size_t bytes);
    void tell_addresses(Connection& connection);

    // encryption.cpp: open sockets whose connection is sealed
    bool take_records(TcpSocket& socket, FrameSink& sink, size_t arrived);
    bool write_sealed(TcpSocket& socket, const iovec* list, int count, size_t& written);

    // data_path.cpp: open sockets
    void receive(TcpSocket& socket);
    void block(TcpSocket& socket);
    bool send_parts(TcpSocket& socket, const iovec* list, int count, size_t& written);
    void at_end(TcpSocket& socket);
    void tell_ended(Connection& connection);
    Sent send(Connection& connection, const iovec* parts, int count);
    Sent write_frame(TcpSocket& socket, FrameKind kind, const iovec* contents, int count);
    bool write_parts(TcpSocket& socket, const iovec* list, int count, size_t& written);
    bool write_begun(TcpSocket& socket);
    void on_writable(TcpSocket& socket);
    bool give_room(Connection& connection);
    void pump(Connection& connection);
    bool begin_next_piece(Connection& connection, TcpSocket& socket);
    void add_stream(Connection& connection, OutStream& stream);
    void remove_stream(OutStream& stream, bool confirmed);
    void strand(Connection& connection);
    void finish(Connection& connection);
    void try_shutdown(Connection& connection);
};

}  // namespace starling::network
