// Keeping objects while a call is not alone with them.
#pragma once

namespace starling::comm {

/// Holds a reference of a communicator, group, ... for a scope in which it may be freed: by a function of the program's, or by
/// another thread while the call idles. The scope begins and ends inside the library.
template <class T>
class Kept {
  public:
    /// Null: holds nothing.
    explicit Kept(T* object) : object_(object ? object->retain() : nullptr) {}
    ~Kept() {
        if (object_) [[unlikely]]
            object_->release();
    }
    T* operator->() const { return object_; }
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;

  private:
    T* object_;
};

}  // namespace starling::comm
