#include "datatype/external32.h"

#include <cstring>

#include "datatype/recipe.h"

namespace starling::datatype {

namespace {

/// Converts numbers from memory into big-endian bytes, or back if `reading` is set.
struct Stream {
    std::byte* at;
    bool reading;
    int64_t left = -1;   ///< bytes of the stream that may be read; negative: no limit
    int64_t filled = 0;  ///< with a limit: bytes of memory that have been written
    bool ended = false;  ///< whether the limit has been too small for an element
    /// Returns whether the stream has a whole element of a named type.
    bool has(const Datatype& type) {
        if (left < 0) return true;
        const int64_t bytes = external_size(type);
        ended = bytes > left;
        if (ended) return false;
        left -= bytes;
        filled += type.size;
        return true;
    }
};

// Converts a number of `size` bytes in memory and `external` bytes in the stream; sign-extends, zero-extends or truncates it. At most 16
// bytes.
void put_integer(Stream& stream, std::byte* memory, int size, int external, bool is_signed) {
    if (stream.reading) {
        for (int i = 0; i < size; ++i) {
            const int from = external - 1 - i;
            const bool negative = is_signed && (stream.at[0] & std::byte{0x80}) != std::byte{0};
            memory[i] = from >= 0 ? stream.at[from] : negative ? std::byte{0xff} : std::byte{0};
        }
    } else {
        const bool negative = is_signed && (memory[size - 1] & std::byte{0x80}) != std::byte{0};
        for (int i = 0; i < external; ++i)
            stream.at[external - 1 - i] = i < size ? memory[i] : negative ? std::byte{0xff} : std::byte{0};
    }
    stream.at += external;
}

// Converts an x87 number; it is transferred as IEEE quadruple precision.
void put_float80(Stream& stream, std::byte* memory) {
    if (stream.reading) {
        __float128 wide;
        put_integer(stream, reinterpret_cast<std::byte*>(&wide), 16, 16, false);
        const long double value = static_cast<long double>(wide);
        std::memset(memory, 0, sizeof value);
        std::memcpy(memory, &value, 10);
    } else {
        long double value;
        std::memcpy(&value, memory, sizeof value);
        __float128 wide = value;
        put_integer(stream, reinterpret_cast<std::byte*>(&wide), 16, 16, false);
    }
}

struct External32Format {
    int parts;     ///< numbers per element
    int size;      ///< bytes of a number in memory
    int external;  ///< bytes of a number in external32
    bool is_signed;
};

External32Format form_of(Basic basic) {
    switch (basic) {
        case Basic::int8:
            return {1, 1, 1, true};
        case Basic::int16:
            return {1, 2, 2, true};
        case Basic::int32:
            return {1, 4, 4, true};
        case Basic::int64:
            return {1, 8, 8, true};
        case Basic::int128:
            return {1, 16, 16, true};
        case Basic::uint16:
        case Basic::logical16:
        case Basic::float16:
            return {1, 2, 2, false};
        case Basic::uint32:
        case Basic::logical32:
        case Basic::float32:
            return {1, 4, 4, false};
        case Basic::uint64:
        case Basic::logical64:
        case Basic::float64:
            return {1, 8, 8, false};
        case Basic::logical128:
        case Basic::float128:
        case Basic::float80:
            return {1, 16, 16, false};
        case Basic::wide_character:
            return {1, static_cast<int>(sizeof(wchar_t)), 2, false};
        case Basic::complex16:
            return {2, 2, 2, false};
        case Basic::complex32:
            return {2, 4, 4, false};
        case Basic::complex64:
            return {2, 8, 8, false};
        case Basic::complex80:
        case Basic::complex128:
            return {2, 16, 16, false};
        default:
            return {1, 1, 1, false};
    }
}

// Returns the external32 format of a named type. For some types it differs from the format of their element: the standard gives MPI_LONG
// four bytes.
External32Format form_of(const Datatype& type) {
    External32Format form = form_of(type.basic);
    if (&type == &predefined(MPI_LONG) || &type == &predefined(MPI_UNSIGNED_LONG)) form.external = 4;
    return form;
}

bool is_float80(Basic basic) { return basic == Basic::float80 || basic == Basic::complex80; }

void convert_numbers(Stream& stream, const External32Format& form, bool float80, std::byte* memory) {
    for (int i = 0; i < form.parts; ++i, memory += form.size) {
        if (float80)
            put_float80(stream, memory);
        else
            put_integer(stream, memory, form.size, form.external, form.is_signed);
    }
}

// Returns the external32 format of a pair's value. Among the value types, only long differs from its element.
External32Format value_form(const Datatype& pair) {
    External32Format form = form_of(pair.value);
    if (&pair == &predefined(MPI_LONG_INT)) form.external = 4;
    return form;
}

void convert_named(Stream& stream, const Datatype& type, std::byte* memory) {
    if (type.basic == Basic::pair) {
        convert_numbers(stream, value_form(type), is_float80(type.value), memory);
        convert_numbers(stream, form_of(type.index), false, memory + type.index_offset);
    } else {
        convert_numbers(stream, form_of(type), is_float80(type.basic), memory);
    }
}

/// Descends to the first type with more than one part, by a loop, because types may be nested deeper than the stack.
const Datatype& first_of_many(const Datatype& of, int64_t& count, std::byte*& memory) {
    const Datatype* type = &of;
    while (type->recipe && count == 1) {
        const int combiner = type->recipe->combiner;
        if (combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP && combiner != MPI_COMBINER_RESIZED) break;
        for_each_part(*type->recipe, [&](const RecipePart& part) {
            memory += part.offset;
            count = part.block;
            type = part.type;
        });
    }
    return *type;
}

void convert(Stream& stream, const Datatype& of, int64_t count, std::byte* memory) {
    const Datatype& type = first_of_many(of, count, memory);
    if (!type.recipe) {
        for (int64_t i = 0; i < count && stream.has(type); ++i) convert_named(stream, type, memory + i * type.extent);
        return;
    }
    for (int64_t i = 0; i < count && !stream.ended; ++i)
        for_each_part(*type.recipe, [&](const RecipePart& part) {
            for (int64_t j = 0; j < part.count && !stream.ended; ++j)
                convert(stream, *part.type, part.block, memory + i * type.extent + part.offset + j * part.stride);
        });
}

}  // namespace

int64_t external_size(const Datatype& type) {
    if (!type.recipe) {
        if (type.basic == Basic::pair) return value_form(type).external + form_of(type.index).external;
        const External32Format form = form_of(type);
        return form.parts * form.external;
    }
    return type.recipe->external;
}

int64_t external_size(const Recipe& recipe) {
    int64_t size = 0;
    bool good = true;
    for_each_part(recipe, [&](const RecipePart& part) {
        if (part.count == 0 || part.block == 0) return;
        int64_t all = external_size(*part.type);
        good = good && all >= 0 && !__builtin_mul_overflow(all, part.count, &all) &&
               !__builtin_mul_overflow(all, part.block, &all) && !__builtin_add_overflow(size, all, &size);
    });
    return good ? size : -1;
}

std::byte* pack_external(const Datatype& type, int64_t count, const void* buffer, std::byte* out) {
    Stream stream{.at = out, .reading = false};
    convert(stream, type, count, static_cast<std::byte*>(const_cast<void*>(buffer)));
    return stream.at;
}

const std::byte* unpack_external(const Datatype& type, int64_t count, void* buffer, const std::byte* in) {
    Stream stream{.at = const_cast<std::byte*>(in), .reading = true};
    convert(stream, type, count, static_cast<std::byte*>(buffer));
    return stream.at;
}

int64_t unpack_external_part(const Datatype& type, void* buffer, const std::byte* in, int64_t bytes) {
    Stream stream{.at = const_cast<std::byte*>(in), .reading = true, .left = bytes};
    convert(stream, type, 1, static_cast<std::byte*>(buffer));
    return stream.filled;
}

}  // namespace starling::datatype
