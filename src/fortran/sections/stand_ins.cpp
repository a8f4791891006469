// Contiguous copies of arrays with gaps, for collective operations, which may access blocks in any order, and reductions, which need
// predefined types.
#include <cstring>
#include <memory>
#include <vector>

#include "fortran/sections/door.h"
#include "fortran/sections/section.h"

namespace starling::fortran {

namespace {

class StandIn {
  public:
    StandIn(const Descriptor& array, bool written)
        : section_(array),
          memory_(std::make_unique<std::byte[]>(size())),
          before_(written ? std::make_unique<std::byte[]>(size()) : nullptr) {
        begin();
    }
    void* memory() { return memory_.get(); }

    void begin() {
        for_each([](std::byte* element, std::byte* here, size_t length) { std::memcpy(here, element, length); });
        if (before_) std::memcpy(before_.get(), memory_.get(), size());
    }

    /// Copies only the bytes that the call has changed back to the program's array, because the program may change the other bytes
    /// meanwhile.
    void finish() {
        if (!before_) return;
        for_each([this](std::byte* element, std::byte* here, size_t length) {
            const std::byte* before = before_.get() + (here - memory_.get());
            if (std::memcmp(here, before, length) == 0) return;
            for (size_t i = 0; i < length; ++i)
                if (here[i] != before[i]) element[i] = here[i];
        });
    }

  private:
    size_t size() const { return static_cast<size_t>(section_.bytes()); }

    template <class Do>
    void for_each(const Do& body) {
        std::byte* here = memory_.get();
        const auto length = static_cast<size_t>(section_.length);
        const auto level = [&](const auto& deeper, std::byte* at, int dimension) -> void {
            if (dimension < 0) {
                body(at, here, length);
                here += length;
                return;
            }
            const Section::SectionDimension& of = section_.dimensions[dimension];
            for (MPI_Count i = 0; i < of.extent; ++i) deeper(deeper, at + i * of.stride, dimension - 1);
        };
        level(level, section_.address, section_.rank - 1);
    }

    const Section section_;
    const std::unique_ptr<std::byte[]> memory_, before_;
};

}  // namespace

struct StandIns::All {
    std::vector<std::unique_ptr<StandIn>> each;

    void begin() {
        for (const auto& one : each) one->begin();
    }
    void finish() {
        for (const auto& one : each) one->finish();
    }
};

void* StandIns::stand_in(const Descriptor& array, bool written) {
    if (!all_) all_ = new All;
    return all_->each.emplace_back(std::make_unique<StandIn>(array, written))->memory();
}

void StandIns::finish() {
    all_->finish();
    delete all_;
}

void StandIns::transfer(int request) {
    const SubstituteBuffer loan{.begin = [](void* all) { static_cast<All*>(all)->begin(); },
                                .finish = [](void* all) { static_cast<All*>(all)->finish(); },
                                .release = [](void* all) { delete static_cast<All*>(all); },
                                .state = all_};
    if (door().lend(compat::in<MPI_Request>(request), &loan)) all_ = nullptr;
}

}  // namespace starling::fortran
