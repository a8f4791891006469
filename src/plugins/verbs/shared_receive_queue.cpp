#include "plugins/verbs/shared_receive_queue.h"

#include <cerrno>
#include <cstring>

#include "plugins/verbs/core.h"

namespace starling::verbs {

bool ReceiveStock::make(ibv_pd* domain, uint32_t count, uint32_t bytes, Problem& problem) {
    if (!buffers_.make(domain, count, bytes, problem)) return false;
    ibv_srq_init_attr attributes = {};
    attributes.attr.max_wr = count;
    attributes.attr.max_sge = 1;
    errno = 0;
    queue_ = ibv_create_srq(domain, &attributes);
    if (!queue_) {
        problem.describe("%s cannot create a shared receive queue of %u entries: %s",
                         ibv_get_device_name(domain->context->device), count, strerror(errno ? errno : EIO));
        return false;
    }
    for (uint32_t i = 0; i < count; ++i) return_buffer(i);
    post();
    return true;
}

void ReceiveStock::drop() {
    if (queue_) ibv_destroy_srq(queue_);
    queue_ = nullptr;
    buffers_.drop();
    back_count_ = 0;
}

void ReceiveStock::return_buffer(uint32_t index) {
    back_[back_count_++] = index;
    if (back_count_ == kTogether) post();
}

// Posts the freed buffers. Errors are ignored, because a failed post means that the device no longer exists.
void ReceiveStock::post() {
    if (back_count_ == 0) return;
    ibv_recv_wr work[kTogether];
    ibv_sge places[kTogether];
    for (uint32_t i = 0; i < back_count_; ++i) {
        places[i] = {reinterpret_cast<uint64_t>(buffers_.at(back_[i])), buffers_.bytes(), buffers_.key()};
        work[i] = {work_id(Work::receive, back_[i]), i + 1 < back_count_ ? &work[i + 1] : nullptr, &places[i], 1};
    }
    back_count_ = 0;
    ibv_recv_wr* bad = nullptr;
    ibv_post_srq_recv(queue_, work, &bad);
}

}  // namespace starling::verbs
