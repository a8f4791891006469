#include "file/transfer_batch.h"

#include <algorithm>
#include <cstring>

namespace starling::file {

namespace {

// A read of many small runs takes the gaps too if the runs begin at most this many bytes apart on average: copying that much costs less
// than a system call.
constexpr int64_t kSieveStride = 16 * 1024;
constexpr size_t kSieveRuns = 4;

/// Copies the part of a buffer that holds `bytes` bytes from `from` on into the pieces of a run.
void scatter(const TransferBatch& batch, const TransferBatch::Run& run, const std::byte* from, int64_t bytes) {
    for (int i = 0; i < run.count && bytes > 0; ++i) {
        const iovec& piece = batch.pieces[run.first + static_cast<size_t>(i)];
        const int64_t part = std::min(bytes, static_cast<int64_t>(piece.iov_len));
        std::memcpy(piece.iov_base, from, static_cast<size_t>(part));
        from += part;
        bytes -= part;
    }
}

/// Returns the end of the runs from `first` on that fit together into the buffer and are in increasing order.
size_t end_of_group(const TransferBatch& batch, size_t first) {
    size_t end = first + 1;
    while (end < batch.runs.size() && batch.runs[end].file.offset >= batch.runs[end - 1].file.end() &&
           batch.runs[end].file.end() - batch.runs[first].file.offset <= batch.sieve)
        ++end;
    return end;
}

Moved perform_run(OpenFile& system, const TransferBatch& batch, const TransferBatch::Run& run) {
    const iovec* const pieces = batch.pieces.data() + run.first;
    return batch.writes ? system.write(run.file.offset, pieces, run.count) : system.read(run.file.offset, pieces, run.count);
}

/// Reads the runs [first, end) and the gaps between them by one call.
Moved read_group(OpenFile& system, const TransferBatch& batch, size_t first, size_t end, std::byte* buffer) {
    const int64_t origin = batch.runs[first].file.offset;
    const iovec whole{buffer, static_cast<size_t>(batch.runs[end - 1].file.end() - origin)};
    const Moved got = system.read(origin, &whole, 1);
    Moved moved{0, got.system_error};
    for (size_t i = first; i < end; ++i) {
        const TransferBatch::Run& run = batch.runs[i];
        const int64_t into = run.file.offset - origin;
        const int64_t bytes = std::clamp<int64_t>(got.bytes - into, 0, run.file.bytes);
        scatter(batch, run, buffer + into, bytes);
        moved.bytes += bytes;
    }
    return moved;
}

Moved read_through_sieve(OpenFile& system, const TransferBatch& batch) {
    Moved moved;
    for (size_t first = 0, end; first < batch.runs.size(); first = end) {
        end = end_of_group(batch, first);
        const Moved part = end == first + 1 ? perform_run(system, batch, batch.runs[first])
                                            : read_group(system, batch, first, end, batch.buffer.get());
        int64_t wanted = 0;
        for (size_t i = first; i < end; ++i) wanted += batch.runs[i].file.bytes;
        moved.bytes += part.bytes;
        moved.system_error = part.system_error;
        if (part.system_error || part.bytes < wanted) break;
    }
    return moved;
}

}  // namespace

Moved perform(OpenFile& system, const TransferBatch& batch) {
    if (batch.sieve > 0) return read_through_sieve(system, batch);
    Moved moved;
    for (const TransferBatch::Run& run : batch.runs) {
        const Moved part = perform_run(system, batch, run);
        moved.bytes += part.bytes;
        moved.system_error = part.system_error;
        if (part.system_error || part.bytes < run.file.bytes) break;
    }
    return moved;
}

TransferCutter::TransferCutter(const File& file, const FileTransfer& transfer, bool writes)
    : file_(file),
      extents_(*transfer.view, transfer.position, static_cast<int64_t>(transfer.bytes())),
      memory_(transfer.memory),
      writes_(writes) {}

void TransferCutter::append(TransferBatch& batch, const Extent& run, const iovec& block) const {
    if (batch.runs.empty() || batch.runs.back().file.end() != run.offset)
        batch.runs.push_back({{run.offset, 0}, batch.pieces.size(), 0});
    TransferBatch::Run& last = batch.runs.back();
    last.file.bytes += static_cast<int64_t>(block.iov_len);
    batch.bytes += static_cast<int64_t>(block.iov_len);
    if (last.count > 0) {
        iovec& before = batch.pieces.back();
        if (static_cast<std::byte*>(before.iov_base) + before.iov_len == block.iov_base) {
            before.iov_len += block.iov_len;
            return;
        }
    }
    batch.pieces.push_back(block);
    ++last.count;
}

void TransferCutter::choose_sieve(TransferBatch& batch) const {
    batch.sieve = 0;
    if (writes_ || batch.runs.size() < kSieveRuns || !file_.system->coherent()) return;
    const int64_t span = batch.runs.back().file.end() - batch.runs.front().file.offset;
    if (span <= 0 || span / static_cast<int64_t>(batch.runs.size()) > kSieveStride) return;
    batch.sieve = std::min(span, file_.hints.independent_bytes);
    batch.buffer.reset(new std::byte[static_cast<size_t>(batch.sieve)]);
}

bool TransferCutter::next(TransferBatch& batch) {
    batch.clear();
    batch.writes = writes_;
    while (batch.pieces.size() < kPieces) {
        if (run_.bytes == 0) run_ = extents_.next();
        if (run_.bytes == 0) break;
        const iovec block = memory_.next(static_cast<uint64_t>(run_.bytes));
        append(batch, run_, block);
        run_.offset += static_cast<int64_t>(block.iov_len);
        run_.bytes -= static_cast<int64_t>(block.iov_len);
    }
    choose_sieve(batch);
    return !batch.runs.empty();
}

}  // namespace starling::file
