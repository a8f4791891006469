// Transfers over open sockets: the session's frames and fragments of streams.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>

#include "transport/network/tcp/engine.h"
#include "transport/network/tcp/socket.h"

namespace starling::network {

namespace {

constexpr uint64_t kStarvedNs = 1'000'000;  ///< pause after which a socket without kernel memory writes again
/// Bytes of the first read, and of the next one if the first was filled. Later reads of a fragment go straight to its destination, but the
/// part in the buffer must be copied. So reads are no longer than necessary.
constexpr size_t kFirstRead = 16 * 1024, kLongestRead = 128 * 1024;
constexpr int kReadsAtOnce = 16;
constexpr uint64_t kTcpPumpBytes = 8u << 20;    ///< most bytes sent in one call, before other connections are served
constexpr uint64_t kPackedBytes = 128 * 1024;   ///< longest fragment of data that must be packed first
constexpr uint64_t kShortestShare = 64 * 1024;  ///< shortest fragment into which a message is split for several sockets

class SocketSink final : public FrameSink {
  public:
    SocketSink(TcpEngine& engine, TcpSocket& socket) : engine_(engine), socket_(socket) {}

    bool frame(TcpFrameKind kind, const std::byte* contents, size_t bytes) override {
        if (kind == TcpFrameKind::finish) return socket_.finishing = true;
        if (kind == TcpFrameKind::addresses) return engine_.handle_addresses(*socket_.connection, contents, bytes) && alive();
        ++engine_.counters.frames_received;
        return engine_.upcalls.frame(*socket_.connection, contents, bytes) && alive();
    }
    std::byte* target(const StreamFragment& fragment, uint64_t done, uint64_t bytes) override {
        return engine_.upcalls.target(*socket_.connection, fragment, done, bytes);
    }
    void unpack(const StreamFragment& fragment, uint64_t done, const std::byte* data, uint64_t bytes) override {
        engine_.upcalls.unpack(*socket_.connection, fragment, done, data, bytes);
    }
    bool on_fragment(const StreamFragment& fragment) override {
        ++engine_.counters.fragments_received;
        engine_.counters.fragment_bytes_received += fragment.bytes;
        engine_.upcalls.fragment(*socket_.connection, fragment);
        return alive();
    }

  private:
    bool alive() const { return socket_.state == TcpSocket::TcpState::open; }
    TcpEngine& engine_;
    TcpSocket& socket_;
};

size_t length(const iovec* parts, int count) {
    size_t sum = 0;
    for (int i = 0; i < count; ++i) sum += parts[i].iov_len;
    return sum;
}

}  // namespace

void TcpEngine::receive(TcpSocket& socket) {
    if (!buffer) buffer = std::make_unique_for_overwrite<std::byte[]>(kLongestRead);
    SocketSink sink(*this, socket);
    socket.unread = false;
    for (int i = 0; i < kReadsAtOnce && !socket.ended && !socket.doomed; ++i) {
        iovec parts[FrameReader::kParts];
        int count = 1;
        if (socket.seal) [[unlikely]] {
            const std::span<std::byte> into = socket.seal->in.room();
            parts[0] = {into.data(), into.size()};
        } else {
            count = socket.reader.prepare(sink, buffer.get(), std::max(socket.read_bytes, kFirstRead), parts);
        }
        const size_t room = length(parts, count);
        msghdr message{};
        message.msg_iov = parts;
        message.msg_iovlen = static_cast<size_t>(count);
        const ssize_t n =
            count == 1 ? recv(socket.fd, parts[0].iov_base, room, MSG_DONTWAIT) : recvmsg(socket.fd, &message, MSG_DONTWAIT);
        if (n < 0) {
            if (errno == EINTR) continue;
            if (errno != EAGAIN && errno != EWOULDBLOCK)
                doom(socket,
                     std::string("connection with ") + print_address(socket.rail.remote, 0) + " lost: " + strerror(errno));
            return;
        }
        if (n == 0) return at_end(socket);
        anything = true;
        ++counters.reads;
        counters.bytes_received += static_cast<uint64_t>(n);
        heat(socket);
        const bool filled = static_cast<size_t>(n) == room;
        socket.read_bytes = filled && count == 1 ? kLongestRead : kFirstRead;
        const bool taken = socket.seal ? open_records(socket, sink, static_cast<size_t>(n))
                                       : socket.reader.arrived(sink, static_cast<size_t>(n));
        if (!taken) {
            if (socket.state != TcpSocket::TcpState::open || socket.doomed) return;
            ++counters.rejected;
            return doom(socket, std::string("connection with ") + print_address(socket.rail.remote, 0) +
                                    (socket.seal ? " closed: received data is malformed, or was changed on the way"
                                                 : " closed: received data is malformed"));
        }
        if (!filled) return;  // the read was short: epoll reports the rest of the data, or the next read finds it
    }
    if (socket.state == TcpSocket::TcpState::open && !socket.ended && !socket.doomed) socket.unread = true;
}

void TcpEngine::at_end(TcpSocket& socket) {
    // Without a finish frame, data that was sent to the peer may be lost, although its host has acknowledged it.
    if (!socket.finishing || !socket.reader.at_boundary() || (socket.seal && !socket.seal->in.at_boundary()))
        return doom(socket,
                    std::string("connection with ") + print_address(socket.rail.remote, 0) + " lost: the peer has closed it");
    socket.ended = true;
    anything = true;
    report_ended(*socket.connection);
}

void TcpEngine::report_ended(Connection& connection) {
    ConnectionParts& of = parts(connection);
    for (const TcpSocket* socket : of.sockets)
        if (socket->state == TcpSocket::TcpState::open && !socket->ended && !socket->doomed) return;
    if (of.end_reported) return;
    of.end_reported = true;
    upcalls.ended(connection);
}

/// Writes as much of the list as possible. Returns false if the socket has failed; poll() then closes it.
bool TcpEngine::write_parts(TcpSocket& socket, const iovec* list, int count, size_t& written) {
    if (socket.seal) [[unlikely]]
        return write_sealed(socket, list, count, written);
    if (!send_parts(socket, list, count, written)) return false;
    if (written < length(list, count)) block(socket);
    return true;
}

/// Marks the socket as blocked; epoll reports when the kernel takes more.
void TcpEngine::block(TcpSocket& socket) {
    if (socket.blocked) return;
    socket.blocked = true;
    ++blocked;
}

bool TcpEngine::send_parts(TcpSocket& socket, const iovec* list, int count, size_t& written) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(list);
    message.msg_iovlen = static_cast<size_t>(count);
    written = 0;
    ssize_t n;
    do n = sendmsg(socket.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == ENOBUFS || errno == ENOMEM)) {
        socket.retry_at = now + kStarvedNs;
        arm(socket.retry_at);
    } else if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
        doom(socket, std::string("connection with ") + print_address(socket.rail.remote, 0) + " lost: " + strerror(errno));
        return false;
    }
    if (n > 0) {
        written = static_cast<size_t>(n);
        ++counters.writes;
        counters.bytes_sent += written;
        anything = true;
    }
    unsettle(socket);
    return true;
}

