// Data representations of files: random datatypes, buffers and offsets in external32, and in a representation of the program, against a plain
// model that writes each type out element by element. Sizes, extents and offsets in the file, the converted bytes, and what a read that ends
// early stores must agree, and no byte between the elements changes.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/lock.h"
#include "datatype/construct.h"
#include "datatype/datatype.h"
#include "file/representation.h"
#include "file/view.h"

using namespace starling;
using namespace starling::file;
using datatype::Datatype;
using datatype::TypeRef;

namespace {

/// The forms of an element: in memory, in external32, and in the program's representation, which has a mark before the element's bytes.
enum Form { kMemory, kExternal, kOwn, kForms };

struct Kind {
    MPI_Datatype handle;
    int64_t memory, external;
    bool is_signed;
    int64_t size(Form form) const { return form == kMemory ? memory : form == kExternal ? external : memory + 1; }
};
const Kind kKinds[] = {
    {MPI_CHAR, 1, 1, false},  {MPI_SHORT, 2, 2, true},          {MPI_INT, 4, 4, true},    {MPI_DOUBLE, 8, 8, false},
    {MPI_LONG, 8, 4, true},   {MPI_UNSIGNED_LONG, 8, 4, false}, {MPI_WCHAR, 4, 2, false}, {MPI_BYTE, 1, 1, false},
    {MPI_FLOAT, 4, 4, false}, {MPI_LONG_LONG, 8, 8, true},
};
constexpr size_t kMostElements = 500;

struct Element {
    const Kind* kind;
    int64_t at[kForms];  ///< offset in each form
};

/// A type of the library, and its elements as the standard's definitions give them. The lower bound is 0 in all forms.
struct Sample {
    TypeRef type;
    std::vector<Element> elements;
    int64_t extent[kForms] = {};
    int64_t size(Form form) const {
        int64_t sum = 0;
        for (const Element& element : elements) sum += element.kind->size(form);
        return sum;
    }
    void add(const Sample& part, const int64_t (&at)[kForms]) {
        for (Element element : part.elements) {
            for (int form = 0; form < kForms; ++form) element.at[form] += at[form];
            elements.push_back(element);
        }
    }
};

void require(bool condition, int line = __builtin_LINE()) {
    if (condition) return;
    std::fprintf(stderr, "line %d: a property is violated\n", line);
    std::abort();
}

class Input {
  public:
    explicit Input(std::string_view bytes) : bytes_(bytes) {}
    int below(int bound) {
        if (bytes_.empty()) return 0;
        const int byte = static_cast<uint8_t>(bytes_[0]);
        bytes_.remove_prefix(1);
        return byte % bound;
    }

