// The protocols of the shared-memory stage: operations in phases, which NodeStage::run() and drive() call in this order:
//   uint32_t turns(stage)        the length of the rotation of the buffer that this process will write; 0: it writes none
//   bool find_room(stage)        optional: finds the place to write; false: wait until buffers are free and call it again
//   bool put(stage)              writes, publishes, wakes; true: there is nothing to wait for
//   bool here(stage)             whether the awaited data is there; may be called any number of times
//   NodeWait waits_for(stage)    the participants that are awaited, for wait reports
//   int take(stage)              reads and publishes that it has; returns an MPI error class
//   bool next(int& error)        optional, for pieces: whether another piece follows, as a separate operation, on all participants.
//                                After the last piece it may set the error of the whole
//
// A protocol that is a single operation has room_bytes(), the bytes of its buffer. From this all participants decide alike whether
// a lane holds it (nonblocking_slots.h).
//
// The data is a template parameter: `write(sync, room)` writes this participant's data to shared memory, and `read(slot)` reads the
// others', where slot(i) is participant i's; read returns an error class. Kinds and bytes detect members that disagree.
#pragma once

#include "collective/shm/stage.h"

namespace starling::collective::protocol {

/// An operation in which this process transfers no data on the stage, because it takes no part or uses messages.
struct Skip {
    uint32_t turns(auto&) const { return 0; }
    bool put(auto&) const { return true; }
    bool here(auto&) const { return true; }
    NodeWait waits_for(auto& stage) const { return stage.waits_for_all(0); }
    int take(auto& stage) const {
        stage.finish();
        return MPI_SUCCESS;
    }
};

struct Barrier {
    int next_slot = 0;

    static uint64_t room_bytes() { return 0; }
    uint32_t turns(auto& stage) const { return stage.few() ? 2 : 0; }
    bool put(auto& stage) {
        if (stage.few()) {
            stage.put_quietly(stage.own_slot(), 0, 0);
            stage.read_nothing();
        }
        return stage.enter(next_slot, [] {});
    }
    bool here(auto& stage) { return stage.all_entered(next_slot); }
    NodeWait waits_for(auto& stage) const { return stage.waits_for_all(next_slot); }
    int take(auto& stage) const {
        if (!stage.few()) stage.finish();
        stage.note_meeting();
        return MPI_SUCCESS;
    }
};

/// Broadcast: the root writes, and participants with `reads` read. Besides write and read, `data` has bytes(). Data in pieces also has
/// next(), as a protocol has, and more(): whether further pieces follow at once, fewer than there are buffers, so that readers need not be
/// woken yet; and is_for_me(), if only some of the participants with `reads` read a piece. `Wide`: uses the root's pipeline buffer.
template <class Data, bool Wide = false>
struct FromRoot {
    Data data;
    uint32_t kind;
    int root;
    bool reads;
    std::byte* room = nullptr;

    uint64_t room_bytes() const requires(!Wide) { return data.room_bytes(); }
    uint32_t turns(auto& stage) const { return stage.me() == root ? NodeLayout::kRingBuffers : 0; }
    bool find_room(auto& stage) {
        if (stage.me() != root) return true;
        if constexpr (Wide)
            room = stage.own_room(stage.ring(), data.bytes());
        else
            room = NodeLayout::payload(stage.ring(), data.bytes());
        return room != nullptr;
    }
    bool put(auto& stage) {
        if (stage.me() != root) return !reads_now();
        data.write(stage.sync(), room);
        stage.put(stage.ring(), kind, data.bytes());
        if (!more()) stage.sync().wake_all();
        return true;
    }
    bool here(auto& stage) const { return stage.root_has_written(); }
    NodeWait waits_for(auto& stage) const { return {NodeWait::Who::root, stage.sequence(), root}; }
    int take(auto& stage) {
        int error = MPI_SUCCESS;
        if (stage.me() != root && reads_now()) {
            NodeLayout::StageHeader& header = stage.ring();
            error = stage.check(header, kind, data.bytes());
            if (error == MPI_SUCCESS) error = data.read(room_to_read(stage, header));
        }
        stage.finish();
        return error;
    }
    const std::byte* room_to_read(auto& stage, NodeLayout::StageHeader& header) const {
        if constexpr (Wide)
            return stage.room_of(root, header);
        else
            return NodeLayout::payload(header, data.bytes());
    }
    bool more() const {
        if constexpr (requires { data.more(); }) return data.more();
        return false;
    }
    bool reads_now() const {
        if constexpr (requires { data.is_for_me(); }) return reads && data.is_for_me();
        return reads;
    }
    bool next(int& error) {
        if constexpr (requires { data.next(error); }) return data.next(error);
        return false;
    }
};

/// Reduction or gather: participants in [first, last) write their operands; then the root, which may be one of them, reads. Besides write
/// and read, `data` has bytes(). `Wide`: the others use their pipeline buffers. They do not wait for the root, which does not write, but
/// calls copy_own() while the others' data is on its way.
template <class Data, bool Wide = false>
struct ToRoot {
    Data data;
    uint32_t kind;
    int root, first, last;
    std::byte* room = nullptr;
    int next_slot = first;

