// An intrusive doubly linked list. An element is in at most one list per hook, is added without an allocation, and is removed in constant
// time from whichever list it is in. Not thread-safe.
#pragma once

#include <cstddef>

namespace starling {

struct ListHook {
    ListHook* next = nullptr;
    ListHook* prev = nullptr;
    bool linked() const { return next != nullptr; }
    /// Removes the element from its list; does nothing if it is in none.
    void unlink() {
        if (!next) return;
        next->prev = prev;
        prev->next = next;
        next = prev = nullptr;
    }
};

/// A list of T through its member `Hook` (a pointer to member of type ListHook).
template <class T, ListHook T::*Hook>
class List {
  public:
    List() { head_.next = head_.prev = &head_; }
    List(const List&) = delete;
    List& operator=(const List&) = delete;

    bool empty() const { return head_.next == &head_; }
    T* front() { return empty() ? nullptr : owner(head_.next); }
    /// Returns the element after `t`, or nullptr at the end.
    T* next(T* t) {
        ListHook* hook = (t->*Hook).next;
        return hook == &head_ ? nullptr : owner(hook);
    }
    void push_back(T* t) { insert(&(t->*Hook), head_.prev); }
    void push_front(T* t) { insert(&(t->*Hook), &head_); }
    static void remove(T* t) { (t->*Hook).unlink(); }
    T* pop_front() {
        T* t = front();
        if (t) remove(t);
        return t;
    }

  private:
    static T* owner(ListHook* hook) {
        alignas(T) static char probe[sizeof(T)];
        const auto offset = reinterpret_cast<char*>(&(reinterpret_cast<T*>(probe)->*Hook)) - probe;
        return reinterpret_cast<T*>(reinterpret_cast<char*>(hook) - offset);
    }
    static void insert(ListHook* hook, ListHook* after) {
        hook->prev = after;
        hook->next = after->next;
        after->next->prev = hook;
        after->next = hook;
    }
    ListHook head_;
};

}  // namespace starling
