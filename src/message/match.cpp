#include "message/match.h"

namespace starling::message {

constinit Pool<Unexpected> unexpected_pool;

namespace {

// MPI_ANY_TAG matches tags of the application only; negative ones are ours (MPI 5.0 gives tags >= 0 to users).
bool tag_matches(int wanted, int tag) { return wanted == tag || (wanted == MPI_ANY_TAG && tag >= 0); }

}  // namespace

ReceiveRequest* MatchQueues::take_posted(int source, int tag) {
    auto& list = posted[bucket(source)];
    ReceiveRequest* found = list.front();
    while (found && !(found->source == source && tag_matches(found->tag, tag))) found = list.next(found);
    ReceiveRequest* any = posted_any.front();
    while (any && !tag_matches(any->tag, tag)) any = posted_any.next(any);
    if (any && (!found || any->post_order < found->post_order)) found = any;
    if (found) found->hook.unlink();
    return found;
}

void MatchQueues::post(ReceiveRequest& request) {
    request.post_order = posts++;
    if (request.source == MPI_ANY_SOURCE)
        posted_any.push_back(&request);
    else
        posted[bucket(request.source)].push_back(&request);
}

Unexpected* MatchQueues::find(int source, int tag) {
    if (source == MPI_ANY_SOURCE) {
        Unexpected* m = arrival.front();
        while (m && !tag_matches(tag, m->tag)) m = arrival.next(m);
        return m;
    }
    auto& list = unexpected[bucket(source)];
    Unexpected* m = list.front();
    while (m && !(m->source == source && tag_matches(tag, m->tag))) m = list.next(m);
    return m;
}

void MatchQueues::add(Unexpected& message) {
    unexpected[bucket(message.source)].push_back(&message);
    arrival.push_back(&message);
}

}  // namespace starling::message