  private:
    std::string_view bytes_;
};

TypeRef make(int combiner, std::vector<int64_t> numbers, std::vector<Datatype*> types) {
    Datatype* made = nullptr;
    require(datatype::make(combiner, false, std::move(numbers), std::move(types), &made) == MPI_SUCCESS);
    return TypeRef(made);
}

Sample named(const Kind& kind) {
    Sample sample;
    sample.type = TypeRef::to(datatype::predefined(kind.handle));
    sample.elements.push_back({&kind, {0, 0, 0}});
    for (int form = 0; form < kForms; ++form) sample.extent[form] = kind.size(static_cast<Form>(form));
    return sample;
}

/// Blocks of a part, whose distances are counted in its extents: MPI_Type_contiguous and MPI_Type_vector.
Sample repeated(Input& input, Sample part, bool vector) {
    const int count = input.below(4), block = vector ? 1 + input.below(2) : 1, stride = vector ? block + input.below(3) : 1;
    Sample sample;
    Datatype* const old = part.type.get();
    sample.type =
        vector ? make(MPI_COMBINER_VECTOR, {count, block, stride}, {old}) : make(MPI_COMBINER_CONTIGUOUS, {count}, {old});
    for (int i = 0; i < count; ++i)
        for (int j = 0; j < block; ++j) {
            int64_t at[kForms];
            for (int form = 0; form < kForms; ++form) at[form] = (i * stride + j) * part.extent[form];
            sample.add(part, at);
        }
    for (int form = 0; form < kForms; ++form)
        sample.extent[form] = count > 0 ? ((count - 1) * stride + block) * part.extent[form] : 0;
    return sample;
}

/// Two blocks at displacements in bytes or in extents, in a type with an extent in bytes that is enough in all forms.
Sample placed(Input& input, Sample first, Sample second, int combiner) {
    const bool in_extents = combiner == MPI_COMBINER_INDEXED;
    Sample& other = combiner == MPI_COMBINER_STRUCT ? second : first;
    const int64_t unit = in_extents ? 1 : std::max<int64_t>(first.extent[kMemory], 1);
    const int64_t one = 1 + input.below(2), two = input.below(3), low = input.below(3) * unit;
    const int64_t high = low + (in_extents ? one : 2 * one * unit) + input.below(4) * (in_extents ? 1 : 3);
    std::vector<Datatype*> types{first.type.get()};
    if (combiner == MPI_COMBINER_STRUCT) types.push_back(other.type.get());
    const TypeRef plain = make(combiner, {2, one, two, low, high}, types);
    Sample sample;
    for (int i = 0; i < one + two; ++i) {
        const bool late = i >= one;
        const Sample& part = late ? other : first;
        int64_t at[kForms];
        for (int form = 0; form < kForms; ++form)
            at[form] = (late ? high : low) * (in_extents ? first.extent[form] : 1) + (late ? i - one : i) * part.extent[form];
        sample.add(part, at);
    }
    int64_t end = 1;
    for (const Element& element : sample.elements)
        for (int form = 0; form < kForms; ++form)
            end = std::max(end, element.at[form] + element.kind->size(static_cast<Form>(form)));
    end += input.below(5);
    sample.type = make(MPI_COMBINER_RESIZED, {0, end}, {plain.get()});
    for (int64_t& extent : sample.extent) extent = end;
    return sample;
}

Sample read_type(Input& input, int depth) {
    const int what = depth > 0 ? input.below(6) : 0;
    if (what == 0) return named(kKinds[input.below(std::size(kKinds))]);
    Sample part = read_type(input, depth - 1);
    switch (what) {
        case 1:
        case 2:
            return repeated(input, std::move(part), what == 2);
        case 3:
            return placed(input, std::move(part), {}, MPI_COMBINER_INDEXED);
        case 4:
            return placed(input, std::move(part), {}, MPI_COMBINER_HINDEXED);
        default:
            return placed(input, std::move(part), read_type(input, depth - 1), MPI_COMBINER_STRUCT);
    }
}

/// Returns byte `i` of an element's value in memory: any bytes, but of the numbers that lose bytes in external32 only those that fit.
uint8_t value_byte(const Kind& kind, int64_t number, int64_t i) {
    const int64_t kept = std::min(i, kind.external - 1);
    const auto byte = static_cast<uint8_t>(number * 89 + kept * 53 + 7);
    if (i < kind.external) return byte;
    return kind.is_signed && byte & 0x80 ? 0xff : 0;
}

/// Appends an element in its form in the file.
void append(std::vector<uint8_t>& file, Form form, const Kind& kind, int64_t number) {
    if (form == kOwn) file.push_back(0xa5);
    for (int64_t i = 0; i < kind.size(form) - (form == kOwn); ++i)
        file.push_back(value_byte(kind, number, form == kExternal ? kind.external - 1 - i : i));
}

/// The sample that the conversion functions below are called for.
const Sample* converted = nullptr;

/// Visits the elements that a conversion function moves: `visit(memory, file, bytes)`, without the mark.
template <class Visit>
int for_elements(void* memory, int count, void* file, MPI_Offset position, Visit visit) {
    auto* at = static_cast<uint8_t*>(file);
    const auto each = static_cast<int64_t>(converted->elements.size());
    for (int64_t i = position; i < position + count; ++i) {
        const Element& element = converted->elements[static_cast<size_t>(i % each)];
        const int64_t offset = i / each * converted->extent[kMemory] + element.at[kMemory];
        visit(static_cast<uint8_t*>(memory) + offset, at, element.kind->memory);
        at += element.kind->memory + 1;
    }
    return MPI_SUCCESS;
}

int write_own(void* memory, MPI_Datatype, int count, void* file, MPI_Offset position, void*) {
    return for_elements(memory, count, file, position, [](const uint8_t* from, uint8_t* to, int64_t bytes) {
        *to = 0xa5;
        std::copy_n(from, bytes, to + 1);
    });
}

int read_own(void* memory, MPI_Datatype, int count, void* file, MPI_Offset position, void*) {
    return for_elements(memory, count, file, position, [](uint8_t* to, const uint8_t* from, int64_t bytes) {
        require(*from == 0xa5);
        std::copy_n(from + 1, bytes, to);
    });
}

int extent_own(MPI_Datatype handle, MPI_Aint* extent, void*) {
    for (const Kind& kind : kKinds)
        if (kind.handle == handle) *extent = kind.memory + 1;
    return MPI_SUCCESS;
}

const Representation& representation_of(Form form) {
    static const bool registered [[maybe_unused]] = [] {
        const ConversionFunctions own{.read = read_own, .write = write_own, .extent = extent_own};
        require(register_representation("fuzz", own) == MPI_SUCCESS);
        return true;
    }();
    const Representation* found = nullptr;
    require(find_representation(form == kExternal ? "external32" : "fuzz", found) == MPI_SUCCESS);
    return *found;
}

/// Checks where the elements lie in a view whose filetype is the sample.
void check_view(const Sample& sample, const Representation& representation, Form form, int64_t displacement) {
    TypeRef type;
    require(type_in_file(representation, *sample.type, type) == MPI_SUCCESS);
    require(type->size == sample.size(form) && type->extent == sample.extent[form]);
    if (type->size == 0) return;
    FileView view = bytes_view();
    view.displacement = displacement;
    view.filetype = type.get();
    const bool ordered = is_ordered(*type);
    require(ordered);
    int64_t position = 0;
    for (int64_t copy = 0; copy < 2; ++copy)
        for (const Element& element : sample.elements) {
            const int64_t wanted = displacement + copy * sample.extent[form] + element.at[form];
            require(file_offset(view, position) == wanted && stream_position(view, wanted) == position);
            position += element.kind->size(form);
        }
}

/// A buffer of elements, whose other bytes are marked.
struct Memory {
    std::vector<uint8_t> bytes;
    explicit Memory(int64_t size) : bytes(static_cast<size_t>(size), 0xc3) {}
    void fill(const Sample& sample, int64_t number) {
        const auto each = static_cast<int64_t>(sample.elements.size());
        const Element& element = sample.elements[static_cast<size_t>(number % each)];
        const int64_t at = number / each * sample.extent[kMemory] + element.at[kMemory];
        for (int64_t i = 0; i < element.kind->memory; ++i)
            bytes[static_cast<size_t>(at + i)] = value_byte(*element.kind, number, i);
    }
};

/// Converts elements to a file's form and, of its first bytes, back.
void check_data(const Sample& sample, const Representation& representation, Form form, int64_t count, int cut) {
    const auto each = static_cast<int64_t>(sample.elements.size());
    const int64_t memory_bytes = count * sample.extent[kMemory];
    Memory out(memory_bytes), in(memory_bytes), wanted_in(memory_bytes);
    std::vector<uint8_t> wanted;
    for (int64_t i = 0; i < count * each; ++i) {
        out.fill(sample, i);
        append(wanted, form, *sample.elements[static_cast<size_t>(i % each)].kind, i);
    }
    if (wanted.empty()) return;  // accesses without data convert nothing
    std::vector<uint8_t> found(wanted.size());
    require(convert_to_file(representation, {out.bytes.data(), count, sample.type.get()},
                            reinterpret_cast<std::byte*>(found.data())) == MPI_SUCCESS);
    require(found == wanted);
    const auto length = static_cast<int64_t>(wanted.size());
    const int64_t moved = length - std::min<int64_t>(length, cut);
    // Elements of which the file has all bytes.
    int64_t whole = 0, filled_wanted = 0, used = 0;
    for (; whole < count * each; ++whole) {
        const Kind& kind = *sample.elements[static_cast<size_t>(whole % each)].kind;
        if (used + kind.size(form) > moved) break;
        used += kind.size(form);
        filled_wanted += kind.memory;
        wanted_in.fill(sample, whole);
    }
    found.resize(static_cast<size_t>(moved));
    int64_t filled = -1;
    require(convert_from_file(representation, {in.bytes.data(), count, sample.type.get()},
                              reinterpret_cast<std::byte*>(found.data()), moved, filled) == MPI_SUCCESS);
    require(filled == filled_wanted);
    require(in.bytes == wanted_in.bytes);
}

}  // namespace

