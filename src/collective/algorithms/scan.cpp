#include "collective/algorithms.h"

namespace starling::collective {

Task scan_recursive_doubling(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op,
                             bool exclusive) {
    // `run` is the reduction over the aligned run of ranks whose data has arrived; `prefix` is the reduction over the ranks of that run
    // below this one.
    Temporary a(type, count), b(type, count), c(type, count);
    datatype::copy(type, count, input_of(send, receive), a.data());
    Accumulator run(a.data(), b.data(), count, type, op);
    void* prefix = exclusive ? receive : c.data();
    bool have_prefix = false;
    for (int width = 1; width < v.n; width *= 2) {
        const int partner = v.me ^ width;
        if (partner >= v.n) continue;
        co_await v.send_receive(run.value(), count, type, partner, run.operand(), count, type, partner);
        if (partner > v.me) {
            v.note(run.add_right());
            continue;
        }
        if (have_prefix)
            v.note(datatype::apply(op, run.operand(), prefix, count, type));
        else
            datatype::copy(type, count, run.operand(), prefix);
        have_prefix = true;
        v.note(run.add_left());
    }
    if (!exclusive) {
        if (send != MPI_IN_PLACE) datatype::copy(type, count, send, receive);
        if (have_prefix) v.note(datatype::apply(op, prefix, receive, count, type));
    }
    co_return v.error;
}

Task scan_linear(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, bool exclusive) {
    Temporary total(type, count);
    datatype::copy(type, count, input_of(send, receive), total.data());
    if (v.me > 0) {
        Temporary prefix(type, count);
        co_await v.receive(prefix.data(), count, type, v.me - 1);
        v.note(datatype::apply(op, prefix.data(), total.data(), count, type));
        if (exclusive) datatype::copy(type, count, prefix.data(), receive);
    }
    if (!exclusive) datatype::copy(type, count, total.data(), receive);
    if (v.me + 1 < v.n) co_await v.send(total.data(), count, type, v.me + 1);
    co_return v.error;
}

}  // namespace starling::collective
