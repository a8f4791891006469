// The protocols of the node stage, as operations in phases that NodeStage::run() and drive() take in this order:
//   uint32_t turns(stage)        of how many buffers, used in turn, I am going to write one; 0: of none
//   bool find_room(stage)        if it may lack room: where to write; false: I have to wait until rooms are free, and to ask again
//   bool put(stage)              writes, says so, wakes; true: there is nothing to wait for
//   bool here(stage)             whether what I wait for is there; may be asked any number of times
//   NodeWait waits_for(stage)
//   int take(stage)              reads, says that it has; an MPI error class
//   bool next(int& error)        if it goes in pieces: whether there is a further one, an operation of its own; all agree. If
//                                not, it may say that the whole had another error than its last piece
//
// Those that are one operation have room_bytes(), what the room that I write has to hold: it decides, alike for all, whether
// a lane holds them (nonblocking_slots.h).
//
// What is moved is a parameter: `write(sync, room)` puts this participant's data where others read it, `read(slot)` takes
// the others', where slot(i) is participant i's; read gives an error class. Kinds and bytes tell members that disagree.
#pragma once

#include "collective/shm/stage.h"

namespace starling::collective::protocol {

/// An operation that I have no part in, or that goes another way.
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
        return stage.come(next_slot, [] {});
    }
    bool here(auto& stage) { return stage.met(next_slot); }
    NodeWait waits_for(auto& stage) const { return stage.waits_for_all(next_slot); }
    int take(auto& stage) const {
        if (!stage.few()) stage.finish();
        stage.note_meeting();
        return MPI_SUCCESS;
    }
};

/// The root writes, those who want to read. `data` has, besides write and read, bytes(), and, if it goes in pieces, next() as
/// above and more(): further ones follow at once, fewer than there are buffers, so nobody has to be woken yet. `Wide`:
/// through the root's wide room.
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
        if (stage.me() != root) return !reads;
        data.write(stage.sync(), room);
        stage.put(stage.ring(), kind, data.bytes());
        if (!more()) stage.sync().wake_all();
        return true;
    }
    bool here(auto& stage) const { return stage.seen_root(); }
    NodeWait waits_for(auto& stage) const { return {NodeWait::Who::root, stage.sequence(), root}; }
    int take(auto& stage) {
        int error = MPI_SUCCESS;
        if (stage.me() != root && reads) {
            NodeLayout::Header& header = stage.ring();
            error = stage.check(header, kind, data.bytes());
            if (error == MPI_SUCCESS) error = data.read(room_to_read(stage, header));
        }
        stage.finish();
        return error;
    }
    const std::byte* room_to_read(auto& stage, NodeLayout::Header& header) const {
        if constexpr (Wide)
            return stage.room_of(root, header);
        else
            return NodeLayout::payload(header, data.bytes());
    }
    bool more() const {
        if constexpr (requires { data.more(); }) return data.more();
        return false;
    }
    bool next(int& error) {
        if constexpr (requires { data.next(error); }) return data.next(error);
        return false;
    }
};

/// Those in [first, last) write their operand; then the root, which may be one of them, reads. `data` has bytes(), too.
template <class Data>
struct ToRoot {
    Data data;
    uint32_t kind;
    int root, first, last;
    int next_slot = first;

    uint64_t room_bytes() const { return data.room_bytes(); }
    bool writes(auto& stage) const { return first <= stage.me() && stage.me() < last; }
    uint32_t turns(auto& stage) const { return writes(stage) ? 2 : 0; }
    bool put(auto& stage) {
        const bool is_root = stage.me() == root;
        if (writes(stage)) {
            NodeLayout::Header& header = stage.own_slot();
            data.write(stage.sync(), NodeLayout::payload(header, data.bytes()));
            stage.put(header, kind, data.bytes());
            if (!is_root) stage.sync().wake(root);
        }
        return !is_root;
    }
    bool here(auto& stage) { return stage.seen_slots(next_slot, last); }
    NodeWait waits_for(auto& stage) const { return {NodeWait::Who::writers, stage.sequence(), next_slot, last}; }
    int take(auto& stage) {
        int error = MPI_SUCCESS;
        if (stage.me() == root) {
            const uint32_t bytes = data.bytes();
            error = stage.check_slots(first, last, kind, [bytes](int) { return bytes; });
            if (error == MPI_SUCCESS) error = data.read([&stage, bytes](int i) { return stage.payload_of(i, bytes); });
        }
        stage.finish();
        return error;
    }
};

/// Everyone writes, and everyone reads everything: a meeting. `data` has, besides write and read, bytes(i), of participant i,
/// and, if it goes in pieces, next().
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
        return stage.come(next_slot, [] {});
    }
    bool here(auto& stage) { return stage.met(next_slot); }
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

/// Everyone writes; the last one to come `combine(sync, slot, result)`s, giving an error class; everyone reads the
/// result: a meeting. The result may be as long as a ring buffer. `data` has bytes(), too.
template <class Data>
struct Combine {
    Data data;
    uint32_t kind;
    int next_slot = 0;

    uint64_t room_bytes() const { return data.room_bytes(); }
    uint32_t turns(auto&) const { return 2; }
    bool put(auto& stage) {
        NodeLayout::Header& header = stage.own_slot();
        const uint32_t bytes = data.bytes();
        data.write(stage.sync(), NodeLayout::payload(header, bytes));
        stage.put_quietly(header, kind, bytes);
        return stage.come_by_count([&] {
            NodeLayout::Header& result = stage.ring();
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
        NodeLayout::Header& result = stage.ring();
        int error = static_cast<int>(result.bytes);
        if (error == MPI_SUCCESS)
            error = data.read(static_cast<const std::byte*>(NodeLayout::payload(result, data.bytes())));
        else
            error = fail(error, "the members of a collective operation disagree on it");
        stage.finish();
        stage.note_meeting();
        return error;
    }
};

/// Each writes for some, and reads what some have written. `data` has, besides write and read, kind() and bytes() of what I
/// write, edges of those I write for and read from (writes_for(), reads_from()), mutual(), whether the first are all among the
/// others, looks_for(stage, edge), whether I need what is written there, and find_room(stage), which says in the header where
/// it is.
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
            else if (!stage.seen_slot(next.rank))
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
