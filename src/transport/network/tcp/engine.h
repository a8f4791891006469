// The implementation of class Tcp: sockets, connections and the listener. Internal to the .cpp files of this folder.
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

/// The additional state of a socket whose connection is sealed.
struct SocketSeal {
    GreetingProof awaited;  ///< proof of the key that the caller must send
    RecordSealer out;
    RecordOpener in;
    SocketSeal(const Cipher& cipher, Suite suite, const SealKey& outward, const SealKey& inward)
        : out(cipher, cipher.prepare(suite, outward)), in(cipher, cipher.prepare(suite, inward)) {}
};

/// One socket, from connect() or accept() on.
struct TcpSocket {
    enum class TcpState : uint8_t {
        connecting,
        greeting,  ///< TcpHello was sent, and TcpWelcome is expected
        caller,    ///< accepted, TcpHello is expected; not yet part of a connection
        open,
        dead,
    };
    TcpState state = TcpState::connecting;
    bool blocked = false;                       ///< whether the kernel's send buffer is full; EPOLLOUT clears it
    bool unsettled = false;                     ///< whether data was written since the last health check, or is unacknowledged
    bool unread = false;                        ///< whether the last read may have left data, which epoll does not report again
    bool finishing = false;                     ///< whether the peer has sent the finish frame
    bool ended = false;                         ///< whether the peer has closed its side after the finish frame
    bool finish_written = false, shut = false;  ///< whether our finish frame was written; whether the write side was shut down
    bool doomed = false;                        ///< whether the next poll closes the socket
    bool hot = false;                           ///< whether each poll reads the socket without asking epoll
    int fd = -1;
    PathId path = 0;  ///< number of the socket, unique in this process
    Connection* connection = nullptr;
    RailPair rail;
    uint64_t deadline = 0;  ///< time limit (ns) of a state before `open`; in state `open`, time of the next health check
    uint64_t retry_at = UINT64_MAX;  ///< time (ns) to write again after the kernel had no memory, which epoll does not report
    uint64_t acked = 0;              ///< number of bytes that the peer's host had acknowledged at the last check
    uint64_t acked_at = 0;           ///< time (ns) when `acked` last grew or nothing was outstanding
    uint64_t queried_at = 0;         ///< time (ns) when a datagram queried the peer because `acked` did not grow; 0: no query
    uint64_t answered_at = 0;  ///< time (ns) of the peer's answer to the last query; earlier than queried_at: no answer yet
    /// Numbers of segments sent and retransmitted when the connection's last pause ended.
    uint64_t sent_before = 0, repeated_before = 0;
    uint64_t last_active = 0;  ///< number of the poll that last moved data
    size_t read_bytes = 0;     ///< number of bytes that the next read asks for
    FrameReader reader;
    FrameWriter writer;
    std::unique_ptr<SocketSeal> seal;     ///< keys of the records; null before the greeting, or if connections are not sealed
    SealedHello said;                     ///< hello of the side that connects; its salt is used only if connections are sealed
    std::unique_ptr<std::byte[]> packed;  ///< buffer for a fragment that is not contiguous in memory
    std::byte words[sizeof(SealedHello) + sizeof(GreetingProof)] = {};  ///< received bytes of the greeting
    size_t word_bytes = 0;
    std::string grave;  ///< the reason why `doomed` was set
};

struct ConnectionParts {
    TcpEngine* engine = nullptr;
    uint64_t peer_key = 0;
    SealKey pair;
    uint64_t token = 0;             ///< secret of this process's offer; 0: none
    ConnectionOffer theirs;         ///< the peer's offer, which dial() uses
    bool dialler = false;           ///< whether this side connected, and therefore also opens further sockets
    bool room_wanted = false;       ///< whether send() has returned busy, so that the session waits for room
    bool addresses_wanted = false;  ///< whether the rails have changed and the dialer was not notified yet
    bool end_reported = false;
    bool to_pump = false;
    uint64_t deadline = UINT64_MAX;  ///< time limit (ns) of state waiting
    uint64_t redial_at = UINT64_MAX;
    uint64_t redial_pause = 0;
    uint64_t pause_ends = UINT64_MAX;  ///< time (ns) of the earliest end of the current pause; UINT64_MAX: not paused
    uint64_t pause = 0;                ///< minimum length (ns) of the current or last pause
    uint64_t trusted_since = 0;
    std::vector<TcpSocket*> sockets;  ///< sockets of the connection in any state
    TcpSocket* primary = nullptr;     ///< the socket that carries the frames
    StreamList working;               ///< streams with data to send, the next one first
    StreamList waiting;               ///< streams that were passed to sockets completely, but are not confirmed yet
    std::string last_failure;
};

struct TcpEngine {
    Connections* tcp = nullptr;  ///< the Tcp object whose implementation this is
    TcpOptions options;
    TcpUpcalls upcalls;
    TcpCounters counters;
    int epoll = -1;
    struct Listener {
        int fd;
        uint32_t address;  ///< local address, network byte order; 0: all
    };
    std::vector<Listener> listeners;  ///< listening sockets, all on the same port
    int spare = -1;                   ///< reserve descriptor, closed briefly to accept and reject a caller when none is left
    uint16_t port = 0;
    bool warned_descriptors = false;
    bool anything = false;  ///< whether this poll has done anything
    uint64_t now = 0, polls = 0;
    uint64_t next_event = UINT64_MAX;  ///< time (ns) of the earliest time limit; 0: poll() is due
    PathId next_path = 1;
    int blocked = 0, callers = 0;  ///< number of sockets with `blocked` set; number in state caller
    std::vector<TcpRail> rails;
    std::vector<std::unique_ptr<Connection>> connections;
    std::vector<std::unique_ptr<TcpSocket>> sockets;
    std::vector<TcpSocket*> hot, doomed;
    std::vector<Connection*> to_pump;  ///< connections with more data than one poll may send
    /// Closed sockets, freed at the end of poll(), when no call can be using them.
    std::vector<std::unique_ptr<TcpSocket>> buried;
    std::vector<std::unique_ptr<Connection>> forgotten;  ///< dropped connections, freed at the end of poll()
    std::unique_ptr<std::byte[]> buffer;                 ///< receive buffer

