// Storage for objects that live as long as the process. The destructor of an object with static storage would run in exit(), while other
// threads of the program may still be inside the library.
#pragma once

namespace starling {

/// Static storage for a T that is constructed at compile time and never destroyed. Use it through a reference, which costs nothing:
///     STARLING_STATE NoDestroy<std::vector<int>> numbers_storage;  // base/state.h
///     constinit auto& numbers = numbers_storage.value;
template <class T>
union NoDestroy {
    T value;
    constexpr NoDestroy() : value() {}
    constexpr ~NoDestroy() {}
};

}  // namespace starling
