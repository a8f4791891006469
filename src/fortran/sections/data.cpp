// Datatypes that describe the data of a call in an array with gaps.
#include <algorithm>
#include <vector>

#include "fortran/sections/door.h"
#include "fortran/sections/section.h"

namespace starling::fortran {

namespace {

using compat::library;

/// The bytes that one element of a datatype occupies in an array without gaps.
struct ArrayBounds {
    explicit ArrayBounds(MPI_Datatype type) {
        MPI_Count lower = 0;
        library.Type_size_c(type, &size);
        library.Type_get_extent_c(type, &lower, &extent);
        library.Type_get_true_extent_c(type, &first, &span);
    }
    /// Returns whether the data of each element lies within its extent.
    bool within() const { return extent > 0 && first >= 0 && first + span <= extent; }
    MPI_Count size = 0, extent = 0, first = 0, span = 0;
};

/// The intermediate types of a construction; the destructor frees them.
class Types {
  public:
    Types() = default;
    Types(const Types&) = delete;
    ~Types() {
        for (MPI_Datatype& type : made_) library.Type_free(&type);
    }
    template <class Make>
    MPI_Datatype make(Make&& make) {
        MPI_Datatype type = MPI_DATATYPE_NULL;
        make(&type);
        if (type != MPI_DATATYPE_NULL) made_.push_back(type);
        return type;
    }
    MPI_Datatype repeated(MPI_Count count, MPI_Datatype type) {
        if (count == 1) return type;
        return make([&](MPI_Datatype* made) { library.Type_contiguous_c(count, type, made); });
    }
    MPI_Datatype strided(const Section::SectionDimension& dimension, MPI_Datatype type) {
        return make(
            [&](MPI_Datatype* made) { library.Type_create_hvector_c(dimension.extent, 1, dimension.stride, type, made); });
    }
    /// Returns a committed type that the destructor does not free: a type of this list, or a duplicate of the program's own type.
    MPI_Datatype take(MPI_Datatype type) {
        const auto found = std::find(made_.begin(), made_.end(), type);
        if (found == made_.end()) {  // the type is the program's own
            library.Type_dup(type, &type);
        } else {
            made_.erase(found);
        }
        library.Type_commit(&type);
        return type;
    }

