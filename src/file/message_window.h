// Messages of a collective transfer that are in flight at the same time, each in its own memory, so that neither side awaits one message
// before it starts the next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "collective/core/task.h"
#include "collective/core/view.h"
#include "file/exchange_plan.h"

namespace starling::file {

/// A bounded number of messages, oldest first. The memory of all is at most `budget` bytes and the length of one message. The view must
/// outlive the window, and every message must be finished before the window is destroyed.
class MessageWindow {
  public:
    struct BlockMessage {
        explicit BlockMessage(collective::View& view) : requests(view, 2, 1) {}
        BlockHeader header;            ///< sent as a message of its own, or the header of a received message
        std::vector<std::byte> bytes;  ///< data that are sent or received
        collective::RequestGroup requests;
    };

    MessageWindow(collective::View& view, size_t most, int64_t budget)
        : view_(view), most_(std::max<size_t>(most, 1)), budget_(static_cast<size_t>(budget)) {}
    MessageWindow(const MessageWindow&) = delete;

    bool empty() const { return busy_.empty(); }
    /// Returns whether another message may be added.
    bool admits() const { return busy_.empty() || (busy_.size() < most_ && bytes_ < budget_); }
    /// Returns a message with undefined contents. Call count() when the size of its data is known.
    BlockMessage& add() {
        if (idle_.empty()) idle_.push_back(std::make_unique<BlockMessage>(view_));
        busy_.push_back(std::move(idle_.back()));
        idle_.pop_back();
        idle_bytes_ -= std::min(idle_bytes_, busy_.back()->bytes.capacity());
        return *busy_.back();
    }
    /// Counts the data of the message that was added last.
    void count() { bytes_ += busy_.back()->bytes.size(); }
    BlockMessage& oldest() { return *busy_.front(); }
    void remove_oldest() {
        std::unique_ptr<BlockMessage> message = std::move(busy_.front());
        busy_.pop_front();
        bytes_ -= message->bytes.size();
        if (bytes_ + idle_bytes_ + message->bytes.capacity() > budget_) std::vector<std::byte>().swap(message->bytes);
        idle_bytes_ += message->bytes.capacity();
        idle_.push_back(std::move(message));
    }

  private:
    collective::View& view_;
    const size_t most_, budget_;
    std::deque<std::unique_ptr<BlockMessage>> busy_;
    std::vector<std::unique_ptr<BlockMessage>> idle_;
    size_t bytes_ = 0;       ///< data of the busy messages
    size_t idle_bytes_ = 0;  ///< memory of the idle ones
};

/// Awaits the oldest message and removes it; the view notes its error.
inline collective::Task finish_oldest(MessageWindow& window) {
    collective::RequestGroup& requests = window.oldest().requests;
    co_await requests;
    window.remove_oldest();
    co_return MPI_SUCCESS;
}
/// Awaits messages until another one may be added.
inline collective::Task make_room(MessageWindow& window) {
    while (!window.admits()) co_await finish_oldest(window);
    co_return MPI_SUCCESS;
}
/// Awaits all messages.
inline collective::Task finish_all(MessageWindow& window) {
    while (!window.empty()) co_await finish_oldest(window);
    co_return MPI_SUCCESS;
}

}  // namespace starling::file
