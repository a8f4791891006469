// Attributes: values that programs and libraries attach to communicators, datatypes and windows under their own keys (MPI 5.0 section 7.7).
// One mechanism serves the three kinds of object.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi.h"

namespace starling::comm {

enum class AttributeKind : uint8_t { comm, type, win };

/// The object that holds the attributes, as callbacks see it.
struct AttributeHolder {
    AttributeKind kind;
    union {
        MPI_Comm comm;
        MPI_Datatype type;
        MPI_Win win;
    };
    explicit AttributeHolder(MPI_Comm handle) : kind(AttributeKind::comm), comm(handle) {}
    explicit AttributeHolder(MPI_Datatype handle) : kind(AttributeKind::type), type(handle) {}
    explicit AttributeHolder(MPI_Win handle) : kind(AttributeKind::win), win(handle) {}
};

/// A key with its callbacks. Lives until it has been freed and no attribute uses it any more.
struct Keyval {
    AttributeKind kind;
    bool freed = false;
    int number = 0;
    uint32_t references = 0;  ///< number of references: the application's handle and one per attribute
    void* extra_state = nullptr;
    // Predefined callbacks are the values 0 (nothing is copied or called) and 1 (the value is copied).
    union {
        MPI_Comm_copy_attr_function* comm_copy;
        MPI_Type_copy_attr_function* type_copy;
        MPI_Win_copy_attr_function* win_copy;
    };
    union {
        MPI_Comm_delete_attr_function* comm_delete;
        MPI_Type_delete_attr_function* type_delete;
        MPI_Win_delete_attr_function* win_delete;
    };
};

/// Creates a key; the application sees its `number`. The caller sets the callbacks on the result.
Keyval* make_keyval(AttributeKind kind, void* extra_state);
/// Returns the key with that number and kind; nullptr if there is none. A freed key remains as long as attributes use it, so that they can
/// still be read and deleted.
Keyval* find_keyval(AttributeKind kind, int number);
/// Drops the application's reference (MPI_X_free_keyval).
void free_keyval(Keyval* keyval);

/// The attributes of one object, in the order in which they were set. Callbacks run inside these calls, outside the library's lock
/// (base/lock.h): they may call MPI, and other threads may meanwhile do so, too. The caller holds a reference of the object. All functions
/// that run callbacks return MPI_SUCCESS or the failed callback's error code.
class AttributeSet {
  public:
    AttributeSet() = default;
    AttributeSet(const AttributeSet&) = delete;
    AttributeSet& operator=(const AttributeSet&) = delete;
    AttributeSet(AttributeSet&& other) noexcept : entries_(static_cast<std::vector<AttributeEntry>&&>(other.entries_)) {}
    ~AttributeSet();  ///< drops the remaining attributes without calling their callbacks

    /// Moves all attributes of `other` here, after the existing ones.
    void take(AttributeSet& other);
    bool empty() const { return entries_.empty(); }
    /// Sets the value of a key. An earlier value is deleted first, with its callback.
    int set(const AttributeHolder& holder, Keyval* keyval, void* value);
    /// Returns whether the key is set, and copies its value to `value`.
    bool get(int keyval, void** value) const;
    /// Deletes one attribute; MPI_ERR_KEYVAL if it is not set.
    int remove(const AttributeHolder& holder, int keyval);
    /// Deletes all attributes, the last one first; stops at the first callback that fails, and keeps that attribute and the rest.
    int clear(const AttributeHolder& holder);
    /// Adds the results of this set's copy callbacks to `copy`; stops at the first that fails.
    int copy_to(const AttributeHolder& holder, AttributeSet& copy) const;

  private:
    struct AttributeEntry {
        Keyval* keyval;
        void* value;
        /// Whether the attribute's delete callback is running, so that the attribute must not be deleted again.
        bool going = false;
    };
    static int call_delete(const AttributeHolder& holder, const AttributeEntry& entry);
    AttributeEntry* find(int keyval, bool going);
    std::vector<AttributeEntry> entries_;
};

}  // namespace starling::comm
