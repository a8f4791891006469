// TCP sockets with encryption: between the frames and the kernel are records (records.h). Encryption costs one more copy of a stream's data
// on each side, through the buffer of RecordSealer or RecordOpener.
#include <algorithm>
#include <cstring>

#include "transport/network/tcp/engine.h"

namespace starling::network {

namespace {

/// Passes a record's text to the reader as if it had been read from the socket. Returns false as FrameReader::arrived() does.
bool pass(FrameReader& reader, FrameSink& sink, Bytes text, std::byte* buffer, size_t room) {
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

/// Decrypts the complete records in the opener's buffer, into which `arrived` more bytes were read, and passes their text to the socket's
/// reader. Returns false if the reader stopped, a record fails authentication, or its contents are malformed.
bool TcpEngine::open_records(TcpSocket& socket, FrameSink& sink, size_t arrived) {
    RecordOpener& in = socket.seal->in;
    in.arrived(arrived);
    Bytes text;
    RecordOpener::RecordReadResult result;
    while ((result = in.next(text)) == RecordOpener::RecordReadResult::text)
        if (!pass(socket.reader, sink, text, buffer.get(), kRecordText)) return false;
    return result == RecordOpener::RecordReadResult::need_more;
}

/// Writes the list as sealed records; used by write_parts(). `written` counts the bytes that were sealed. If the kernel has not taken all
/// records, the socket is blocked and the rest stays pending.
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