    ~TcpEngine();
    static ConnectionParts& parts(Connection& connection) { return *static_cast<TcpConnection&>(connection).parts_; }

    // Functions of tcp.cpp: creation and closing of sockets and connections, and poll().
    Connection& add(const ProcessId& peer, uint64_t peer_key, void* user, Session* session, const SealKey& pair);
    TcpSocket& adopt(int fd, TcpSocket::TcpState state, Connection* connection);
    void doom(TcpSocket& socket, std::string why);
    void bury_doomed();
    void bury(TcpSocket& socket);
    void close_socket(TcpSocket& socket);
    void lose_path(Connection& connection, PathId path);
    void broken(Connection& connection, const std::string& why);
    void drop(Connection& connection);
    void heat(TcpSocket& socket);
    void cool(size_t index);
    void handle_events();
    void handle(TcpSocket& socket, uint32_t events);
    void serve(TcpSocket& socket, uint32_t events);
    void watch_clock();
    bool poll(uint64_t time);
    void arm(uint64_t time) { next_event = time < next_event ? time : next_event; }

    // Functions of stall_detection.cpp: detection of sent data that does not arrive.
    Health query_kernel(const TcpSocket& socket) const;
    void unsettle(TcpSocket& socket);
    void watch_socket(TcpSocket& socket);
    void check_health(TcpSocket& socket);
    bool loses_much(const TcpSocket& socket, const Health& health) const;
    bool is_stuck(TcpSocket& socket, const Health& health);
    void resume();
    uint64_t back_at = 0;                            ///< time (ns) of the last poll that followed a long time without polls
    static constexpr uint64_t kAwayNs = 10'000'000;  ///< longest time between two polls of a process that waits
    bool stalls(Connection& connection);
    void pause(Connection& connection);
    void watch_pause(Connection& connection);
    bool has_delivered(const ConnectionParts& of) const;
    void trust(Connection& connection);

    // Functions of connect.cpp: sockets that are not open yet, and rails.
    int ensure_listeners();
    bool listen_on(uint32_t address);
    int offer(Connection& connection, ConnectionOffer& out);
    int dial(Connection& connection, const ConnectionOffer& theirs);
    void dial_missing(Connection& connection);
    void dial_one(Connection& connection, RailPair rail);
    void accept_callers();
    void accept_from(const Listener& listener);
    bool reject_without_descriptors(const Listener& listener);
    bool read_words(TcpSocket& socket, size_t wanted);
    void on_connected(TcpSocket& socket);
    void on_welcome(TcpSocket& socket);
    void on_hello(TcpSocket& socket);
    HandshakeAnswer find_called(const TcpHello& hello, Connection*& called);
    bool answer(TcpSocket& socket, HandshakeAnswer answer, Connection* called);
    void admit(TcpSocket& socket, Connection& called);
    bool prove(TcpSocket& socket, const SealedWelcome& words);
    void on_proof(TcpSocket& socket);
    uint16_t version() const { return options.cipher ? kSealedTcpVersion : kTcpVersion; }
    void become_open(TcpSocket& socket);
    void attempt_failed(Connection& connection);
    void time_out(TcpSocket& socket);
    void set_rails(std::span<const TcpRail> usable);
    void lose_remote(Connection& connection, uint32_t address);
    bool handle_addresses(Connection& connection, const std::byte* contents, size_t bytes);
    void send_addresses(Connection& connection);

    // Functions of encryption.cpp: open sockets whose connection is sealed.
    bool open_records(TcpSocket& socket, FrameSink& sink, size_t arrived);
    bool write_sealed(TcpSocket& socket, const iovec* list, int count, size_t& written);

    // Functions of data_path.cpp: open sockets.
    void receive(TcpSocket& socket);
    void block(TcpSocket& socket);
    bool send_parts(TcpSocket& socket, const iovec* list, int count, size_t& written);
    void at_end(TcpSocket& socket);
    void report_ended(Connection& connection);
    SendResult send(Connection& connection, const iovec* parts, int count);
    SendResult write_frame(TcpSocket& socket, TcpFrameKind kind, const iovec* contents, int count);
    bool write_parts(TcpSocket& socket, const iovec* list, int count, size_t& written);
    bool write_begun(TcpSocket& socket);
    void on_writable(TcpSocket& socket);
    bool grant_room(Connection& connection);
    void pump(Connection& connection);
    bool begin_next_fragment(Connection& connection, TcpSocket& socket);
    void add_stream(Connection& connection, OutStream& stream);
    void remove_stream(OutStream& stream, bool confirmed);
    void strand(Connection& connection);
    void finish(Connection& connection);
    void try_shutdown(Connection& connection);
};

}  // namespace starling::network
