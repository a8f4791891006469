#include "comm/attribute.h"

#include <algorithm>

#include "base/lock.h"
#include "base/no_destroy.h"
#include "base/state.h"
#include "comm/error_codes.h"

namespace starling::comm {

namespace {

// The first number of keys that programs create, above every predefined one.
constexpr int kFirstNumber = 1024;

STARLING_STATE NoDestroy<std::vector<Keyval*>> table_storage;
constinit auto& table = table_storage.value;

// Numbers of destroyed attribute keys, for reuse by new keys.
STARLING_STATE NoDestroy<std::vector<int>> unused_numbers_storage;
constinit auto& unused_numbers = unused_numbers_storage.value;

// Not inlined: GCC 12 would warn of a use after free that the reference counts rule out.
[[gnu::noinline]] void drop_reference(Keyval* keyval) {
    if (--keyval->references > 0) return;
    table[static_cast<std::size_t>(keyval->number - kFirstNumber)] = nullptr;
    unused_numbers.push_back(keyval->number);
    delete keyval;
}

// Keeps a key alive while its callback runs, which may free the key or delete the attribute.
class Hold {
  public:
    explicit Hold(Keyval* keyval) : keyval_(keyval) { ++keyval_->references; }
    ~Hold() { drop_reference(keyval_); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

  private:
    Keyval* keyval_;
};

// Calls the program's copy callback, which must not be one of the predefined values 0 and 1.
int call_copy(const AttributeHolder& holder, const Keyval& keyval, void* value, void** copy, int* flag) {
    const OutsideLibrary outside;
    switch (holder.kind) {
        case AttributeKind::comm:
            return keyval.comm_copy(holder.comm, keyval.number, keyval.extra_state, value, copy, flag);
        case AttributeKind::type:
            return keyval.type_copy(holder.type, keyval.number, keyval.extra_state, value, copy, flag);
        default:
            return keyval.win_copy(holder.win, keyval.number, keyval.extra_state, value, copy, flag);
    }
}

// Returns the copy callback as a number, to compare it with the predefined values. The callbacks of all kinds share a union and have one
// representation, so comm_copy shows any of them.
uintptr_t value_of_copy(const Keyval& keyval) { return reinterpret_cast<uintptr_t>(keyval.comm_copy); }

}  // namespace

Keyval* make_keyval(AttributeKind kind, void* extra_state) {
    auto* keyval = new Keyval{};
    keyval->kind = kind;
    keyval->extra_state = extra_state;
    keyval->references = 1;
    if (unused_numbers.empty()) {
        keyval->number = kFirstNumber + static_cast<int>(table.size());
        table.push_back(keyval);
    } else {
        keyval->number = unused_numbers.back();
        unused_numbers.pop_back();
        table[static_cast<std::size_t>(keyval->number - kFirstNumber)] = keyval;
    }
    return keyval;
}

Keyval* find_keyval(AttributeKind kind, int number) {
    const int64_t i = int64_t{number} - kFirstNumber;
    if (i < 0 || i >= static_cast<int64_t>(table.size())) return nullptr;
    Keyval* keyval = table[static_cast<std::size_t>(i)];
    return keyval && keyval->kind == kind ? keyval : nullptr;
}

void free_keyval(Keyval* keyval) {
    keyval->freed = true;
    drop_reference(keyval);
}

AttributeSet::~AttributeSet() {
    for (const AttributeEntry& entry : entries_) drop_reference(entry.keyval);
}

void AttributeSet::take(AttributeSet& other) {
    entries_.insert(entries_.end(), other.entries_.begin(), other.entries_.end());
    other.entries_.clear();
}

int AttributeSet::call_delete(const AttributeHolder& holder, const AttributeEntry& entry) {
    const Keyval& keyval = *entry.keyval;
    if (!keyval.comm_delete) return MPI_SUCCESS;
    const OutsideLibrary outside;
    switch (holder.kind) {
        case AttributeKind::comm:
            return keyval.comm_delete(holder.comm, keyval.number, entry.value, keyval.extra_state);
        case AttributeKind::type:
            return keyval.type_delete(holder.type, keyval.number, entry.value, keyval.extra_state);
        default:
            return keyval.win_delete(holder.win, keyval.number, entry.value, keyval.extra_state);
    }
}

int AttributeSet::set(const AttributeHolder& holder, Keyval* keyval, void* value) {
    Hold hold(keyval);
    while (find(keyval->number, false))
        if (const int error = remove(holder, keyval->number)) return error;
    ++keyval->references;
    entries_.push_back({keyval, value});
    return MPI_SUCCESS;
}

bool AttributeSet::get(int keyval, void** value) const {
    auto* self = const_cast<AttributeSet*>(this);
    const AttributeEntry* found = self->find(keyval, false);
    if (!found) found = self->find(keyval, true);  // An attribute remains readable until its delete callback has returned.
    if (found && value) *value = found->value;
    return found != nullptr;
}

AttributeSet::AttributeEntry* AttributeSet::find(int keyval, bool going) {
    for (AttributeEntry& entry : entries_)
        if (entry.keyval->number == keyval && entry.going == going) return &entry;
    return nullptr;
}

int AttributeSet::remove(const AttributeHolder& holder, int keyval) {
    AttributeEntry* found = find(keyval, false);
    if (!found) return MPI_ERR_KEYVAL;
    found->going = true;
    const AttributeEntry entry = *found;
    Hold hold(entry.keyval);
    const int error = call_delete(holder, entry);
    // While the callback ran, attributes may have been added and deleted, also with this key.
    AttributeEntry* still = find(keyval, true);
    if (error) {
        if (still) still->going = false;
        return without_text(error);
    }
    if (still) {
        entries_.erase(entries_.begin() + (still - entries_.data()));
        drop_reference(entry.keyval);
    }
    return MPI_SUCCESS;
}

int AttributeSet::clear(const AttributeHolder& holder) {
    for (;;) {
        const auto last = std::find_if(entries_.rbegin(), entries_.rend(), [](const AttributeEntry& e) { return !e.going; });
        if (last == entries_.rend()) return MPI_SUCCESS;
        if (const int error = remove(holder, last->keyval->number)) return error;
    }
}

int AttributeSet::copy_to(const AttributeHolder& holder, AttributeSet& copy) const {
    // Hold references to the keys: callbacks and other threads may delete attributes before copy_to() reaches them.
    AttributeSet held;
    held.entries_ = entries_;
    for (const AttributeEntry& entry : held.entries_) ++entry.keyval->references;
    for (const AttributeEntry& entry : held.entries_) {
        const uintptr_t predefined = value_of_copy(*entry.keyval);
        if (predefined == 0) continue;
        void* value = entry.value;
        int flag = 1;
        if (predefined > 1) {
            flag = 0;
            if (const int error = call_copy(holder, *entry.keyval, entry.value, &value, &flag)) return without_text(error);
        }
        if (!flag) continue;
        ++entry.keyval->references;
        copy.entries_.push_back({entry.keyval, value});
    }
    return MPI_SUCCESS;
}

}  // namespace starling::comm
