// Copies data between its places in memory and the packed stream.
#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>

#include "base/error.h"
#include "datatype/datatype.h"
#include "datatype/walk.h"

namespace starling::datatype {

namespace {

// Copies a block of one to two words by two possibly overlapping moves of fixed size, without calling memcpy().
template <class Word>
inline void copy_twice(std::byte* to, const std::byte* from, uint64_t length) {
    Word head, tail;
    std::memcpy(&head, from, sizeof(Word));
    std::memcpy(&tail, from + length - sizeof(Word), sizeof(Word));
    std::memcpy(to, &head, sizeof(Word));
    std::memcpy(to + length - sizeof(Word), &tail, sizeof(Word));
}

struct Words2 {
    uint64_t word[2];
};
struct Words4 {
    uint64_t word[4];
};
struct Words8 {
    uint64_t word[8];
};

inline void copy_block(std::byte* to, const std::byte* from, uint64_t length) {
    if (length > 128) {
        std::memcpy(to, from, length);
    } else if (length >= 64) {
        copy_twice<Words8>(to, from, length);
    } else if (length >= 32) {
        copy_twice<Words4>(to, from, length);
    } else if (length >= 16) {
        copy_twice<Words2>(to, from, length);
    } else if (length >= 8) {
        copy_twice<uint64_t>(to, from, length);
    } else if (length >= 4) {
        copy_twice<uint32_t>(to, from, length);
    } else if (length >= 2) {
        copy_twice<uint16_t>(to, from, length);
    } else if (length == 1) {
        *to = *from;
    }
}

// Calls f(std::integral_constant) for the more common lengths; returns false for others.
template <class F>
inline bool with_length(uint64_t length, F&& f) {
    switch (length) {
        case 1:
            return f(std::integral_constant<uint64_t, 1>()), true;
        case 2:
            return f(std::integral_constant<uint64_t, 2>()), true;
        case 4:
            return f(std::integral_constant<uint64_t, 4>()), true;
        case 8:
            return f(std::integral_constant<uint64_t, 8>()), true;
        case 12:
            return f(std::integral_constant<uint64_t, 12>()), true;
        case 16:
            return f(std::integral_constant<uint64_t, 16>()), true;
        case 24:
            return f(std::integral_constant<uint64_t, 24>()), true;
        case 32:
            return f(std::integral_constant<uint64_t, 32>()), true;
        case 40:
            return f(std::integral_constant<uint64_t, 40>()), true;
        case 48:
            return f(std::integral_constant<uint64_t, 48>()), true;
        case 64:
            return f(std::integral_constant<uint64_t, 64>()), true;
        case 128:
            return f(std::integral_constant<uint64_t, 128>()), true;
        default:
            return false;
    }
}

// Copies equal blocks; the addresses in source and destination advance by their own stride.
void copy_run(std::byte* to, int64_t to_stride, const std::byte* from, int64_t from_stride, int64_t count, uint64_t length) {
    const auto fixed = [&](auto constant) {
        for (int64_t i = 0; i < count; ++i, to += to_stride, from += from_stride)
            std::memcpy(to, from, decltype(constant)::value);
    };
    if (with_length(length, fixed)) return;
    for (int64_t i = 0; i < count; ++i, to += to_stride, from += from_stride) copy_block(to, from, length);
}

/// Sink that copies blocks into consecutive memory of limited size or, if `unpacking`, from it.
template <bool unpacking>
struct Mover {
    std::byte* packed;
    uint64_t left;

    Mover(std::byte* stream, uint64_t bytes) : packed(stream), left(bytes) {}

    bool block(std::byte* at, uint64_t length) {
        const uint64_t bytes = length < left ? length : left;
        if constexpr (unpacking)
            copy_block(at, packed, bytes);
        else
            copy_block(packed, at, bytes);
        packed += bytes;
        left -= bytes;
        return left != 0;
    }

    bool run(std::byte* at, int64_t count, int64_t stride, uint64_t length) {
        const int64_t step = static_cast<int64_t>(length);
        const uint64_t room = left / length;
        const int64_t whole = room < static_cast<uint64_t>(count) ? static_cast<int64_t>(room) : count;
        if constexpr (unpacking)
            copy_run(at, stride, packed, step, whole, length);
        else
            copy_run(packed, step, at, stride, whole, length);
        packed += whole * step;
        left -= static_cast<uint64_t>(whole) * length;
        if (whole == count || left == 0) return left != 0;
        return block(at + whole * stride, length);
    }

