#include "transport/network/session/connection.h"

#include <vector>

namespace starling::network {

void strand(StreamList& working, StreamList& waiting, bool lost, const ConnectionUpcalls& upcalls) {
    std::vector<OutStream*> streams;
    for (StreamList* list : {&working, &waiting})
        while (OutStream* stream = list->pop_front()) streams.push_back(stream);
    for (OutStream* stream : streams) {
        if (lost) {
            stream->lose_all();
            stream->connection = nullptr;
        } else {
            waiting.push_back(stream);
        }
    }
    for (OutStream* stream : streams)
        if (stream->has_work()) upcalls.stranded(*stream);
}

}  // namespace starling::network