SendResult TcpEngine::write_frame(TcpSocket& socket, TcpFrameKind kind, const iovec* contents, int count) {
    if (socket.doomed || socket.blocked || socket.writer.busy()) return SendResult::busy;
    constexpr std::byte zeros[kFrameAlignment]{};
    iovec list[Carrier::kMost + 2];
    const size_t bytes = length(contents, count);
    FramePrefix prefix{static_cast<uint32_t>(bytes), kind, 0, FramePrefix::kMark};
    list[0] = {&prefix, sizeof prefix};
    std::copy_n(contents, count, list + 1);
    int all = count + 1;
    if (const uint64_t padding = frame_padding(bytes)) list[all++] = {const_cast<std::byte*>(zeros), padding};
    size_t written = 0;
    if (!write_parts(socket, list, all, written) || written == 0) return SendResult::busy;
    if (!socket.blocked) return SendResult::done;
    try {
        socket.writer.store_tail(list, all, written);
    } catch (const std::bad_alloc&) {
        doom(socket, "out of memory");  // the copy of the frame's rest needs memory, and the frame's beginning is already sent
    }
    return SendResult::done;
}

SendResult TcpEngine::send(Connection& connection, const iovec* contents, int count) {
    if (connection.state_ != Connection::CarrierState::open || connection.finished_ || connection.paused_)
        return SendResult::closed;
    ConnectionParts& of = parts(connection);
    const SendResult sent = of.primary ? write_frame(*of.primary, TcpFrameKind::session, contents, count) : SendResult::busy;
    if (sent == SendResult::busy)
        of.room_wanted = true;
    else
        ++counters.frames_sent;
    return sent;
}

/// Continues writing the frame that was begun. Returns true if it was written completely.
bool TcpEngine::write_begun(TcpSocket& socket) {
    while (socket.writer.busy()) {
        if (socket.blocked || socket.doomed) return false;
        iovec list[FrameWriter::kParts];
        const int count = socket.writer.gather(list);
        size_t written = 0;
        if (!write_parts(socket, list, count, written)) return false;
        socket.writer.wrote(written);
    }
    return !socket.blocked && !socket.doomed;
}

void TcpEngine::on_writable(TcpSocket& socket) {
    socket.blocked = false;
    --blocked;
    heat(socket);
    size_t none = 0;
    if (socket.seal && (!write_sealed(socket, nullptr, 0, none) || socket.blocked)) return;
    if (!write_begun(socket)) return;
    pump(*socket.connection);
}

/// Before fragments are sent, lets the session send its frames, and sends new rail addresses. Returns whether the socket that carries the
/// frames can take more.
bool TcpEngine::grant_room(Connection& connection) {
    ConnectionParts& of = parts(connection);
    const auto can = [&] {
        return connection.state_ == Connection::CarrierState::open && of.primary && !of.primary->blocked &&
               !of.primary->doomed && !of.primary->writer.busy();
    };
    if (can() && of.addresses_wanted) send_addresses(connection);
    if (can() && of.room_wanted) {
        of.room_wanted = false;
        upcalls.room(connection);
    }
    return can();
}

