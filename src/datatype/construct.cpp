#include "datatype/construct.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/error.h"
#include "base/no_destroy.h"
#include "base/pool.h"
#include "base/state.h"
#include "datatype/array_types.h"
#include "datatype/bounds.h"
#include "datatype/external32.h"
#include "datatype/layout.h"
#include "datatype/recipe.h"

namespace starling::datatype {

namespace {

STARLING_STATE NoDestroy<Pool<Datatype>> datatype_pool_storage;
constinit auto& datatype_pool = datatype_pool_storage.value;

int check_lengths(const int64_t* lengths, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
        if (lengths[i] < 0)
            return fail(MPI_ERR_ARG, "block length %lld (index %lld) is negative", static_cast<long long>(lengths[i]),
                        static_cast<long long>(i));
    return MPI_SUCCESS;
}

int check_args(const Recipe& recipe) {
    const int64_t* a = recipe.args.data();
    switch (recipe.combiner) {
        case MPI_COMBINER_CONTIGUOUS:
        case MPI_COMBINER_VECTOR:
        case MPI_COMBINER_HVECTOR:
        case MPI_COMBINER_INDEXED:
        case MPI_COMBINER_HINDEXED:
        case MPI_COMBINER_INDEXED_BLOCK:
        case MPI_COMBINER_HINDEXED_BLOCK:
        case MPI_COMBINER_STRUCT:
            if (a[0] < 0) return fail(MPI_ERR_COUNT, "the count %lld is negative", static_cast<long long>(a[0]));
            break;
        default:
            return MPI_SUCCESS;
    }
    switch (recipe.combiner) {
        case MPI_COMBINER_VECTOR:
        case MPI_COMBINER_HVECTOR:
        case MPI_COMBINER_INDEXED_BLOCK:
        case MPI_COMBINER_HINDEXED_BLOCK:
            return check_lengths(a + 1, 1);
        case MPI_COMBINER_INDEXED:
        case MPI_COMBINER_HINDEXED:
        case MPI_COMBINER_STRUCT:
            return check_lengths(a + 1, a[0]);
        default:
            return MPI_SUCCESS;
    }
}

// Copies the element kind, for constructors whose result has the same data as their one constituent.
void inherit(Datatype& type, const Datatype& old) {
    type.basic = old.basic;
    type.value = old.value;
    type.index = old.index;
    type.index_offset = old.index_offset;
}

bool resize(Datatype& type, int64_t lb, int64_t extent) {
    int64_t ub;
    if (__builtin_add_overflow(lb, extent, &ub)) return false;
    type.lb = lb;
    type.extent = extent;
    type.marked = true;
    return true;
}

int describe(Datatype& type, Recipe& recipe) {
    if (const int error = check_args(recipe)) return error;
    if (recipe.combiner == MPI_COMBINER_SUBARRAY || recipe.combiner == MPI_COMBINER_DARRAY) {
        const int error = recipe.combiner == MPI_COMBINER_SUBARRAY ? make_subarray(recipe) : make_darray(recipe);
        if (error) return error;
    }
    bool good = set_bounds(type, recipe);
    if (recipe.combiner == MPI_COMBINER_RESIZED) good = good && resize(type, recipe.args[0], recipe.args[1]);
    if (!good) return fail(MPI_ERR_VALUE_TOO_LARGE, "the datatype's size or bounds do not fit in 64 bits");
    recipe.external = external_size(recipe);
    if (recipe.combiner == MPI_COMBINER_DUP) {
        inherit(type, *recipe.types[0]);
        type.committed = recipe.types[0]->committed;
    }
    return MPI_SUCCESS;
}

void free_recipe(const Recipe* recipe) {
    for (Datatype* type : recipe->types) release(*type);
    if (recipe->equivalent) release(*recipe->equivalent);
    delete recipe;
}

struct RecipeDeleter {
    void operator()(Recipe* recipe) const { free_recipe(recipe); }
};
using RecipePtr = std::unique_ptr<Recipe, RecipeDeleter>;

// Sets one_block and contiguous from the type's layout.
void set_shape(Datatype& type) {
    const LayoutNode& root = layout_of(type).root;
    type.one_block = root.is_block();
    type.contiguous = type.one_block && type.extent == type.size;
}

}  // namespace

int make(int combiner, bool large, std::vector<int64_t> args, std::vector<Datatype*> types, Datatype** made) {
    RecipePtr recipe(new Recipe);
    recipe->combiner = combiner;
    recipe->large = large;
    recipe->args = std::move(args);
    for (const Datatype* type : types) retain(*type);
    recipe->types = std::move(types);
    Datatype draft;
    if (const int error = describe(draft, *recipe)) return error;
    Datatype* type = datatype_pool.create(draft);
    type->references = 1;
    type->recipe = recipe.release();
    set_shape(*type);
    *made = type;
    return MPI_SUCCESS;
}

void commit(Datatype& type) { type.committed = true; }

namespace {

/// Destroys types, and those of their constituents whose last reference they held. Iterative, because nesting may be deeper than the stack.
class Burial {
  public:
    void bury(const Datatype& constant) {
        Datatype& type = const_cast<Datatype&>(constant);
        const Recipe* const recipe = type.recipe;
        free_layout(type);
        std::free(type.name);
        datatype_pool.destroy(&type);
        if (!recipe) return;
        recipe->next_dead = dead_;
        dead_ = recipe;
    }
    void finish() {
        while (const Recipe* const recipe = dead_) {
            dead_ = recipe->next_dead;
            for (const Datatype* type : recipe->types) release_component(*type);
            if (recipe->equivalent) release_component(*recipe->equivalent);
            delete recipe;
        }
    }

