#include "message/send_buffer.h"

#include <memory>
#include <new>

#include "base/error.h"
#include "base/state.h"
#include "message/point_to_point.h"
#include "mpi.h"
#include "progress/engine.h"

namespace starling::message {

namespace {

STARLING_STATE Flush* flushes = nullptr;

bool poll_flushes() {
    bool any = false;
    for (Flush** place = &flushes; *place;) {
        Flush* flush = *place;
        if (flush->buffer->collect()) {
            *place = flush->next;
            flush->complete();
            any = true;
        } else {
            place = &flush->next;
        }
    }
    return any;
}

}  // namespace

/// A message in a buffer: this header, then the packed data. Blocks are in address order. The request is allocated separately, because
/// programs built for another MPI reserve less than MPI_BSEND_OVERHEAD per message (with MPICH 96 bytes).
struct BsendBuffer::Block {
    std::unique_ptr<SendRequest> request = std::make_unique<SendRequest>();
    Block* next;
    size_t bytes;  ///< size including the header, rounded up

    Block(Block* next, size_t bytes) : next(next), bytes(bytes) {}
    static size_t rounded(size_t bytes) { return (bytes + alignof(Block) - 1) & ~(alignof(Block) - 1); }
};

bool BsendBuffer::automatic() const { return memory_ == MPI_BUFFER_AUTOMATIC; }

BsendBuffer::Block* BsendBuffer::allocate(size_t bytes) {
    static_assert(sizeof(Block) + alignof(Block) <= 96);
    const size_t need = Block::rounded(sizeof(Block) + bytes);
    if (automatic()) return first_ = new (::operator new(need)) Block(first_, need);
    char* const begin = reinterpret_cast<char*>(Block::rounded(reinterpret_cast<uintptr_t>(memory_)));
    char* const end = static_cast<char*>(memory_) + size_;
    char* free_from = begin;
    Block** place = &first_;
    while (*place && static_cast<size_t>(reinterpret_cast<char*>(*place) - free_from) < need) {
        free_from = reinterpret_cast<char*>(*place) + (*place)->bytes;
        place = &(*place)->next;
    }
    if (!*place && (free_from > end || static_cast<size_t>(end - free_from) < need)) return nullptr;
    return *place = new (free_from) Block(*place, need);
}

bool BsendBuffer::collect() {
    for (Block** place = &first_; *place;) {
        Block* block = *place;
        if (!block->request->done) {
            place = &block->next;
            continue;
        }
        *place = block->next;
        block->~Block();
        if (automatic()) ::operator delete(block);
    }
    return !first_;
}

void BsendBuffer::flush() {
    ++waiting_;
    progress::wait_until([this] { return collect(); });
    poll_flushes();
    if (--waiting_ == 0 && ended_) [[unlikely]]
        delete this;
}

void BsendBuffer::end() {
    ended_ = true;
    if (waiting_ == 0) delete this;
}

int BsendBuffer::send(MatchContext& channel, const void* data, int64_t count, const datatype::Datatype& type, int destination,
                      int tag) {
    const uint64_t bytes = datatype::packed_size(type, count);
    collect();
    Block* block = allocate(bytes);
    if (!block) {
        progress::poll();
        collect();
        block = allocate(bytes);
    }
    if (!block)
        return fail(MPI_ERR_BUFFER,
                    "no room for a message of %llu bytes in the attached buffer of %lld bytes: wait for earlier sends or "
                    "attach a larger one",
                    static_cast<unsigned long long>(bytes), static_cast<long long>(size_));
    void* packed = block + 1;
    datatype::pack(type, count, data, 0, packed, bytes);
    start_send(*block->request, channel, packed, static_cast<int64_t>(bytes), datatype::predefined(MPI_BYTE), destination, tag,
               SendMode::standard);
    return MPI_SUCCESS;
}

void start_flush(Flush& flush, BsendBuffer& buffer) {
    progress::add_poller(poll_flushes);
    flush.buffer = &buffer;
    flush.next = flushes;
    flushes = &flush;
}

}  // namespace starling::message