void TcpEngine::pump(Connection& connection) {
    ConnectionParts& of = parts(connection);
    uint64_t budget = kTcpPumpBytes;
    if (connection.finished_) {
        grant_room(connection);
        for (TcpSocket* socket : of.sockets)
            if (socket->state == TcpSocket::TcpState::open) write_begun(*socket);
        return try_shutdown(connection);
    }
    grant_room(connection);
    for (size_t i = 0; i < of.sockets.size(); ++i) {
        TcpSocket& socket = *of.sockets[i];
        if (socket.state != TcpSocket::TcpState::open) continue;
        while (write_begun(socket)) {
            if (&socket == of.primary && of.room_wanted && !grant_room(connection)) break;
            if (connection.paused_) break;
            if (budget == 0) {
                if (!of.to_pump) to_pump.push_back(&connection);
                of.to_pump = true;
                next_event = 0;
                return;
            }
            if (!begin_next_fragment(connection, socket)) return;
            budget -= std::min(budget, options.fragment_bytes);
        }
    }
}

/// Begins the next fragment on the socket. Returns false if no stream has data to send.
bool TcpEngine::begin_next_fragment(Connection& connection, TcpSocket& socket) {
    ConnectionParts& of = parts(connection);
    OutStream* stream = of.working.front();
    if (!stream) {
        socket.packed.reset();
        return false;
    }
    const OutStream::StreamSource& source = stream->source();
    uint64_t most = std::min(options.fragment_bytes, kLongestPiece);
    const auto sockets_open = static_cast<uint64_t>(std::count_if(
        of.sockets.begin(), of.sockets.end(), [](const TcpSocket* one) { return one->state == TcpSocket::TcpState::open; }));
    if (sockets_open > 1) {
        const uint64_t share = (stream->waiting_bytes() / sockets_open + 4095) & ~uint64_t{4095};
        most = std::min(most, std::max(share, kShortestShare));
    }
    if (!source.memory) most = std::min(most, kPackedBytes);
    const StreamRange range = stream->extract(socket.path, most);
    const std::byte* data = source.memory + range.begin;
    if (!source.memory) {
        if (!socket.packed) socket.packed = std::make_unique_for_overwrite<std::byte[]>(kPackedBytes);
        source.pack(source.user, range.begin, socket.packed.get(), range.bytes());
        data = socket.packed.get();
    }
    socket.writer.begin_fragment(*stream, range, data);
    ++counters.fragments_sent;
    counters.fragment_bytes_sent += range.bytes();
    StreamList::remove(stream);
    (stream->has_work() ? of.working : of.waiting).push_back(stream);
    return true;
}

void TcpEngine::add_stream(Connection& connection, OutStream& stream) {
    stream.connection = &connection;
    ConnectionParts& of = parts(connection);
    if (connection.state_ != Connection::CarrierState::open || connection.finished_ || connection.paused_) {
        of.waiting.push_back(&stream);
        upcalls.stranded(stream);
        return;
    }
    (stream.has_work() ? of.working : of.waiting).push_back(&stream);
    pump(connection);
}

void TcpEngine::remove_stream(OutStream& stream, bool confirmed) {
    stream.hook.unlink();
    if (!stream.connection) return;
    for (TcpSocket* socket : parts(*static_cast<Connection*>(stream.connection)).sockets) {
        if (socket->writer.stream() != &stream) continue;
        if (confirmed)
            socket->writer.blank_fragment();
        else
            doom(*socket, "the transfer of a message was canceled");
    }
    stream.connection = nullptr;
}

void TcpEngine::strand(Connection& connection) {
    ConnectionParts& of = parts(connection);
    network::strand(of.working, of.waiting, connection.state_ != Connection::CarrierState::open, upcalls);
}

void TcpEngine::finish(Connection& connection) {
    if (connection.state_ != Connection::CarrierState::open || connection.finished_) return;
    connection.finished_ = true;
    parts(connection).redial_at = UINT64_MAX;
    strand(connection);
    try_shutdown(connection);
}

void TcpEngine::try_shutdown(Connection& connection) {
    std::byte zeros[kFinishBytes]{};
    const iovec contents{zeros, sizeof zeros};
    for (TcpSocket* socket : parts(connection).sockets) {
        if (socket->state != TcpSocket::TcpState::open || socket->shut || socket->doomed) continue;
        if (!socket->finish_written)
            socket->finish_written = write_frame(*socket, TcpFrameKind::finish, &contents, 1) == SendResult::done;
        if (!socket->finish_written || socket->writer.busy() || socket->blocked) continue;
        socket->shut = true;
        shutdown(socket->fd, SHUT_WR);
    }
}

}  // namespace starling::network
