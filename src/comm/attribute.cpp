#include "comm/attribute.h"

#include <algorithm>

namespace starling::comm {

namespace {

// Numbers of user keys start above every predefined one.
constexpr int kFirstNumber = 1024;

std::vector<Keyval*>& table() {
    static auto* keyvals = new std::vector<Keyval*>;
    return *keyvals;
}

// Not inlined: GCC 12 would warn of a use after free that the counts rule out.
[[gnu::noinline]] void drop_reference(Keyval* keyval) {
    if (--keyval->references > 0) return;
    table()[static_cast<std::size_t>(keyval->number - kFirstNumber)] = nullptr;
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

// Calls a copy callback that is not one of the predefined values. The union's members are all object
// pointers to functions of one representation, so any of them tells which value it is.
int call_copy(const AttributeHolder& holder, const Keyval& keyval, void* value, void** copy, int* flag) {
    switch (holder.kind) {
        case AttributeKind::comm:
            return keyval.comm_copy(holder.comm, keyval.number, keyval.extra_state, value, copy, flag);
        case AttributeKind::type:
            return keyval.type_copy(holder.type, keyval.number, keyval.extra_state, value, copy, flag);
        default:
            return keyval.win_copy(holder.win, keyval.number, keyval.extra_state, value, copy, flag);
    }
}

uintptr_t value_of_copy(const Keyval& keyval) {
    return reinterpret_cast<uintptr_t>(keyval.comm_copy);
}

}  // namespace

Keyval* make_keyval(AttributeKind kind, void* extra_state) {
    auto* keyval = new Keyval{};
    keyval->kind = kind;
    keyval->extra_state = extra_state;
    keyval->references = 1;
    const auto unused = std::find(table().begin(), table().end(), nullptr);
    keyval->number = kFirstNumber + static_cast<int>(unused - table().begin());
    if (unused == table().end())
        table().push_back(keyval);
    else
        *unused = keyval;
    return keyval;
}

Keyval* find_keyval(AttributeKind kind, int number) {
    const int64_t i = int64_t{number} - kFirstNumber;
    if (i < 0 || i >= static_cast<int64_t>(table().size())) return nullptr;
    Keyval* keyval = table()[static_cast<std::size_t>(i)];
    return keyval && keyval->kind == kind ? keyval : nullptr;
}

void free_keyval(Keyval* keyval) {
    keyval->freed = true;
    drop_reference(keyval);
}

AttributeSet::~AttributeSet() {
    for (const Entry& entry : entries_) drop_reference(entry.keyval);
}

void AttributeSet::take(AttributeSet& other) {
    entries_.insert(entries_.end(), other.entries_.begin(), other.entries_.end());
    other.entries_.clear();
}

int AttributeSet::call_delete(const AttributeHolder& holder, const Entry& entry) {
    const Keyval& keyval = *entry.keyval;
    if (!keyval.comm_delete) return MPI_SUCCESS;
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
    if (get(keyval->number, nullptr))
        if (const int error = remove(holder, keyval->number)) return error;
    ++keyval->references;
    entries_.push_back({keyval, value});
    return MPI_SUCCESS;
}

bool AttributeSet::get(int keyval, void** value) const {
    for (const Entry& entry : entries_) {
        if (entry.keyval->number != keyval) continue;
        if (value) *value = entry.value;
        return true;
    }
    return false;
}

int AttributeSet::remove(const AttributeHolder& holder, int keyval) {
    const auto matches = [keyval](const Entry& entry) { return entry.keyval->number == keyval; };
    const auto found = std::find_if(entries_.begin(), entries_.end(), matches);
    if (found == entries_.end()) return MPI_ERR_KEYVAL;
    const Entry entry = *found;
    Hold hold(entry.keyval);
    if (const int error = call_delete(holder, entry)) return error;
    const auto still = std::find_if(entries_.begin(), entries_.end(), matches);
    if (still != entries_.end()) {
        entries_.erase(still);
        drop_reference(entry.keyval);
    }
    return MPI_SUCCESS;
}

int AttributeSet::clear(const AttributeHolder& holder) {
    while (!entries_.empty())
        if (const int error = remove(holder, entries_.back().keyval->number)) return error;
    return MPI_SUCCESS;
}

int AttributeSet::copy_to(const AttributeHolder& holder, AttributeSet& copy) const {
    const std::vector<Entry> entries = entries_;
    for (const Entry& entry : entries) {
        const uintptr_t predefined = value_of_copy(*entry.keyval);
        if (predefined == 0) continue;
        Hold hold(entry.keyval);
        void* value = entry.value;
        int flag = 1;
        if (predefined > 1) {
            flag = 0;
            if (const int error = call_copy(holder, *entry.keyval, entry.value, &value, &flag))
                return error;
        }
        if (!flag) continue;
        ++entry.keyval->references;
        copy.entries_.push_back({entry.keyval, value});
    }
    return MPI_SUCCESS;
}

}  // namespace starling::comm
