#include "file/piece_list.h"

namespace starling::file {

namespace {

void put(std::vector<std::byte>& out, int64_t number) {
    auto rest = static_cast<uint64_t>(number);
    for (; rest >= 0x80; rest >>= 7) out.push_back(static_cast<std::byte>(rest | 0x80));
    out.push_back(static_cast<std::byte>(rest));
}

}  // namespace

void PieceListWriter::add(const Extent& piece) {
    const int64_t gap = piece.offset - end_;
    end_ = piece.end();
    if (repeats_ > 0 && gap == gap_ && piece.bytes == bytes_) {
        ++repeats_;
        return;
    }
    finish();
    gap_ = gap;
    bytes_ = piece.bytes;
    repeats_ = 1;
}

void PieceListWriter::finish() {
    if (repeats_ == 0) return;
    put(out_, gap_);
    put(out_, bytes_);
    put(out_, repeats_);
    repeats_ = 0;
}

bool PieceListReader::read(int64_t& number) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
        if (list_.empty()) return false;
        const auto byte = static_cast<uint64_t>(list_.front());
        list_ = list_.subspan(1);
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            number = static_cast<int64_t>(value);
            return true;
        }
    }
    return false;
}

Extent PieceListReader::next() {
    if (repeats_ == 0 && !(read(gap_) && read(bytes_) && read(repeats_) && repeats_ > 0)) return {};
    if (gap_ > block_ - end_ || bytes_ > block_ - end_ - gap_) return {};
    const Extent piece{end_ + gap_, bytes_};
    end_ = piece.end();
    --repeats_;
    return piece;
}

}  // namespace starling::file
