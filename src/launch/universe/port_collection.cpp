#include "launch/universe/port_collection.h"

#include <utility>

namespace starling::launch {

HostSet PortCollection::want(const HostSet& who, const HostSet& present) {
    wanting_.add(who);
    if (!awaited_.empty()) return {};
    awaited_ = present;
    awaited_.remove(complete_);
    if (!awaited_.empty()) ++round_;
    return awaited_;
}

void PortCollection::add(TreeHostId from, HostPorts ports) {
    awaited_.remove(from);
    if (complete_.contains(from)) return;
    if (ports.complete) complete_.add(from);
    known_[from] = std::move(ports);
}

PortTable PortCollection::extract(HostSet& to) {
    to = std::exchange(wanting_, {});
    PortTable table;
    table.reserve(known_.size());
    for (const auto& [host, ports] : known_) table.push_back(ports);
    return table;
}

}  // namespace starling::launch
