#include "written.h"

#include <fmt/format.h>

namespace starling::analysis {

std::string Written::text() const { return fmt::format("{}\n", fmt::join(lines, "\n")); }

Run Written::read(const std::string& name) const {
    Reader reader;
    reader.begin_file(name);
    for (const std::string& line : lines) reader.take(line);
    reader.end_file();
    return reader.finish();
}

Written begin(uint32_t size, uint32_t per_host, const std::string& application) {
    Written file;
    file.add(fmt::format(
        R"({{"kind":"profile","version":1,"application":"{0}","command":["./{0}","-i","4"],"starling":"1.0"}})", application));
    if (per_host == 0) per_host = size;
    std::vector<std::string> hosts, places;
    for (uint32_t first = 0; first < size; first += per_host) {
        places.push_back(fmt::format("[{},{},{}]", hosts.size(), first, std::min(per_host, size - first)));
        hosts.push_back(fmt::format("\"{}\"", static_cast<char>('a' + hosts.size())));
    }
    return file.add(fmt::format(R"({{"kind":"job","job":0,"parent":null,"size":{},"hosts":[{}],"places":[{}]}})", size,
                                fmt::join(hosts, ","), fmt::join(places, ",")));
}

void add_phase(Written& file, uint32_t size, const std::string& name, uint64_t from, uint64_t to, double began,
               const Matrix& matrix, uint64_t on_connections) {
    for (uint32_t rank = 0; rank < size; ++rank) {
        std::vector<std::string> peers;
        if (const auto row = matrix.find(rank); row != matrix.end()) {
            for (const auto& [to_rank, messages] : row->second) {
                const uint64_t carried = messages * on_connections / 10;
                peers.push_back(
                    fmt::format("[0,{},{},{},0,0,0,0,{},{}]", to_rank, messages, messages * 100, carried, carried * 100));
            }
        }
        file.add(fmt::format(R"({{"kind":"phase","job":0,"rank":{},"phase":"{}","from":{},"to":{},"mark":"program","began":{},)"
                             R"("seconds":0.5,"peers":[{}],"collectives":[],"waits":{{"late sender":0.1}},"connections":[]}})",
                             rank, name, from, to, began, fmt::join(peers, ",")));
    }
}

Matrix ring(uint32_t size, uint64_t messages) {
    Matrix out;
    for (uint32_t i = 0; i < size; ++i) out[i] = {{(i + 1) % size, messages}, {(i + size - 1) % size, messages}};
    return out;
}

Matrix torus(uint32_t wide, uint32_t high, uint64_t messages) {
    Matrix out;
    for (uint32_t y = 0; y < high; ++y) {
        for (uint32_t x = 0; x < wide; ++x) {
            const auto at = [&](uint32_t column, uint32_t row) { return row % high * wide + column % wide; };
            out[at(x, y)] = {{at(x + 1, y), messages},
                             {at(x + wide - 1, y), messages},
                             {at(x, y + 1), messages},
                             {at(x, y + high - 1), messages}};
        }
    }
    return out;
}

}  // namespace starling::analysis
