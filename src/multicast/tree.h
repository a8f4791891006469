// The trees of acknowledgements: each sender's stream has a tree of the members, with the sender at its root, and members report their
// progress to their parents. Members that are out (dead, or done with the group) are skipped: their children belong to the next member
// above.
#pragma once

#include <cstdint>
#include <vector>

namespace starling::multicast {

class MulticastTree {
  public:
    static constexpr uint32_t kChildren = 4;

    explicit MulticastTree(uint32_t members) : out_(members) {}

    uint32_t members() const { return static_cast<uint32_t>(out_.size()); }
    bool is_out(uint32_t member) const { return out_[member]; }
    /// Sets whether a member is out, and so is skipped in all trees. Returns whether that is a change.
    bool set_out(uint32_t member, bool out) {
        const bool changed = out_[member] != out;
        out_[member] = out;
        return changed;
    }

    /// Returns the first member that is not out of the trees; members() if all are.
    uint32_t first() const {
        uint32_t at = 0;
        while (at < members() && out_[at]) ++at;
        return at;
    }
    /// Returns the first member after `member` that is not out of the trees; members() if there is none.
    uint32_t next(uint32_t member) const {
        do ++member;
        while (member < members() && out_[member]);
        return member;
    }
    /// Returns the parent of a member other than the root.
    uint32_t parent(uint32_t root, uint32_t member) const {
        uint32_t place = place_of(root, member);
        do place = (place - 1) / kChildren;
        while (place != 0 && out_[at(root, place)]);
        return at(root, place);
    }
    template <class F>
    void each_child(uint32_t root, uint32_t member, F&& visit) const {
        const uint32_t place = place_of(root, member);
        for (uint32_t i = 1; i <= kChildren && place * kChildren + i < members(); ++i) {
            const uint32_t child = at(root, place * kChildren + i);
            if (out_[child])
                each_child(root, child, visit);
            else
                visit(child);
        }
    }

  private:
    uint32_t place_of(uint32_t root, uint32_t member) const { return (member + members() - root) % members(); }
    uint32_t at(uint32_t root, uint32_t place) const { return (root + place) % members(); }

    std::vector<bool> out_;
};

}  // namespace starling::multicast