    uint64_t room_bytes() const requires(!Wide) { return data.room_bytes(); }
    bool writes(auto& stage) const { return first <= stage.me() && stage.me() < last; }
    uint32_t turns(auto& stage) const { return writes(stage) ? NodeLayout::slot_turns(stage.participants()) : 0; }
    bool find_room(auto& stage) requires(Wide) {
        if (!writes(stage) || stage.me() == root) return true;
        room = stage.own_room(stage.own_slot(), data.bytes());
        return room != nullptr;
    }
    bool put(auto& stage) {
        const bool is_root = stage.me() == root;
        if (writes(stage)) {
            NodeLayout::StageHeader& header = stage.own_slot();
            if constexpr (!Wide)
                data.write(stage.sync(), NodeLayout::payload(header, data.bytes()));
            else if (room)
                data.write(stage.sync(), room);
            stage.put(header, kind, data.bytes());
            if (!is_root) stage.sync().wake(root);
        }
        if constexpr (Wide)
            if (is_root) data.copy_own();
        return !is_root;
    }
    bool here(auto& stage) { return stage.slots_written(next_slot, last); }
    NodeWait waits_for(auto& stage) const { return {NodeWait::Who::writers, stage.sequence(), next_slot, last}; }
    int take(auto& stage) {
        int error = MPI_SUCCESS;
        if (stage.me() == root) {
            const uint32_t bytes = data.bytes();
            error = stage.check_slots(first, last, kind, [bytes](int) { return bytes; });
            if (error == MPI_SUCCESS)
                error = data.read([&stage, bytes](int i) -> const std::byte* {
                    if constexpr (Wide)
                        return stage.room_of(i, stage.slot(i));
                    else
                        return stage.payload_of(i, bytes);
                });
        }
        stage.finish();
        return error;
    }
};

/// A meeting: every participant writes, and reads all data. Besides write and read, `data` has bytes(i), the size of participant i's data,
/// for data in pieces next(), and optionally copy_own(), which copies what this participant need not wait for, while the others' data is
/// on its way.
template <class Data, bool Wide = false>
struct ToAll {
    Data data;
    uint32_t kind;
    std::byte* room = nullptr;
    int next_slot = 0;

