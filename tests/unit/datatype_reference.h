// A plain reference for datatypes: type maps written out element by element, as the standard defines them. The unit tests of datatypes
// compare the library with it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "datatype/construct.h"

namespace starling::test {

using datatype::Datatype;
using datatype::TypeRef;

/// One basic element: its displacement, size and alignment in bytes.
struct Entry {
    int64_t at;
    int64_t size;
    int64_t alignment;
};

/// A type map, with explicit bounds if it has any.
struct Map {
    std::vector<Entry> entries;
    bool marked = false;
    int64_t low_mark = 0, high_mark = 0;

    int64_t size() const {
        int64_t sum = 0;
        for (const Entry& e : entries) sum += e.size;
        return sum;
    }
    int64_t true_lb() const {
        int64_t low = entries.empty() ? 0 : entries[0].at;
        for (const Entry& e : entries) low = std::min(low, e.at);
        return low;
    }
    int64_t true_ub() const {
        int64_t high = entries.empty() ? 0 : entries[0].at + entries[0].size;
        for (const Entry& e : entries) high = std::max(high, e.at + e.size);
        return high;
    }
    int64_t lb() const { return marked ? low_mark : true_lb(); }
    int64_t extent() const {
        if (marked) return high_mark - low_mark;
        int64_t alignment = 1;
        for (const Entry& e : entries) alignment = std::max(alignment, e.alignment);
        const int64_t length = true_ub() - true_lb();
        return (length + alignment - 1) / alignment * alignment;
    }
    /// Appends another map at a displacement in bytes. Call end() after the last one.
    void add(const Map& other, int64_t at) {
        for (Entry e : other.entries) {
            e.at += at;
            entries.push_back(e);
        }
        if (!other.marked) return;
        low_mark = marked ? std::min(low_mark, at + other.low_mark) : at + other.low_mark;
        high_mark = marked ? std::max(high_mark, at + other.high_mark) : at + other.high_mark;
        marked = true;
    }
    void add(const Map& other, int64_t at, int64_t block) {
        for (int64_t j = 0; j < block; ++j) add(other, at + j * other.extent());
    }
};

/// A type made by the library, with the type map that the standard prescribes for it.
struct Sample {
    TypeRef type;
    Map map;
    std::string text;
};

inline Sample named(MPI_Datatype handle) {
    Datatype& type = datatype::predefined(handle);
    Sample sample{TypeRef::to(type), {}, datatype::default_name(type)};
    if (handle == MPI_DOUBLE_INT)
        sample.map.entries = {{0, 8, 8}, {8, 4, 4}};
    else if (handle == MPI_SHORT_INT)
        sample.map.entries = {{0, 2, 2}, {4, 4, 4}};
    else
        sample.map.entries = {{0, type.size, type.alignment}};
    return sample;
}

inline Sample make(int combiner, std::vector<int64_t> args, std::vector<const Sample*> parts, Map map) {
    Sample sample;
    std::vector<Datatype*> types;
    for (const Sample* part : parts) types.push_back(part->type.get());
    sample.text = std::to_string(combiner) + "(";
    for (const int64_t arg : args) sample.text += std::to_string(arg) + " ";
    for (const Sample* part : parts) sample.text += part->text + " ";
    sample.text += ")";
    Datatype* made = nullptr;
    const int error = datatype::make(combiner, false, std::move(args), std::move(types), &made);
    if (error) throw std::runtime_error("error " + std::to_string(error) + " from " + sample.text);
    sample.type = TypeRef(made);
    sample.map = std::move(map);
    return sample;
}

inline Sample vector(const Sample& old, int64_t count, int64_t block, int64_t stride, bool bytes) {
    Map map;
    const int64_t step = bytes ? stride : stride * old.map.extent();
    for (int64_t i = 0; i < count; ++i) map.add(old.map, i * step, block);
    return make(bytes ? MPI_COMBINER_HVECTOR : MPI_COMBINER_VECTOR, {count, block, stride}, {&old}, map);
}

inline Sample contiguous(const Sample& old, int64_t count) {
    Map map;
    map.add(old.map, 0, count);
    return make(MPI_COMBINER_CONTIGUOUS, {count}, {&old}, map);
}

inline Sample resized(const Sample& old, int64_t lb, int64_t extent) {
    Map map = old.map;
    map.marked = true;
    map.low_mark = lb;
    map.high_mark = lb + extent;
    return make(MPI_COMBINER_RESIZED, {lb, extent}, {&old}, map);
}

inline Sample indexed(const Sample& old, const std::vector<int64_t>& lengths, const std::vector<int64_t>& places, bool bytes) {
    Map map;
    std::vector<int64_t> args{static_cast<int64_t>(lengths.size())};
    args.insert(args.end(), lengths.begin(), lengths.end());
    args.insert(args.end(), places.begin(), places.end());
    for (size_t i = 0; i < lengths.size(); ++i) map.add(old.map, bytes ? places[i] : places[i] * old.map.extent(), lengths[i]);
    return make(bytes ? MPI_COMBINER_HINDEXED : MPI_COMBINER_INDEXED, args, {&old}, map);
}

inline Sample indexed_block(const Sample& old, int64_t block, const std::vector<int64_t>& places, bool bytes) {
    Map map;
    std::vector<int64_t> args{static_cast<int64_t>(places.size()), block};
    args.insert(args.end(), places.begin(), places.end());
    for (const int64_t place : places) map.add(old.map, bytes ? place : place * old.map.extent(), block);
    return make(bytes ? MPI_COMBINER_HINDEXED_BLOCK : MPI_COMBINER_INDEXED_BLOCK, args, {&old}, map);
}

inline Sample structure(const std::vector<const Sample*>& parts, const std::vector<int64_t>& lengths,
                        const std::vector<int64_t>& places) {
    Map map;
    std::vector<int64_t> args{static_cast<int64_t>(parts.size())};
    args.insert(args.end(), lengths.begin(), lengths.end());
    args.insert(args.end(), places.begin(), places.end());
    for (size_t i = 0; i < parts.size(); ++i) map.add(parts[i]->map, places[i], lengths[i]);
    return make(MPI_COMBINER_STRUCT, args, parts, map);
}

/// Returns the map of the array elements for which `wanted(index)` holds, in the array's order.
template <class Wanted>
Map array_map(const Sample& old, const std::vector<int64_t>& sizes, int order, Wanted&& wanted) {
    const size_t n = sizes.size();
    Map map;
    int64_t all = 1;
    for (const int64_t size : sizes) all *= size;
    std::vector<int64_t> index(n);
    for (int64_t i = 0; i < all; ++i) {
        int64_t rest = i;
        for (size_t k = 0; k < n; ++k) {
            const size_t d = order == MPI_ORDER_FORTRAN ? k : n - 1 - k;
            index[d] = rest % sizes[d];
            rest /= sizes[d];
        }
        if (wanted(index)) map.add(old.map, i * old.map.extent());
    }
    map.marked = true;
    map.low_mark = 0;
    map.high_mark = all * old.map.extent();
    return map;
}

inline Sample subarray(const Sample& old, const std::vector<int64_t>& sizes, const std::vector<int64_t>& parts,
                       const std::vector<int64_t>& starts, int order) {
    std::vector<int64_t> args{static_cast<int64_t>(sizes.size())};
    for (const auto* list : {&sizes, &parts, &starts}) args.insert(args.end(), list->begin(), list->end());
    args.push_back(order);
    Map map = array_map(old, sizes, order, [&](const std::vector<int64_t>& index) {
        for (size_t d = 0; d < index.size(); ++d)
            if (index[d] < starts[d] || index[d] >= starts[d] + parts[d]) return false;
        return true;
    });
    return make(MPI_COMBINER_SUBARRAY, args, {&old}, map);
}

struct Spread {
    int64_t size, distribution, argument, processes;

