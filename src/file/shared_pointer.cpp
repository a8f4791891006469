#include "file/shared_pointer.h"

#include <new>

#include "base/random.h"
#include "collective/collective_request.h"
#include "file/revocation.h"
#include "link/job.h"
#include "link/peer.h"
#include "progress/engine.h"
#include "rma/memory.h"

namespace starling::file {

namespace {

using datatype::Datatype;

const Datatype& word_type() { return datatype::predefined(MPI_INT64_T); }

/// Awaits an access of one word, which stays in the coroutine's frame.
class WordAwaiter {
  public:
    WordAwaiter(rma::Target& target, const datatype::Op& op, int64_t operand, int64_t& before) : operand_(operand) {
        access_.operation = rma::AccessOperation::fetch_update;
        access_.origin = {&operand_, 1, &word_type()};
        access_.result = {&before, 1, &word_type()};
        access_.update = {&word_type(), &op};
        access_.remote_block = {0, 1, &word_type()};
        target_ = &target;
    }
    WordAwaiter(const WordAwaiter&) = delete;

    bool await_ready() {
        rma::start(access_, *target_);
        return access_.done;
    }
    void await_suspend(std::coroutine_handle<> handle) { access_.waiter = handle; }
    int await_resume() const { return progress::error_of(access_); }

  private:
    int64_t operand_;
    rma::Target* target_;
    rma::Access access_;
};

collective::Task update(File& file, const datatype::Op& op, int64_t operand, int64_t& before) {
    if (is_revoked(file)) co_return why_revoked();
    WordAwaiter word(file.shared->target, op, operand, before);
    co_return co_await word;
}

}  // namespace

SharedPointer::~SharedPointer() {
    if (!word) return;
    rma::withdraw(target.key);
    if (word != &plain && !is_kept) rma::free(word);
}

int create_shared_pointer(File& file, SharedPointerAddress& address) {
    file.shared = std::make_unique<SharedPointer>();
    SharedPointer& pointer = *file.shared;
    auto* const memory = static_cast<int64_t*>(rma::allocate(sizeof(int64_t), alignof(rma::UpdateMark)));
    pointer.word = memory ? memory : &pointer.plain;
    *pointer.word = 0;
    pointer.target.key = rma::open(rma::expose(pointer.word, sizeof(int64_t)), draw_random_number() | 1);
    pointer.target.mapped = true;
    pointer.target.mapping = reinterpret_cast<std::byte*>(pointer.word);
    pointer.target.peer = file.comm->point_to_point.peer(0);
    address.key = pointer.target.key;
    address.word = memory ? reinterpret_cast<uint64_t>(memory) : 0;
    progress::serve_other_hosts();
    return MPI_SUCCESS;
}

int use_shared_pointer(File& file, const SharedPointerAddress& address) {
    file.shared = std::make_unique<SharedPointer>();
    rma::Target& target = file.shared->target;
    const link::Process first = file.comm->local_group().at(0);
    rma::watch(target, first);
    target.key = address.key;
    target.peer = file.comm->point_to_point.peer(0);
    if (!target.peer) return MPI_ERR_PROC_ABORTED;
    const bool same_host = link::on_this_host(first);
    target.in_order = !same_host;
    if (same_host && address.word) {
        target.mapping = target.peer->shm_path.exchanged(address.word, sizeof(int64_t));
        target.mapped = target.mapping != nullptr;
    }
    return MPI_SUCCESS;
}

collective::Task add_to_shared_pointer(File& file, int64_t bytes, int64_t& before) {
    file.shared->used = true;
    return update(file, datatype::predefined(MPI_SUM), bytes, before);
}

int store_shared_pointer(File& file, int64_t position) {
    int64_t before = 0;
    return collective::run(update(file, datatype::predefined(MPI_REPLACE), position, before));
}

}  // namespace starling::file
