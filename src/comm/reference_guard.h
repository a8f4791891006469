// Keeps an object alive while a call may release the library's lock.
#pragma once

namespace starling::comm {

/// Holds a reference of a communicator, group, ... for a scope in which it may be freed: by a function of the program, or by another thread
/// while the call waits. The scope begins and ends under the library's lock.
template <class T>
class ReferenceGuard {
  public:
    /// Holds `object`; null: nothing.
    explicit ReferenceGuard(T* object) : object_(object ? object->retain() : nullptr) {}
    ~ReferenceGuard() {
        if (object_) [[unlikely]]
            object_->release();
    }
    T* operator->() const { return object_; }
    ReferenceGuard(const ReferenceGuard&) = delete;
    ReferenceGuard& operator=(const ReferenceGuard&) = delete;

  private:
    T* object_;
};

}  // namespace starling::comm