    /// Returns the process that owns an element, by the standard's definition.
    int64_t owner(int64_t i) const {
        if (distribution == MPI_DISTRIBUTE_NONE) return 0;
        int64_t block = argument;
        if (distribution == MPI_DISTRIBUTE_BLOCK) {
            if (block == MPI_DISTRIBUTE_DFLT_DARG) block = (size + processes - 1) / processes;
            return i / block;
        }
        if (block == MPI_DISTRIBUTE_DFLT_DARG) block = 1;
        return i / block % processes;
    }
};

inline Sample darray(const Sample& old, int64_t rank, const std::vector<Spread>& spreads, int order) {
    int64_t processes = 1;
    for (const Spread& s : spreads) processes *= s.processes;
    std::vector<int64_t> args{processes, rank, static_cast<int64_t>(spreads.size())}, sizes, place(spreads.size());
    for (const Spread& s : spreads) sizes.push_back(s.size);
    for (auto member : {&Spread::size, &Spread::distribution, &Spread::argument, &Spread::processes})
        for (const Spread& s : spreads) args.push_back(s.*member);
    args.push_back(order);
    int64_t rest = rank;
    for (size_t d = spreads.size(); d-- > 0; rest /= spreads[d].processes) place[d] = rest % spreads[d].processes;
    Map map = array_map(old, sizes, order, [&](const std::vector<int64_t>& index) {
        for (size_t d = 0; d < index.size(); ++d)
            if (spreads[d].owner(index[d]) != place[d]) return false;
        return true;
    });
    return make(MPI_COMBINER_DARRAY, args, {&old}, map);
}

/// Generates random types of every constructor, nested up to `depth`, with at most `limit` basic elements. Equal seeds generate equal
/// types.
class RandomTypes {
  public:
    explicit RandomTypes(uint32_t seed) : random_(seed) {}

