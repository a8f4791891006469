// RequestIds: small, reused numbers by which a peer refers to a request.
#pragma once

#include <cstdint>
#include <vector>

#include "base/reserve.h"

namespace starling::message {

template <class T>
class RequestIds {
  public:
    uint32_t add(T& t) {
        if (free_.empty()) {
            make_room(free_, entries_.size() + 1 - free_.size());  // reserves memory, so that remove() allocates none
            entries_.push_back(&t);
            return static_cast<uint32_t>(entries_.size() - 1);
        }
        const uint32_t serial = free_.back();
        free_.pop_back();
        entries_[serial] = &t;
        return serial;
    }
    /// Returns the request with this number; nullptr for numbers that are not in use.
    T* find(uint32_t serial) const { return serial < entries_.size() ? entries_[serial] : nullptr; }
    /// Assigns the number to another request.
    void replace(uint32_t serial, T& t) { entries_[serial] = &t; }
    void remove(uint32_t serial) {
        entries_[serial] = nullptr;
        free_.push_back(serial);
    }
    /// Visits all requests that have a number; the visitor may remove the visited one.
    template <class F>
    void each(F&& visit) {
        for (uint32_t i = 0; i < entries_.size(); ++i)
            if (entries_[i]) visit(*entries_[i]);
    }

  private:
    std::vector<T*> entries_;
    std::vector<uint32_t> free_;
};

}  // namespace starling::message
