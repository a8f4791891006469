// Lanes of a shared-memory stage: small operations that are active at the same time.
//
// Lane operations have their own numbers, drawn in the order of the calls, which is the same on all members. Each number has a lane, which
// is reused kLanes numbers later, when every participant has finished its operation. So an operation writes as soon as it is called, and
// completes as soon as the others have called it, in whatever order. One poll may complete many operations: a process that is scheduled
// once finishes all that the others have written meanwhile.
#pragma once

#include <cstdint>

#include "collective/shm/operation_queue.h"
#include "collective/shm/operation_step.h"

namespace starling::collective {

template <class Stage>
class NodeLanes;

/// One operation in its lane, with the interface that protocols use.
template <class Stage>
class LaneStep : public NodeStep<LaneStep<Stage>, LaneLayout> {
    using Step = NodeStep<LaneStep, LaneLayout>;

  public:
    LaneStep(NodeLanes<Stage>& lanes, const Stage& stage, const LaneLayout& layout, uint32_t number)
        : Step(layout, stage.participants(), stage.me(), stage.few(), number), lanes_(lanes) {}
    auto& sync() const { return lanes_.stage().sync(); }
    bool polls_at_once() const { return lanes_.line_.none(); }
    void read_nothing() {
        if (lanes_.has_finished(Step::sequence_)) sync().store(Step::layout_.done(Step::me_), lanes_.finished());
    }
    void finish() {
        if (!lanes_.has_finished(Step::sequence_)) return;
        sync().publish(Step::layout_.done(Step::me_), lanes_.finished());
        if (sync().load(Step::layout_.done_waiters()) != 0) [[unlikely]]
            sync().wake_all();
    }
    /// Does nothing: a meeting in a lane does not show that earlier lane operations have ended.
    void note_meeting() {}

  private:
    friend NodeLanes<Stage>;
    NodeLanes<Stage>& lanes_;
};

template <class Stage>
class NodeLanes {
  public:
    NodeLanes(Stage& stage, std::byte* base, uint32_t first)
        : stage_(stage),
          layout_(base, stage.participants()),
          first_(first),
          drawn_(first),
          finished_(first),
          finished_by_all_(first) {}

    Stage& stage() const { return stage_; }
    const LaneLayout& layout() const { return layout_; }
    /// Returns whether an operation fits into a lane. The result is the same on all participants.
    template <class Operation>
    bool holds(const Operation& operation) const {
        if constexpr (requires { operation.room_bytes(); })
            return operation.room_bytes() <= LaneLayout::payload(stage_.participants());
        else
            return false;
    }
    /// Draws the number of the next operation; all participants draw in the same order. The operation may run at any later time.
    uint32_t draw() {
        if (++drawn_ % kRenewEvery == 0) [[unlikely]]
            renew_all();
        return drawn_;
    }

    /// Returns a task that runs an operation in its lane to its end.
    template <class Operation>
    Task drive(uint32_t number, Operation operation) {
        using Step = LaneStep<Stage>;
        Step step(*this, stage_, layout_, number);
        if (stage_.broken()) co_return stage_.gone();
        if (!is_free(number)) {
            const NodeWait what{NodeWait::Who::readers, number - LaneLayout::kLanes, 0, stage_.participants()};
            const int error = co_await until_free(
                layout_, stage_.sync(), [this, number] { return is_free(number); }, what);
            if (error != MPI_SUCCESS) co_return stage_.gone();
        }
        Step::find_room(operation, step);
        // Only the first waiting operation polls. Later ones usually complete later, and polling a cache line before it is written costs
        // its writer another transfer.
        QueueTurn in_line;
        if (!operation.put(step)) {
            in_line.enqueue(line_);
            co_await in_line;
            const auto ready = [&] { return operation.here(step); };
            auto others = stage_.sync().until(ready, operation.waits_for(step), layout_);
            const bool here = co_await others;
            if (!here) co_return stage_.gone();
        }
        int error = operation.take(step);
        Step::has_next(operation, error);
        co_return error;
    }

    /// Publishes that this process has finished all operations, because it leaves the stage. `never` is larger than any distance between
    /// the numbers of two participants.
    void leave(uint32_t never) {
        if (drawn_ != first_) stage_.sync().publish(layout_.done(stage_.me()), drawn_ + never);
    }

  private:
    friend LaneStep<Stage>;

    /// Records that this process has finished operation `number`. Returns whether to publish the number of finished operations now. It is
    /// published only after every kTellEvery operations, because no process waits for a lane until most of them are in use.
    bool has_finished(uint32_t number) {
        const auto bit = [](uint32_t of) { return uint64_t{1} << of % LaneLayout::kLanes; };
        ahead_ |= bit(number);
        const uint32_t before = finished_ / kTellEvery;
        while (ahead_ & bit(finished_ + 1)) ahead_ &= ~bit(++finished_);
        return finished_ / kTellEvery != before && !stage_.broken();
    }
    uint32_t finished() const { return finished_; }
    [[gnu::cold, gnu::noinline]] void renew_all() {
        finished_by_all_ = finished_by_all(layout_, stage_.sync(), stage_.participants(), stage_.me(), finished_);
        for (uint32_t lane = 0; lane < LaneLayout::kLanes; ++lane)
            renew(layout_.slot(stage_.me(), lane), stage_.sync(), drawn_, finished_by_all_);
    }

    bool is_free(uint32_t number) {
        const uint32_t most = finished_by_all_ + LaneLayout::kLanes;
        if (Stage::reached(most, number)) return true;
        // Only the first waiting operation polls the other participants' done() words, on behalf of all waiting operations.
        if (number != most + 1) return false;
        finished_by_all_ = finished_by_all(layout_, stage_.sync(), stage_.participants(), stage_.me(), finished_);
        return finished_by_all_ + LaneLayout::kLanes != most;
    }

    /// Number of finished operations per publication.
    static constexpr uint32_t kTellEvery = LaneLayout::kLanes / 4;

    Stage& stage_;
    LaneLayout layout_;
    const uint32_t first_;  ///< number before that of the first operation
    uint32_t drawn_;
    uint32_t finished_;   ///< number up to which this process has finished all operations
    uint64_t ahead_ = 0;  ///< finished operations with numbers above `finished_`, one bit per lane
    static_assert(LaneLayout::kLanes == 64);
    uint32_t finished_by_all_;
    OperationQueue line_;  ///< queue of the operations that wait for other participants
};

}  // namespace starling::collective
