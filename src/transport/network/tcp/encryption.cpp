// Open sockets whose connection is sealed: between the frames and the kernel lie records (records.h). A stream's data pass
// through the sealer's memory on one side and the opener's on the other, where else the kernel copies them.
#include <algorithm>
#include <cstring>

#include "transport/network/tcp/engine.h"

namespace starling::network {

namespace {

/// Gives the text to the reader, as if it had been read from the socket. False as FrameReader::arrived().
bool give(FrameReader& reader, FrameSink& sink, Bytes text, std::byte* buffer, size_t room) {
    while (!text.empty()) {
        iovec parts[FrameReader::kParts];
        const int count = reader.prepare(sink, buffer, room, parts);
        size_t given = 0;
        for (int i = 0; i < count && given < text.size(); ++i) {
            const size_t part = std::min(parts[i].iov_len, text.size() - given);
            std::memcpy(parts[i].iov_base, text.data() + given, part);
            given += part;
        }
        if (!reader.arrived(sink, given)) return false;
        text = text.subspan(given);
    }
    return true;
}

}  // namespace

/// Of bytes that were read into the opener's room. False: it has ended, or something came that does not open or makes no sense.
bool TcpEngine::take_records(TcpSocket& socket, FrameSink& sink, size_t arrived) {
    RecordOpener& in = socket.seal->in;
    in.arrived(arrived);
    Bytes text;
    RecordOpener::Result result;
    while ((result = in.next(text)) == RecordOpener::Result::text)
        if (!give(socket.reader, sink, text, buffer.get(), kRecordText)) return false;
    return result == RecordOpener::Result::need_more;
}

/// As write_parts(). What is `written` is in records, of which the kernel may not have taken all: then the socket is blocked.
bool TcpEngine::write_sealed(TcpSocket& socket, const iovec* list, int count, size_t& written) {
    RecordSealer& out = socket.seal->out;
    written = 0;
    while (true) {
        if (const Bytes left = out.pending(); !left.empty()) {
            const iovec part{const_cast<std::byte*>(left.data()), left.size()};
            size_t sent = 0;
            if (!send_parts(socket, &part, 1, sent)) return false;
            out.wrote(sent);
            if (sent < left.size()) {
                block(socket);
                return true;
            }
        }
        const size_t taken = out.seal(list, count, written);
        if (taken == 0) return true;
        written += taken;
    }
}

}  // namespace starling::network
