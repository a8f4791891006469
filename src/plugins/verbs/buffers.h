// Memory registered with a device: memory of the users, and areas of equal buffers of the plugin itself.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "plugins/verbs/error_text.h"

namespace starling::verbs {

/// Registers memory as ibv_reg_mr does; on failure stores an error text in `problem`.
ibv_mr* enroll(ibv_pd* domain, void* memory, uint64_t bytes, int access, Problem& problem);

/// Equal buffers in one registration, with a list of the free ones.
class Buffers {
  public:
    Buffers() = default;
    Buffers(const Buffers&) = delete;
    Buffers& operator=(const Buffers&) = delete;
    ~Buffers() { drop(); }

    bool make(ibv_pd* domain, uint32_t count, uint32_t bytes, Problem& problem);
    void drop();

    std::byte* at(uint32_t index) const { return memory_ + uint64_t{index} * bytes_; }
    uint32_t key() const { return registration_->lkey; }
    uint32_t count() const { return count_; }
    uint32_t bytes() const { return bytes_; }  ///< size of each buffer
    uint64_t total() const { return uint64_t{count_} * bytes_; }

    bool allocate(uint32_t& index);
    void put(uint32_t index) { free_[free_count_++] = index; }
    uint32_t free_count() const { return free_count_; }

  private:
    std::byte* memory_ = nullptr;
    ibv_mr* registration_ = nullptr;
    std::unique_ptr<uint32_t[]> free_;
    uint32_t free_count_ = 0, count_ = 0, bytes_ = 0;
};

}  // namespace starling::verbs