  private:
    std::vector<MPI_Datatype> made_;
};

struct StructParts {
    void add(MPI_Count place, MPI_Count length, MPI_Datatype type) {
        places.push_back(place);
        lengths.push_back(length);
        types.push_back(type);
    }
    MPI_Count count() const { return static_cast<MPI_Count>(places.size()); }
    std::vector<MPI_Count> places, lengths;
    std::vector<MPI_Datatype> types;
};

/// Returns a type for `count` elements of `type`, `in_each` of which fill one element of the section. The type nests one vector per
/// dimension; a dimension of which only a part is used becomes a struct of smaller types.
MPI_Datatype in_elements(Types& types, const Section& section, MPI_Count count, MPI_Datatype type, MPI_Count in_each) {
    MPI_Datatype nests[16];
    nests[0] = types.repeated(in_each, type);
    for (int i = 1; i < section.rank; ++i) nests[i] = types.strided(section.dimensions[i - 1], nests[i - 1]);
    MPI_Count left = count / in_each, below = section.elements(), place = 0;
    StructParts parts;
    for (int i = section.rank - 1; i >= 0; --i) {
        const Section::SectionDimension& dimension = section.dimensions[i];
        below /= dimension.extent;
        const MPI_Count whole = left / below;
        if (whole) parts.add(place, 1, types.strided({whole, dimension.stride}, nests[i]));
        place += whole * dimension.stride;
        left %= below;
    }
    if (count % in_each) parts.add(place, count % in_each, type);
    if (parts.count() == 1 && parts.places[0] == 0 && parts.lengths[0] == 1) return parts.types[0];
    return types.make([&](MPI_Datatype* made) {
        library.Type_create_struct_c(parts.count(), parts.lengths.data(), parts.places.data(), parts.types.data(), made);
    });
}

/// Returns the predefined type of which all data of a type consists, or MPI_BYTE if there are several.
MPI_Datatype basic_of(MPI_Datatype type) {
    MPI_Count integers = 0, addresses = 0, counts = 0, members = 0;
    int combiner = 0;
    library.Type_get_envelope_c(type, &integers, &addresses, &counts, &members, &combiner);
    if (members == 0) return type;
    std::vector<int> some_integers(static_cast<size_t>(integers));
    std::vector<MPI_Aint> some_addresses(static_cast<size_t>(addresses));
    std::vector<MPI_Count> some_counts(static_cast<size_t>(counts));
    std::vector<MPI_Datatype> constituents(static_cast<size_t>(members));
    library.Type_get_contents_c(type, integers, addresses, counts, members, some_integers.data(), some_addresses.data(),
                                some_counts.data(), constituents.data());
    MPI_Datatype basic = MPI_DATATYPE_NULL;
    for (MPI_Datatype& constituent : constituents) {
        const MPI_Datatype its = basic_of(constituent);
        basic = basic == MPI_DATATYPE_NULL || basic == its ? its : MPI_BYTE;
        library.Type_get_envelope_c(constituent, &integers, &addresses, &counts, &members, &combiner);
        if (members) library.Type_free(&constituent);
    }
    return basic;
}

/// Returns a type for `count` elements of `type` whose data crosses the borders of the section's elements, so that it must be described
/// block by block. Returns null if the section is too small.
MPI_Datatype in_blocks(Types& types, const Section& section, MPI_Count count, MPI_Datatype type) {
    constexpr int kAtOnce = 64;
    iovec blocks[kAtOnce];
    std::vector<MPI_Count> places, lengths;
    MPI_Count from = 0;
    while (const int found = door().blocks(type, count, from, blocks, kAtOnce)) {
        for (const iovec& block : std::vector<iovec>(blocks, blocks + found)) {
            auto at = static_cast<MPI_Count>(reinterpret_cast<intptr_t>(block.iov_base));
            auto left = static_cast<MPI_Count>(block.iov_len);
            if (at < 0 || at + left > section.bytes()) return MPI_DATATYPE_NULL;
            from += left;
            while (left > 0) {
                const MPI_Count part = std::min(left, section.length - at % section.length), place = section.place_of(at);
                if (!places.empty() && places.back() + lengths.back() == place) {
                    lengths.back() += part;
                } else {
                    places.push_back(place);
                    lengths.push_back(part);
                }
                at += part;
                left -= part;
            }
        }
    }
    MPI_Datatype basic = basic_of(type);
    MPI_Count unit = 1;
    library.Type_size_c(basic, &unit);
    if (!std::all_of(lengths.begin(), lengths.end(), [&](MPI_Count length) { return length % unit == 0; })) {
        basic = MPI_BYTE;
        unit = 1;
    }
    for (MPI_Count& length : lengths) length /= unit;
    return types.make([&](MPI_Datatype* made) {
        library.Type_create_hindexed_c(static_cast<MPI_Count>(places.size()), lengths.data(), places.data(), basic, made);
    });
}

MPI_Datatype in_section(Types& types, const Section& section, MPI_Count count, MPI_Datatype type, const ArrayBounds& bounds) {
    if (!bounds.within() || section.length % bounds.extent != 0) return in_blocks(types, section, count, type);
    const MPI_Count in_each = section.length / bounds.extent;
    return count <= section.elements() * in_each ? in_elements(types, section, count, type, in_each) : MPI_DATATYPE_NULL;
}

}  // namespace

void SectionData::replace(MPI_Datatype by) {
    type_ = by;
    count_ = 1;
    made_ = true;
}

void SectionData::release() { library.Type_free(&type_); }

/// Makes the call fail: the library rejects a count of -1.
void SectionData::refuse() { count_ = -1; }

void SectionData::take(const Descriptor& array) {
    if (count_ <= 0 || type_ == MPI_DATATYPE_NULL) return;
    const ArrayBounds bounds(type_);
    if (bounds.size == 0) return;
    Types types;
    const MPI_Datatype made = in_section(types, Section(array), count_, type_, bounds);
    made == MPI_DATATYPE_NULL ? refuse() : replace(types.take(made));
}

/// Creates a type in which each partition is one element and the distance between partitions is constant. This requires that a partition
/// consists of whole slices of the last dimension.
void PartitionedData::take(const Descriptor& array, int partitions) {
    if (count() <= 0 || partitions <= 0 || type() == MPI_DATATYPE_NULL) return;
    const ArrayBounds bounds(type());
    if (bounds.size == 0) return;
    const Section section(array);
    const Section::SectionDimension& last = section.dimensions[section.rank - 1];
    const MPI_Count row = section.bytes() / std::max<MPI_Count>(last.extent, 1), partition = count() * bounds.extent;
    if (row == 0 || partition % row != 0 || partition * partitions > section.bytes()) return refuse();
    Types types;
    const MPI_Datatype first = in_section(types, section, count(), type(), bounds);
    if (first == MPI_DATATYPE_NULL) return refuse();
    replace(types.take(
        types.make([&](MPI_Datatype* made) { library.Type_create_resized_c(first, 0, partition / row * last.stride, made); })));
}

}  // namespace starling::fortran