/// Returns well-formed inputs, which the replay driver mutates.
const std::string* fuzz_seeds(size_t& count) {
    static const std::string seeds[] = {
        std::string("\0\2\5\1\2\3\4\5\6", 9),
        std::string("\7\3\0\3\2\1\4\2\1\1\2\5\4\3\2\1\0\1\2\3", 20),
        std::string("\1\4\11\5\5\0\4\1\1\2\0\6\1\1\1\1\5\2\0\2\2\2\2", 23),
        std::string("\3\1\2\2\4\0\5\2\1\1\2\0\2\1\3\1", 16),
    };
    count = std::size(seeds);
    return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Lock lock;
    Input input({reinterpret_cast<const char*>(data), size});
    const int64_t displacement = input.below(100), elements = input.below(5);
    const int cut = input.below(200);
    const Sample sample = read_type(input, 4);
    if (sample.elements.size() > kMostElements) return 0;
    require(sample.type->extent == sample.extent[kMemory] && sample.type->size == sample.size(kMemory));
    converted = &sample;
    for (const Form form : {kExternal, kOwn}) {
        const Representation& representation = representation_of(form);
        int64_t bytes = -1;
        require(size_in_file(representation, *sample.type, bytes) == MPI_SUCCESS && bytes == sample.size(form));
        check_view(sample, representation, form, displacement);
        check_data(sample, representation, form, elements, cut);
    }
    return 0;
}