    uint64_t room_bytes() const requires(!Wide) { return data.room_bytes(); }
    uint32_t turns(auto&) const { return 2; }
    bool find_room(auto& stage) {
        if constexpr (Wide)
            room = stage.own_room(stage.own_slot(), data.room_bytes());
        else
            room = NodeLayout::payload(stage.own_slot(), data.bytes(stage.me()));
        return room != nullptr;
    }
    bool put(auto& stage) {
        data.write(stage.sync(), room);
        stage.put_quietly(stage.own_slot(), kind, data.bytes(stage.me()));
        next_slot = 0;
        const bool all = stage.enter(next_slot, [] {});
        if constexpr (requires { data.copy_own(); }) data.copy_own();
        return all;
    }
    bool here(auto& stage) { return stage.all_entered(next_slot); }
    NodeWait waits_for(auto& stage) const { return stage.waits_for_all(next_slot); }
    int take(auto& stage) {
        int error = stage.check_slots(0, stage.participants(), kind, [this](int i) { return data.bytes(i); });
        if (error == MPI_SUCCESS)
            error = data.read([this, &stage](int i) -> const std::byte* {
                if constexpr (Wide)
                    return stage.room_of(i, stage.slot(i));
                else
                    return stage.payload_of(i, data.bytes(i));
            });
        stage.finish();
        stage.note_meeting();
        return error;
    }
    bool next(int& error) {
        if constexpr (requires { data.next(error); }) return data.next(error);
        return false;
    }
};

/// A meeting: every participant writes, the last one to arrive calls `combine(sync, slot, result)`, which returns an error class, and every
/// participant reads the result. The result may be as long as a ring buffer. Besides write and read, `data` has bytes().
template <class Data>
struct CombineProtocol {
    Data data;
    uint32_t kind;
    int next_slot = 0;

    uint64_t room_bytes() const { return data.room_bytes(); }
    uint32_t turns(auto&) const { return 2; }
    bool put(auto& stage) {
        NodeLayout::StageHeader& header = stage.own_slot();
        const uint32_t bytes = data.bytes();
        data.write(stage.sync(), NodeLayout::payload(header, bytes));
        stage.put_quietly(header, kind, bytes);
        return stage.enter_by_count([&] {
            NodeLayout::StageHeader& result = stage.ring();
            int error = stage.check_slots(0, stage.participants(), kind, [bytes](int) { return bytes; });
            if (error == MPI_SUCCESS)
                error = data.combine(
                    stage.sync(), [&](int i) { return stage.payload_of(i, bytes); }, NodeLayout::payload(result, bytes));
            result.bytes = static_cast<uint32_t>(error);
            stage.sync().store(result.sequence, stage.sequence());
        });
    }
    bool here(auto& stage) const { return stage.released(); }
    NodeWait waits_for(auto& stage) const { return {NodeWait::Who::everyone, stage.sequence()}; }
    int take(auto& stage) {
        NodeLayout::StageHeader& result = stage.ring();
        int error = static_cast<int>(result.bytes);
        if (error == MPI_SUCCESS)
            error = data.read(static_cast<const std::byte*>(NodeLayout::payload(result, data.bytes())));
        else
            error = fail(error, "the members of a collective operation passed different arguments");
        stage.finish();
        stage.note_meeting();
        return error;
    }
};

/// Each participant writes for some others, and reads what some have written. Besides write and read, `data` has kind() and bytes() of the
/// written data, and the edges writes_for() and reads_from(). mutual() returns whether all readers are also sources; looks_for(stage,
/// edge), whether to wait for that source's slot. find_room(stage) sets the place in the header.
template <class Data>
struct ToSome {
    Data data;
    std::byte* room = nullptr;
    int next_source = 0;
    bool met_all = true;

    uint32_t turns(auto& stage) const { return data.mutual() && stage.readers_are_through() ? 0 : 2; }
    bool find_room(auto& stage) { return room = data.find_room(stage), true; }
    bool put(auto& stage) {
        data.write(stage.sync(), room);
        stage.put(stage.own_slot(), data.kind(), data.bytes());
        for (const comm::NeighborEdge& to : data.writes_for())
            if (to.rank != stage.me()) stage.sync().wake(to.rank);
        return here(stage);
    }
    bool here(auto& stage) {
        const auto& from = data.reads_from();
        for (; next_source < static_cast<int>(from.size()); ++next_source) {
            const comm::NeighborEdge& next = from[static_cast<size_t>(next_source)];
            if (!data.looks_for(stage, next))
                met_all = false;
            else if (!stage.slot_written(next.rank))
                return false;
        }
        return true;
    }
    NodeWait waits_for(auto& stage) const {
        const auto& from = data.reads_from();
        return {NodeWait::Who::writers, stage.sequence(), next_source, static_cast<int>(from.size()), from.data()};
    }
    int take(auto& stage) {
        const int error = data.read(stage);
        stage.finish();
        if (data.mutual() && met_all) stage.note_readers();
        return error;
    }
};

}  // namespace starling::collective::protocol
