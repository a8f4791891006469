// The view, the object on which an algorithm works: a subset of an exchange's participants, contiguous or listed, renumbered from 0. It has
// the tag of this operation and the first error in it.
//
// An error does not shorten an algorithm: a participant that fails continues with the same pattern of messages, so that no other one waits
// for it forever. From then on it sends error markers (message/error_marker.h), which carry the error class. Data of a collective always
// has the length that the receiver expects, and an error marker always has another length.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collective/core/exchange.h"
#include "collective/core/first_error.h"
#include "collective/core/task.h"

namespace starling::collective {

using datatype::Datatype;

class Cast;
class NodeOwner;
class AlgorithmOverride;
class SendAwaiter;
class ReceiveAwaiter;
class PairAwaiter;

/// A subset of an exchange's participants, and the state of one operation on it. Copied into every task (parameters by value). Ranks in all
/// functions are those of the view.
struct View {
    Exchange* exchange;
    int base = 0;  ///< participant number of rank 0, if the participants are contiguous
    int n = 0;
    int me = 0;
    int tag = 0;
    FirstError error{};            ///< first error so far, which is the task's result
    const int* members = nullptr;  ///< participant numbers by rank, if the participants are not contiguous; outlives the task
    bool network = false;          ///< whether no two participants share a host
    bool blocking = false;       ///< whether the program makes no other call on the communicator until this operation completes
    NodeOwner* stage = nullptr;  ///< shared-memory stage of this host, if this operation may queue for it; else null
    Cast* cast = nullptr;        ///< multicast channel of the participants, if they are the leaders of hosts; null: none
    Cast* turns = nullptr;  ///< multicast channel of the participants for long data (Exchange::turns()); null: none
    AlgorithmOverride* steering = nullptr;  ///< overrides the choice of the algorithm; null: the table chooses

    /// Returns the view of all participants of the exchange; draws the tag of a new operation.
    static View all(Exchange& exchange) { return View{&exchange, 0, exchange.size, exchange.rank, exchange.next_tag()}; }
    /// Returns the view of the local side of an inter-communicator, or of a whole intra-communicator.
    View local() const {
        return View{exchange,
                    exchange->local_base,
                    exchange->local_size,
                    exchange->rank - exchange->local_base,
                    tag,
                    error,
                    nullptr,
                    false,
                    blocking};
    }
    /// Returns the view of the listed participants, in which this process has rank `mine`. The list must outlive the task.
    View of(const std::vector<int>& list, int mine) const {
        return View{exchange, 0, static_cast<int>(list.size()), mine, tag, error, list.data(), false, blocking};
    }
    int participant(int of_rank) const { return members ? members[of_rank] : base + of_rank; }
    /// Returns whether this view is all of one side (or of an intra-communicator). No other kind of view spans hosts.
    bool whole_side() const { return !members && base == exchange->local_base && n == exchange->local_size; }

    /// Stores the first error, with its text.
    void note(int new_error) { error.note(new_error); }

    /// Awaitables; they note their errors in this view. Buffers and types must last until they complete.
    SendAwaiter send(const void* buffer, int64_t count, const Datatype& type, int to);
    ReceiveAwaiter receive(void* buffer, int64_t count, const Datatype& type, int from);
    PairAwaiter send_receive(const void* send_buffer, int64_t send_count, const Datatype& send_type, int to,
                             void* receive_buffer, int64_t receive_count, const Datatype& receive_type, int from);

    // The functions below implement the awaitables.
    void start(message::SendRequest& request, const void* buffer, int64_t count, const Datatype& type, int to) {
        if (error != MPI_SUCCESS) [[unlikely]]
            return start_failed(request, datatype::packed_size(type, count), to);
        exchange->start_send(request, buffer, count, type, participant(to), tag);
    }
    /// Sends an error marker in place of the data.
    [[gnu::cold]] void start_failed(message::SendRequest& request, uint64_t expected, int to);
    void start(message::ReceiveRequest& request, void* buffer, int64_t count, const Datatype& type, int from) {
        exchange->start_receive(request, buffer, count, type, participant(from), tag);
    }
    void finish(const message::SendRequest& request) {
        if (request.outcome.error != MPI_SUCCESS) [[unlikely]]
            note(progress::error_of(request));
    }
    void finish(const message::ReceiveRequest& request, uint64_t expected) {
        if (request.outcome.error != MPI_SUCCESS || request.outcome.bytes != expected) [[unlikely]]
            note(bad_receive(request, expected));
    }
    [[gnu::cold]] int bad_receive(const message::ReceiveRequest& request, uint64_t expected) const;
    /// Returns the error for a message of unexpected length that is not an error marker. If an ended member is known, this is
    /// its error, otherwise one with an unknown cause.
    [[gnu::cold]] int wrong_length(uint64_t bytes, uint64_t expected) const;
    [[gnu::cold]] int ended() const;
};

class SendAwaiter {
  public:
    SendAwaiter(View& view, const void* buffer, int64_t count, const Datatype& type, int to)
        : view_(view), buffer_(buffer), count_(count), type_(type), to_(to) {}
    SendAwaiter(const SendAwaiter&) = delete;

