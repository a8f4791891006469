// Bytes that another process sends on a TCP connection, arbitrary ones in portions of any size. The reader must neither crash nor write
// outside its buffers, and the result must not depend on the portions.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "transport/network/tcp/frames.h"
#include "transport/network/tcp/handshake.h"

using namespace starling::network;

namespace {

/// Receives fragments of up to 1 KB for the request ids 1 and 2, unpacked for 2; rejects all others.
struct Sink final : FrameSink {
    std::vector<std::byte> memory[3];
    uint64_t digest = 1;
    bool known(const StreamFragment& piece) const {
        return piece.serial > 0 && piece.serial < 3 && piece.offset <= 1024 && piece.bytes <= 1024 - piece.offset;
    }
    void mix(uint64_t value) { digest = digest * 1099511628211u + value + 1; }
    bool frame(TcpFrameKind kind, const std::byte* contents, size_t bytes) override {
        if (bytes == 0 || bytes > kTcpFrame || reinterpret_cast<uintptr_t>(contents) % 8) std::abort();
        mix(static_cast<uint64_t>(kind));
        for (size_t i = 0; i < bytes; ++i) mix(static_cast<uint64_t>(contents[i]));
        return true;
    }
    std::byte* target(const StreamFragment& piece, uint64_t done, uint64_t bytes) override {
        if (done + bytes > piece.bytes || bytes == 0) std::abort();
        if (!known(piece) || piece.serial != 1) return nullptr;
        memory[1].resize(1024);
        return memory[1].data() + piece.offset + done;
    }
    void unpack(const StreamFragment& piece, uint64_t done, const std::byte* data, uint64_t bytes) override {
        if (done + bytes > piece.bytes) std::abort();
        if (!known(piece)) return;
        memory[2].resize(1024);
        std::memcpy(memory[2].data() + piece.offset + done, data, bytes);
    }
    bool on_fragment(const StreamFragment& piece) override {
        mix(piece.serial), mix(piece.generation), mix(piece.offset), mix(piece.bytes);
        if (known(piece))
            for (uint64_t i = 0; i < piece.bytes; ++i) mix(static_cast<uint64_t>(memory[piece.serial][piece.offset + i]));
        return true;
    }
};

bool read_all(const uint8_t* data, size_t size, size_t portion, Sink& sink) {
    FrameReader reader;
    constexpr size_t kBuffer = 4096;
    struct alignas(8) Buffer {
        std::byte bytes[kBuffer];
    };
    // A new buffer for each read, so that a sanitizer detects stale pointers into it.
    for (size_t at = 0; at < size;) {
        const auto buffer = std::make_unique<Buffer>();
        iovec parts[FrameReader::kParts];
        const int count = reader.prepare(sink, buffer->bytes, kBuffer, parts);
        size_t most = std::min(portion, size - at), filled = 0;
        for (int i = 0; i < count && most > 0; ++i) {
            const size_t n = std::min(most, parts[i].iov_len);
            std::memcpy(parts[i].iov_base, data + at + filled, n);
            most -= n, filled += n;
        }
        if (filled == 0) std::abort();
        at += filled;
        if (!reader.arrived(sink, filled)) return false;
    }
    return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Sink whole, slices;
    const bool good = read_all(data, size, size ? size : 1, whole);
    const size_t portion = size ? data[0] % 61 + 1 : 1;
    if (read_all(data, size, portion, slices) != good || (good && whole.digest != slices.digest)) std::abort();
    if (size >= sizeof(TcpHello)) {
        TcpHello hello;
        std::memcpy(&hello, data, sizeof hello);
        classify(hello, {1, 2}, 3);
        TcpWelcome welcome;
        std::memcpy(&welcome, data, sizeof welcome);
        refusal(welcome, 3);
    }
    return 0;
}

const std::string* fuzz_seeds(size_t& count) {
    const auto frame = [](TcpFrameKind kind, const std::string& contents) {
        const FramePrefix prefix{static_cast<uint32_t>(contents.size()), kind, 0, FramePrefix::kMark};
        std::string text(reinterpret_cast<const char*>(&prefix), sizeof prefix);
        text += contents;
        text.resize(text.size() + frame_padding(contents.size()));
        return text;
    };
    const auto piece = [&](uint32_t serial, uint64_t offset, size_t bytes) {
        const PieceHead head{serial, 7, offset};
        return frame(TcpFrameKind::fragment,
                     std::string(reinterpret_cast<const char*>(&head), sizeof head) + std::string(bytes, 'x'));
    };
    static const std::string seeds[] = {
        frame(TcpFrameKind::session, "hello") + frame(TcpFrameKind::session, std::string(300, 'y')),
        piece(1, 0, 100) + piece(2, 100, 55) + frame(TcpFrameKind::session, "z") + piece(9, 5, 10),
        frame(TcpFrameKind::addresses, std::string(8, '\1')) + piece(1, 1000, 24),
    };
    count = std::size(seeds);
    return seeds;
}
