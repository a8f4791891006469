#include "launch/common/placement_preview.h"

#include <algorithm>
#include <numeric>

#include "base/wire.h"
#include "launch/common/order.h"

namespace starling::launch {

namespace {

void write_packed(Writer& writer, const std::vector<uint32_t>& numbers) {
    writer.number(static_cast<uint32_t>(numbers.size()));
    for (const uint32_t number : numbers) writer.packed(number);
}

void read_packed(Reader& reader, std::vector<uint32_t>& out) {
    out.resize(reader.count(1));
    for (uint32_t& number : out) number = static_cast<uint32_t>(reader.packed(UINT32_MAX));
}

}  // namespace

std::string encode(const PlacementPreview& preview) {
    Writer writer;
    writer.string(preview.problem);
    write_packed(writer, preview.counts);
    write(writer, preview.hosts);
    write_packed(writer, preview.host_of_rank);
    write(writer, preview.assumed);
    return writer.take();
}

bool decode(std::string_view payload, PlacementPreview& out) {
    Reader reader(payload);
    out.problem = reader.string();
    read_packed(reader, out.counts);
    read(reader, out.hosts);
    read_packed(reader, out.host_of_rank);
    read(reader, out.assumed);
    const uint64_t processes = std::accumulate(out.counts.begin(), out.counts.end(), uint64_t{0});
    return reader.done() && processes == out.host_of_rank.size() &&
           std::all_of(out.host_of_rank.begin(), out.host_of_rank.end(),
                       [&](uint32_t host) { return host < out.hosts.size(); });
}

}  // namespace starling::launch