    // Starts the operation here, because only now is the awaiter in its final place, the coroutine's frame.
    bool await_ready() {
        view_.start(request_, buffer_, count_, type_, to_);
        return request_.done;
    }
    void await_suspend(std::coroutine_handle<> handle) { request_.waiter = handle; }
    void await_resume() { view_.finish(request_); }

  private:
    View& view_;
    const void* buffer_;
    int64_t count_;
    const Datatype& type_;
    int to_;
    message::SendRequest request_;
};

class ReceiveAwaiter {
  public:
    ReceiveAwaiter(View& view, void* buffer, int64_t count, const Datatype& type, int from)
        : view_(view), buffer_(buffer), count_(count), type_(type), from_(from) {}
    ReceiveAwaiter(const ReceiveAwaiter&) = delete;

    bool await_ready() {
        view_.start(request_, buffer_, count_, type_, from_);
        return request_.done;
    }
    void await_suspend(std::coroutine_handle<> handle) { request_.waiter = handle; }
    void await_resume() { view_.finish(request_, datatype::packed_size(type_, count_)); }

  private:
    View& view_;
    void* buffer_;
    int64_t count_;
    const Datatype& type_;
    int from_;
    message::ReceiveRequest request_;
};

/// Awaits a send and a receive that are started together.
class PairAwaiter {
  public:
    PairAwaiter(View& view, const void* send_buffer, int64_t send_count, const Datatype& send_type, int to,
                void* receive_buffer, int64_t receive_count, const Datatype& receive_type, int from)
        : view_(view),
          send_buffer_(send_buffer),
          send_count_(send_count),
          send_type_(send_type),
          receive_buffer_(receive_buffer),
          receive_count_(receive_count),
          receive_type_(receive_type),
          to_(to),
          from_(from) {}
    PairAwaiter(const PairAwaiter&) = delete;

    bool await_ready() {
        view_.start(receive_, receive_buffer_, receive_count_, receive_type_, from_);
        view_.start(send_, send_buffer_, send_count_, send_type_, to_);
        return send_.done && receive_.done;
    }
    void await_suspend(std::coroutine_handle<> handle) {
        wait_for(send_, handle);
        wait_for(receive_, handle);
    }
    void await_resume() {
        view_.finish(receive_, datatype::packed_size(receive_type_, receive_count_));
        view_.finish(send_);
    }

  private:
    void wait_for(progress::Request& request, std::coroutine_handle<> handle) {
        if (request.done) return;
        ++open_;
        request.waiter = handle;
        request.open_in_group = &open_;
    }

    View& view_;
    const void* send_buffer_;
    int64_t send_count_;
    const Datatype& send_type_;
    void* receive_buffer_;
    int64_t receive_count_;
    const Datatype& receive_type_;
    int to_, from_;
    uint32_t open_ = 0;
    message::SendRequest send_;
    message::ReceiveRequest receive_;
};

/// Any number of sends and receives, started one by one and awaited together: `co_await group;`. Reusable afterwards. Every started
/// operation must be awaited before the group is destroyed.
class RequestGroup {
  public:
    /// Reserves memory for that many operations of each kind; throws std::bad_alloc.
    RequestGroup(View& view, int sends, int receives)
        : view_(view),
          sends_(sends ? new message::SendRequest[static_cast<size_t>(sends)] : nullptr),
          receives_(receives ? new GroupReceive[static_cast<size_t>(receives)] : nullptr) {}
    RequestGroup(const RequestGroup&) = delete;
    ~RequestGroup();

    void send(const void* buffer, int64_t count, const Datatype& type, int to) {
        view_.start(sends_[sent_++] = message::SendRequest(), buffer, count, type, to);
    }
    void receive(void* buffer, int64_t count, const Datatype& type, int from) {
        GroupReceive& r = receives_[received_++];
        r.request = message::ReceiveRequest();
        r.expected = datatype::packed_size(type, count);
        view_.start(r.request, buffer, count, type, from);
    }

    bool await_ready() const;
    void await_suspend(std::coroutine_handle<> handle);
    void await_resume();

  private:
    struct GroupReceive {
        message::ReceiveRequest request;
        uint64_t expected = 0;
    };
    void wait_for(progress::Request& request, std::coroutine_handle<> handle) {
        if (request.done) return;
        ++open_;
        request.waiter = handle;
        request.open_in_group = &open_;
    }

    View& view_;
    std::unique_ptr<message::SendRequest[]> sends_;
    std::unique_ptr<GroupReceive[]> receives_;
    int sent_ = 0, received_ = 0;
    uint32_t open_ = 0;
};

inline SendAwaiter View::send(const void* buffer, int64_t count, const Datatype& type, int to) {
    return SendAwaiter(*this, buffer, count, type, to);
}
inline ReceiveAwaiter View::receive(void* buffer, int64_t count, const Datatype& type, int from) {
    return ReceiveAwaiter(*this, buffer, count, type, from);
}
inline PairAwaiter View::send_receive(const void* send_buffer, int64_t send_count, const Datatype& send_type, int to,
                                      void* receive_buffer, int64_t receive_count, const Datatype& receive_type, int from) {
    return PairAwaiter(*this, send_buffer, send_count, send_type, to, receive_buffer, receive_count, receive_type, from);
}

}  // namespace starling::collective
