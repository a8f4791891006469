#include "fortran/attribute_storage.h"

#include <memory>
#include <mutex>
#include <unordered_map>

namespace starling::compat {

namespace {

struct Boxes {
    std::mutex mutex;
    std::unordered_map<void*, std::unique_ptr<MPI_Aint>> all;
};
Boxes& boxes() {
    static auto* const made = new Boxes;  // never destroyed, since callbacks may run until the process ends
    return *made;
}

}  // namespace

void* attribute_boxed(MPI_Aint value) {
    const std::lock_guard guard(boxes().mutex);
    auto box = std::make_unique<MPI_Aint>(value);
    void* const place = box.get();
    boxes().all.emplace(place, std::move(box));
    return place;
}

MPI_Aint attribute_unboxed(void* attribute, bool last) {
    const std::lock_guard guard(boxes().mutex);
    const auto found = boxes().all.find(attribute);
    if (found == boxes().all.end()) return reinterpret_cast<MPI_Aint>(attribute);
    const MPI_Aint value = *found->second;
    if (last) boxes().all.erase(found);
    return value;
}

}  // namespace starling::compat
