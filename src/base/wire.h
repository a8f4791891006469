// Wire encoding: little-endian numbers and length-prefixed bytes, written to and read from one flat buffer. The Reader trusts nothing: a
// read past the end returns zero or empty, and from then on the Reader has failed.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>

namespace starling {

/// Appends fields to a buffer. Not thread-safe. May throw std::bad_alloc.
class Writer {
  public:
    template <std::integral T>
    Writer& number(T value) {
        using Bits = std::make_unsigned_t<T>;
        auto bits = static_cast<Bits>(value);
        for (size_t i = 0; i < sizeof(T); ++i) {
            bytes_.push_back(static_cast<char>(bits & 0xff));
            if constexpr (sizeof(T) > 1) bits = static_cast<Bits>(bits >> 8);
        }
        return *this;
    }
    /// Appends a number in groups of seven bits, the low ones first: short for numbers that are mostly small.
    Writer& packed(uint64_t value) {
        for (; value > 127; value >>= 7) bytes_.push_back(static_cast<char>(value | 128));
        bytes_.push_back(static_cast<char>(value));
        return *this;
    }
    /// Appends a 32-bit length and the bytes. Throws std::bad_alloc if the length does not fit into 32 bits.
    Writer& string(std::string_view text) {
        if (text.size() > UINT32_MAX) throw std::bad_alloc();
        number(static_cast<uint32_t>(text.size()));
        bytes_.append(text);
        return *this;
    }

    std::string_view view() const { return bytes_; }
    std::string take() { return std::move(bytes_); }

  private:
    std::string bytes_;
};

/// Reads fields in the order they were written. The bytes must outlive the Reader and the views that it returns.
class Reader {
  public:
    explicit Reader(std::string_view bytes) : rest_(bytes) {}

    template <std::integral T>
    T number() {
        using Bits = std::make_unsigned_t<T>;
        if (!require(sizeof(T))) return 0;
        Bits bits = 0;
        for (size_t i = 0; i < sizeof(T); ++i) {
            bits = static_cast<Bits>(bits | static_cast<Bits>(static_cast<Bits>(static_cast<uint8_t>(rest_[i])) << (8 * i)));
        }
        rest_.remove_prefix(sizeof(T));
        return static_cast<T>(bits);
    }

    /// Reads a number from Writer::packed(). Fails if the encoding is longer than the shortest one, or if the number is above `most`.
    uint64_t packed(uint64_t most = UINT64_MAX) {
        uint64_t value = 0;
        for (uint32_t shift = 0; shift < 64; shift += 7) {
            const auto byte = number<uint8_t>();
            value |= static_cast<uint64_t>(byte & 127) << shift;
            if (byte & 128) continue;
            if ((byte == 0 && shift > 0) || (shift == 63 && byte > 1) || value > most) break;
            return failed_ ? 0 : value;
        }
        failed_ = true;
        return 0;
    }

    std::string_view string() {
        const auto length = number<uint32_t>();
        if (!require(length)) return {};
        const std::string_view text = rest_.substr(0, length);
        rest_.remove_prefix(length);
        return text;
    }

    /// Reads a count of elements of at least `element_bytes` each. Fails if the rest is too short for that many, so that a hostile count
    /// causes no large allocation.
    uint32_t count(size_t element_bytes) {
        const auto n = number<uint32_t>();
        if (failed_ || n > rest_.size() / element_bytes) {
            failed_ = true;
            return 0;
        }
        return n;
    }

    /// Returns whether every read so far found its bytes.
    bool ok() const { return !failed_; }
    /// Returns whether every read so far found its bytes and no bytes are left.
    bool done() const { return !failed_ && rest_.empty(); }

  private:
    bool require(size_t bytes) {
        if (failed_ || rest_.size() < bytes) {
            failed_ = true;
            rest_ = {};
            return false;
        }
        return true;
    }

    std::string_view rest_;
    bool failed_ = false;
};

}  // namespace starling