    bool even(std::byte* origin, const LayoutBlock* first, int64_t count, uint64_t length) {
        const uint64_t room = left / length;
        const int64_t whole = room < static_cast<uint64_t>(count) ? static_cast<int64_t>(room) : count;
        const auto fixed = [&](auto constant) {
            std::byte* stream = packed;
            for (int64_t i = 0; i < whole; ++i, stream += constant()) {
                if constexpr (unpacking)
                    std::memcpy(origin + first[i].offset, stream, constant());
                else
                    std::memcpy(stream, origin + first[i].offset, constant());
            }
        };
        if (!with_length(length, fixed)) {
            for (int64_t i = 0; i < whole; ++i) {
                std::byte* stream = packed + static_cast<uint64_t>(i) * length;
                if constexpr (unpacking)
                    copy_block(origin + first[i].offset, stream, length);
                else
                    copy_block(stream, origin + first[i].offset, length);
            }
        }
        packed += static_cast<uint64_t>(whole) * length;
        left -= static_cast<uint64_t>(whole) * length;
        if (whole == count || left == 0) return left != 0;
        return block(origin + first[whole].offset, length);
    }

    // Copies the first piece of all repetitions as one run, then the second, and so on; in batches that stay in the first-level cache.
    bool grid(std::byte* origin, int64_t count, int64_t stride, const LayoutNode& list) {
        const int64_t step = static_cast<int64_t>(list.size), batch = 1 + kBatch / step;
        while (count > 0 && left >= list.size) {
            const int64_t fit = static_cast<int64_t>(left / list.size);
            const int64_t n = std::min({batch, count, fit});
            for (const LayoutBlock* p = list.blocks; p != list.blocks + list.count; ++p) {
                std::byte* stream = packed + p->start;
                const uint64_t length = p[1].start - p->start;
                if constexpr (unpacking)
                    copy_run(origin + p->offset, stride, stream, step, n, length);
                else
                    copy_run(stream, step, origin + p->offset, stride, n, length);
            }
            packed += n * step;
            left -= static_cast<uint64_t>(n * step);
            origin += n * stride;
            count -= n;
        }
        if (count == 0 || left == 0) return left != 0;
        for (const LayoutBlock* p = list.blocks; p != list.blocks + list.count; ++p)
            if (!block(origin + p->offset, p[1].start - p->start)) return false;
        return true;
    }

  private:
    static constexpr int64_t kBatch = 8192;
};

/// Base of the sinks other than Mover: splits lists into single blocks.
template <class Sink>
struct BlockByBlock {
    bool even(std::byte* origin, const LayoutBlock* first, int64_t count, uint64_t length) {
        for (int64_t i = 0; i < count; ++i)
            if (!self().block(origin + first[i].offset, length)) return false;
        return true;
    }
    bool grid(std::byte* origin, int64_t count, int64_t stride, const LayoutNode& list) {
        for (int64_t i = 0; i < count; ++i, origin += stride)
            for (const LayoutBlock* p = list.blocks; p != list.blocks + list.count; ++p)
                if (!self().block(origin + p->offset, p[1].start - p->start)) return false;
        return true;
    }
    Sink& self() { return *static_cast<Sink*>(this); }
};

/// Sink that copies each block to the same relative position in another buffer.
struct Copier : BlockByBlock<Copier> {
    const std::byte* source;
    const std::byte* target;

    Copier(const std::byte* from, const std::byte* to) : source(from), target(to) {}

    std::byte* twin(std::byte* at) const { return const_cast<std::byte*>(target) + (at - source); }
    bool block(std::byte* at, uint64_t length) {
        copy_block(twin(at), at, length);
        return true;
    }
    bool run(std::byte* at, int64_t count, int64_t stride, uint64_t length) {
        copy_run(twin(at), stride, at, stride, count, length);
        return true;
    }
};

/// Sink that lists the blocks for blocks(), merging adjacent ones.
struct Lister : BlockByBlock<Lister> {
    iovec* out;
    int max;
    int used = 0;