    Sample make(int depth, size_t limit = 400) {
        for (;;) {
            Sample sample = depth == 0 ? leaf() : derived(depth);
            if (sample.map.entries.size() <= limit) return sample;
        }
    }
    int64_t number(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  private:
    Sample leaf() {
        const MPI_Datatype types[] = {MPI_CHAR,        MPI_SHORT,      MPI_INT,       MPI_FLOAT,           MPI_DOUBLE,
                                      MPI_LONG_DOUBLE, MPI_DOUBLE_INT, MPI_SHORT_INT, MPI_C_DOUBLE_COMPLEX};
        return named(types[number(0, 8)]);
    }
    std::vector<int64_t> numbers(size_t count, int64_t low, int64_t high) {
        std::vector<int64_t> list(count);
        for (int64_t& value : list) value = number(low, high);
        return list;
    }
    Sample derived(int depth) {
        const Sample old = make(depth - 1, 60);
        const size_t n = static_cast<size_t>(number(0, 6));
        switch (number(0, 11)) {
            case 0:
                return contiguous(old, number(0, 5));
            case 1:
                return vector(old, number(0, 5), number(0, 4), number(-6, 6), false);
            case 2:
                return vector(old, number(0, 5), number(0, 4), number(-100, 100), true);
            case 3:
                return indexed(old, numbers(n, 0, 4), numbers(n, -10, 10), false);
            case 4:
                return indexed(old, numbers(n, 0, 4), numbers(n, -100, 100), true);
            case 5:
                return indexed_block(old, number(0, 3), numbers(n, -10, 10), false);
            case 6:
                return indexed_block(old, number(0, 3), numbers(n, -100, 100), true);
            case 7: {
                const Sample other = make(depth - 1, 60);
                const Sample third = make(0);
                return structure({&old, &other, &third}, numbers(3, 0, 3), numbers(3, -200, 200));
            }
            case 8:
                return resized(old, number(-50, 50), number(-80, 200));
            case 9:
                return random_subarray(old);
            case 10:
                return random_darray(old);
            default:
                return test::make(MPI_COMBINER_DUP, {}, {&old}, old.map);
        }
    }
    int order() { return number(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN; }
    Sample random_subarray(const Sample& old) {
        const size_t dims = static_cast<size_t>(number(1, 3));
        std::vector<int64_t> sizes = numbers(dims, 1, 5), parts, starts;
        for (const int64_t size : sizes) {
            parts.push_back(number(1, size));
            starts.push_back(number(0, size - parts.back()));
        }
        return subarray(old, sizes, parts, starts, order());
    }
    Sample random_darray(const Sample& old) {
        std::vector<Spread> spreads(static_cast<size_t>(number(1, 3)));
        int64_t processes = 1;
        for (Spread& s : spreads) {
            s = {number(1, 7), MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_DFLT_DARG, 1};
            const int64_t kind = number(0, 2);
            if (kind > 0) s.processes = number(1, 3);
            if (kind == 1) {
                s.distribution = MPI_DISTRIBUTE_BLOCK;
                if (number(0, 1)) s.argument = (s.size + s.processes - 1) / s.processes + number(0, 2);
            } else if (kind == 2) {
                s.distribution = MPI_DISTRIBUTE_CYCLIC;
                if (number(0, 1)) s.argument = number(1, 4);
            }
            processes *= s.processes;
        }
        return darray(old, number(0, processes - 1), spreads, order());
    }

    std::mt19937 random_;
};

/// Memory for `count` elements, addressed as an MPI buffer: origin() may be outside of the memory itself.
class Memory {
  public:
    Memory(const Map& map, int64_t count, uint8_t fill = 0) {
        int64_t low = 0, high = 0;
        for (const int64_t i : {int64_t{0}, count - 1}) {
            low = std::min(low, i * map.extent() + map.true_lb());
            high = std::max(high, i * map.extent() + map.true_ub());
        }
        low_ = low;
        bytes_.assign(static_cast<size_t>(high - low), fill);
    }
    uint8_t* origin() { return bytes_.data() - low_; }
    std::vector<uint8_t>& bytes() { return bytes_; }
    /// Fills the memory with random bytes.
    void scramble(uint32_t seed) {
        std::mt19937 random(seed);
        for (uint8_t& byte : bytes_) byte = static_cast<uint8_t>(random());
    }

  private:
    int64_t low_;
    std::vector<uint8_t> bytes_;
};

/// Returns whether all elements are at different bytes, so that unpacking loses nothing.
inline bool is_injective(const Sample& sample, int64_t count, Memory& memory) {
    std::vector<bool> used(memory.bytes().size());
    for (int64_t i = 0; i < count; ++i)
        for (const Entry& e : sample.map.entries)
            for (int64_t b = 0; b < e.size; ++b) {
                const auto at = memory.origin() + i * sample.map.extent() + e.at + b - memory.bytes().data();
                if (used[static_cast<size_t>(at)]) return false;
                used[static_cast<size_t>(at)] = true;
            }
    return true;
}

/// Returns the packed stream, copied element by element.
inline std::vector<uint8_t> pack_plainly(const Map& map, int64_t count, const uint8_t* origin) {
    std::vector<uint8_t> out;
    for (int64_t i = 0; i < count; ++i)
        for (const Entry& e : map.entries) {
            const uint8_t* from = origin + i * map.extent() + e.at;
            out.insert(out.end(), from, from + e.size);
        }
    return out;
}

}  // namespace starling::test