  private:
    void release_component(const Datatype& type) {
        if (!type.predefined && --type.references == 0) bury(type);
    }
    const Recipe* dead_ = nullptr;
};

}  // namespace

void destroy(const Datatype& type) {
    Burial burial;
    burial.bury(type);
    burial.finish();
}

int to_int(const Datatype* type) {
    if (!type) return static_cast<int>(reinterpret_cast<uintptr_t>(MPI_DATATYPE_NULL));
    return static_cast<int>(type->predefined ? type->pool_index : kHandleLimit + type->pool_index);
}

Datatype* from_int(int value) {
    if (value < 0) return nullptr;
    if (value < static_cast<int>(kHandleLimit))
        return from_handle(reinterpret_cast<MPI_Datatype>(static_cast<uintptr_t>(value)));
    return datatype_pool.at(static_cast<uint32_t>(value) - kHandleLimit);
}

namespace {

// Unnamed predefined types, kept for the life of the process.
STARLING_STATE NoDestroy<std::vector<Datatype*>> unnamed_storage;
constinit auto& unnamed = unnamed_storage.value;

Datatype* find_unnamed(int combiner, const std::vector<int64_t>& args, const std::vector<Datatype*>& types) {
    for (Datatype* type : unnamed)
        if (type->recipe->combiner == combiner && type->recipe->args == args && type->recipe->types == types) return type;
    return nullptr;
}

int make_unnamed(int combiner, std::vector<int64_t> args, std::vector<Datatype*> types, Datatype& equivalent, Datatype** made) {
    RecipePtr recipe(new Recipe);
    recipe->combiner = combiner;
    recipe->args = std::move(args);
    recipe->types = std::move(types);
    retain(equivalent);
    recipe->equivalent = &equivalent;
    Datatype draft;
    if (const int error = describe(draft, *recipe)) return error;
    Datatype* type = datatype_pool.create(draft);
    type->references = 1;
    type->recipe = recipe.release();
    type->permanent = type->committed = true;
    inherit(*type, equivalent);
    set_shape(*type);
    unnamed.push_back(type);
    *made = type;
    return MPI_SUCCESS;
}

struct F90 {
    int precision, range;
    MPI_Datatype type;
};

// Returns whether `basic` is a C integer type, as the index of a pair must be; is_number() serves for its value.
bool is_integer(Basic basic) { return basic >= Basic::int8 && basic <= Basic::uint64 && basic != Basic::int128; }
bool is_number(Basic basic) {
    return is_integer(basic) || basic == Basic::float32 || basic == Basic::float64 || basic == Basic::float80;
}

Datatype* named_pair(const Datatype& value, const Datatype& index) {
    const MPI_Datatype pairs[][3] = {
        {MPI_FLOAT, MPI_INT, MPI_FLOAT_INT},      {MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT},
        {MPI_LONG, MPI_INT, MPI_LONG_INT},        {MPI_INT, MPI_INT, MPI_2INT},
        {MPI_SHORT, MPI_INT, MPI_SHORT_INT},      {MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT},
        {MPI_REAL, MPI_REAL, MPI_2REAL},          {MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_2DOUBLE_PRECISION},
        {MPI_INTEGER, MPI_INTEGER, MPI_2INTEGER},
    };
    for (const auto& pair : pairs)
        if (&value == &predefined(pair[0]) && &index == &predefined(pair[1])) return &predefined(pair[2]);
    return nullptr;
}

}  // namespace

int find_f90(int combiner, int precision, int range, Datatype** found) {
    const F90 reals[] = {{6, 37, MPI_REAL4}, {15, 307, MPI_REAL8}, {33, 4931, MPI_REAL16}};
    const F90 complexes[] = {{6, 37, MPI_COMPLEX8}, {15, 307, MPI_COMPLEX16}, {33, 4931, MPI_COMPLEX32}};
    const F90 integers[] = {
        {0, 2, MPI_INTEGER1}, {0, 4, MPI_INTEGER2}, {0, 9, MPI_INTEGER4}, {0, 18, MPI_INTEGER8}, {0, 38, MPI_INTEGER16}};
    const bool integer = combiner == MPI_COMBINER_F90_INTEGER;
    const F90* choice = integer ? integers : combiner == MPI_COMBINER_F90_REAL ? reals : complexes;
    const F90* end = choice + (integer ? 5 : 3);
    if (!integer && precision == MPI_UNDEFINED && range == MPI_UNDEFINED)
        return fail(MPI_ERR_ARG, "precision and range must not both be MPI_UNDEFINED");
    choice = std::find_if(choice, end, [&](const F90& f) {
        return (integer || precision <= f.precision) && (range == MPI_UNDEFINED || range <= f.range);
    });
    if (choice == end) {
        if (integer) return fail(MPI_ERR_ARG, "no integer type has a decimal range of %d", range);
        return fail(MPI_ERR_ARG, "no type has %d decimal digits and an exponent range of %d", precision, range);
    }
    std::vector<int64_t> args;
    if (!integer) args.push_back(precision);
    args.push_back(range);
    if ((*found = find_unnamed(combiner, args, {}))) return MPI_SUCCESS;
    return make_unnamed(combiner, std::move(args), {}, predefined(choice->type), found);
}

int find_value_index(Datatype& value, Datatype& index, Datatype** found) {
    *found = named_pair(value, index);
    if (*found || !value.predefined || !index.predefined) return MPI_SUCCESS;
    if (!is_number(value.basic) || !is_integer(index.basic)) return MPI_SUCCESS;
    if ((*found = find_unnamed(MPI_COMBINER_VALUE_INDEX, {}, {&value, &index}))) return MPI_SUCCESS;
    const int64_t mask = index.alignment - 1;
    const int64_t offset = (value.size + mask) & ~mask;
    Datatype* pair = nullptr;
    if (const int error = make(MPI_COMBINER_STRUCT, false, {2, 1, 1, 0, offset}, {&value, &index}, &pair)) return error;
    const TypeRef holder(pair);
    if (const int error = make_unnamed(MPI_COMBINER_VALUE_INDEX, {}, {&value, &index}, *pair, found)) return error;
    (*found)->basic = Basic::pair;
    (*found)->value = value.basic;
    (*found)->index = index.basic;
    (*found)->index_offset = static_cast<uint16_t>(offset);
    return MPI_SUCCESS;
}

Datatype* match_size(int type_class, int size) {
    struct Match {
        int type_class, size;
        MPI_Datatype type;
    };
    const Match matches[] = {
        {MPI_TYPECLASS_INTEGER, 1, MPI_INTEGER1},   {MPI_TYPECLASS_INTEGER, 2, MPI_INTEGER2},
        {MPI_TYPECLASS_INTEGER, 4, MPI_INTEGER4},   {MPI_TYPECLASS_INTEGER, 8, MPI_INTEGER8},
        {MPI_TYPECLASS_INTEGER, 16, MPI_INTEGER16}, {MPI_TYPECLASS_REAL, 2, MPI_REAL2},
        {MPI_TYPECLASS_REAL, 4, MPI_REAL4},         {MPI_TYPECLASS_REAL, 8, MPI_REAL8},
        {MPI_TYPECLASS_REAL, 16, MPI_REAL16},       {MPI_TYPECLASS_COMPLEX, 4, MPI_COMPLEX4},
        {MPI_TYPECLASS_COMPLEX, 8, MPI_COMPLEX8},   {MPI_TYPECLASS_COMPLEX, 16, MPI_COMPLEX16},
        {MPI_TYPECLASS_COMPLEX, 32, MPI_COMPLEX32}, {MPIX_TYPECLASS_LOGICAL, 1, MPI_LOGICAL1},
        {MPIX_TYPECLASS_LOGICAL, 2, MPI_LOGICAL2},  {MPIX_TYPECLASS_LOGICAL, 4, MPI_LOGICAL4},
        {MPIX_TYPECLASS_LOGICAL, 8, MPI_LOGICAL8},  {MPIX_TYPECLASS_LOGICAL, 16, MPI_LOGICAL16},
    };
    for (const Match& match : matches)
        if (match.type_class == type_class && match.size == size) return &predefined(match.type);
    return nullptr;
}

}  // namespace starling::datatype