    Lister(iovec* list, int length) : out(list), max(length) {}

    bool block(std::byte* at, uint64_t length) {
        if (used > 0) {
            iovec& last = out[used - 1];
            if (static_cast<std::byte*>(last.iov_base) + last.iov_len == at) {
                last.iov_len += length;
                return true;
            }
        }
        if (used == max) return false;
        out[used++] = {at, length};
        return true;
    }
    bool run(std::byte* at, int64_t count, int64_t stride, uint64_t length) {
        for (int64_t i = 0; i < count; ++i)
            if (!block(at + i * stride, length)) return false;
        return true;
    }
};

std::byte* bytes_at(const void* buffer) { return static_cast<std::byte*>(const_cast<void*>(buffer)); }

// Size of the intermediate buffer for copies between two buffers with gaps, bytes; small enough to stay in the cache.
constexpr uint64_t kStaging = 32 * 1024;

}  // namespace

uint64_t pack_scattered(const Datatype& type, int64_t count, const void* buffer, uint64_t from, void* out, uint64_t max) {
    if (max == 0) return 0;
    Mover<false> mover(static_cast<std::byte*>(out), max);
    walk_elements(type, count, bytes_at(buffer), from, mover);
    return max - mover.left;
}

uint64_t unpack_scattered(const Datatype& type, int64_t count, void* buffer, uint64_t from, const void* in, uint64_t max) {
    if (max == 0) return 0;
    Mover<true> mover(bytes_at(in), max);
    walk_elements(type, count, bytes_at(buffer), from, mover);
    return max - mover.left;
}

int blocks(const Datatype& type, int64_t count, const void* buffer, uint64_t from, iovec* out, int max) {
    const uint64_t size = packed_size(type, count);
    if (from >= size || max <= 0) return 0;
    if (is_block(type, count)) {
        out[0] = {static_cast<std::byte*>(block_address(type, buffer)) + from, size - from};
        return 1;
    }
    Lister lister(out, max);
    walk_elements(type, count, bytes_at(buffer), from, lister);
    return lister.used;
}

void copy(const Datatype& type, int64_t count, const void* source, void* target) {
    if (is_block(type, count)) {
        if (const uint64_t size = packed_size(type, count))
            std::memcpy(block_address(type, target), block_address(type, source), size);
        return;
    }
    Copier copier(bytes_at(source), bytes_at(target));
    walk_elements(type, count, bytes_at(source), 0, copier);
}

int copy(const Datatype& source_type, int64_t source_count, const void* source, const Datatype& target_type,
         int64_t target_count, void* target) {
    const uint64_t size = packed_size(source_type, source_count);
    if (size > packed_size(target_type, target_count))
        return fail(MPI_ERR_TRUNCATE, "a message of %llu bytes is too long for a buffer of %llu bytes",
                    static_cast<unsigned long long>(size),
                    static_cast<unsigned long long>(packed_size(target_type, target_count)));
    if (size == 0) return MPI_SUCCESS;
    if (is_block(source_type, source_count)) {
        unpack(target_type, target_count, target, 0, block_address(source_type, source), size);
    } else if (is_block(target_type, target_count)) {
        pack(source_type, source_count, source, 0, block_address(target_type, target), size);
    } else {
        const uint64_t room = size < kStaging ? size : kStaging;
        const std::unique_ptr<std::byte[]> staging(new std::byte[room]);
        for (uint64_t at = 0; at < size;) {
            const uint64_t bytes = pack(source_type, source_count, source, at, staging.get(), room);
            unpack(target_type, target_count, target, at, staging.get(), bytes);
            at += bytes;
        }
    }
    return MPI_SUCCESS;
}

uint64_t span(const Datatype& type, int64_t count) {
    if (count <= 0 || type.size == 0) return 0;
    const int64_t step = type.extent < 0 ? -type.extent : type.extent;
    return static_cast<uint64_t>(type.true_extent) + static_cast<uint64_t>(step) * static_cast<uint64_t>(count - 1);
}

int64_t span_offset(const Datatype& type, int64_t count) {
    if (count <= 0 || type.size == 0) return 0;
    return type.true_lb + (type.extent < 0 ? type.extent * (count - 1) : 0);
}

}  // namespace starling::datatype
