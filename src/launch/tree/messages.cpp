#include "launch/tree/messages.h"

#include <algorithm>

#include "base/wire.h"

namespace starling::launch {

namespace {

constexpr std::string_view kGreeting = "starling-node 1 ";
constexpr uint8_t kInternal = 1, kBulk = 2, kGathered = 4;

template <class T, class Encode>
void put_list(Writer& out, const std::vector<T>& list, Encode encode_one) {
    out.number(static_cast<uint32_t>(list.size()));
    for (const T& item : list) encode_one(item);
}

template <class T, class Decode>
bool get_list(Reader& in, size_t least_bytes, std::vector<T>& list, Decode decode_one) {
    list.resize(in.count(least_bytes));
    for (T& item : list) decode_one(item);
    return in.ok();
}

void put(Writer& out, const std::vector<Ancestor>& ancestors) {
    put_list(out, ancestors, [&](const Ancestor& a) {
        out.number(a.host).string(a.name);
        put_list(out, a.endpoints, [&](const DaemonAddress& e) { out.string(e.address).number(e.port); });
    });
}

bool get(Reader& in, std::vector<Ancestor>& ancestors) {
    return get_list(in, 12, ancestors, [&](Ancestor& a) {
        a.host = in.number<TreeHostId>();
        a.name = in.string();
        get_list(in, 6, a.endpoints, [&](DaemonAddress& e) {
            e.address = in.string();
            e.port = in.number<uint16_t>();
        });
    });
}

void put(Writer& out, const GrowHost& host) { out.number(host.host).number(host.attempt).string(host.name); }

bool get(Reader& in, GrowHost& host) {
    host.host = in.number<TreeHostId>();
    host.attempt = in.number<uint32_t>();
    host.name = in.string();
    return in.ok() && host.host < kMostHosts;
}

void put_limit(Writer& out, std::chrono::milliseconds limit) { out.number(static_cast<int64_t>(limit.count())); }

std::chrono::milliseconds get_limit(Reader& in) {
    // At most a day, so that additions to a time point cannot overflow.
    return std::chrono::milliseconds(std::clamp<int64_t>(in.number<int64_t>(), 1, 86'400'000));
}

}  // namespace

std::string encode(const Orders& orders) {
    const TreeSettings& s = orders.settings;
    Writer out;
    out.string(s.key.view());
    put_list(out, s.agent, [&](const std::string& word) { out.string(word); });
    out.string(s.program).string(s.interfaces).number(s.fanout).number(static_cast<uint8_t>(s.keep_agent));
    out.number(static_cast<uint8_t>(s.munge)).number(static_cast<uint8_t>(s.encrypt));
    for (const auto limit : {s.start_limit, s.heartbeat, s.silence_limit, s.grace}) put_limit(out, limit);
    out.number(static_cast<int64_t>(s.host_silence_limit.count()));
    put(out, orders.self);
    put(out, orders.ancestors);
    return out.take();
}

bool decode(std::string_view bytes, Orders& out) {
    Reader in(bytes);
    TreeSettings& s = out.settings;
    const std::string_view key = in.string();
    if (key.size() != s.key.bytes.size()) return false;
    std::copy(key.begin(), key.end(), reinterpret_cast<char*>(s.key.bytes.data()));
    get_list(in, 4, s.agent, [&](std::string& word) { word = in.string(); });
    s.program = in.string();
    s.interfaces = in.string();
    s.fanout = in.number<uint32_t>();
    const auto keep = in.number<uint8_t>();
    s.keep_agent = keep == 1;
    const auto munge = in.number<uint8_t>();
    s.munge = munge == 1;
    const auto encrypt = in.number<uint8_t>();
    s.encrypt = encrypt == 1;
    for (auto* limit : {&s.start_limit, &s.heartbeat, &s.silence_limit, &s.grace}) *limit = get_limit(in);
    s.host_silence_limit = std::chrono::milliseconds(std::clamp<int64_t>(in.number<int64_t>(), 0, 86'400'000));
    return get(in, out.self) && get(in, out.ancestors) && in.done() && keep <= 1 && munge <= 1 && encrypt <= 1 &&
           s.fanout >= 1 && !out.ancestors.empty();
}

std::string encode(const Attach& message) {
    Writer out;
    out.number(message.host).number(message.attempt).number(message.incarnation);
    message.members.encode(out);
    put_list(out, message.later_attempts, [&](const auto& a) { out.number(a.first).number(a.second); });
    put_list(out, message.addresses, [&](const std::string& address) { out.string(address); });
    return out.take();
}

bool decode(std::string_view bytes, Attach& out) {
    Reader in(bytes);
    out.host = in.number<TreeHostId>();
    out.attempt = in.number<uint32_t>();
    out.incarnation = in.number<uint64_t>();
    if (!HostSet::decode(in, out.members)) return false;
    get_list(in, 8, out.later_attempts, [&](auto& a) {
        a.first = in.number<TreeHostId>();
        a.second = in.number<uint32_t>();
    });
    get_list(in, 4, out.addresses, [&](std::string& address) { address = in.string(); });
    return in.done() && out.members.contains(out.host);
}

std::string encode(const std::vector<Ancestor>& ancestors) {
    Writer out;
    put(out, ancestors);
    return out.take();
}

bool decode(std::string_view bytes, std::vector<Ancestor>& out) {
    Reader in(bytes);
    return get(in, out) && in.done() && !out.empty();
}

std::string encode(const Grow& message) {
    Writer out;
    put_list(out, message.hosts, [&](const GrowHost& host) { put(out, host); });
    return out.take();
}

bool decode(std::string_view bytes, Grow& out) {
    Reader in(bytes);
    bool good = true;
    get_list(in, 12, out.hosts, [&](GrowHost& host) { good = get(in, host) && good; });
    return in.done() && good;
}

std::string encode(const HostSet& hosts) {
    Writer out;
    hosts.encode(out);
    return out.take();
}

bool decode(std::string_view bytes, HostSet& out) {
    Reader in(bytes);
    return HostSet::decode(in, out) && in.done();
}

std::string encode(const DoneRanges& message) {
    Writer out;
    out.number(static_cast<uint8_t>(message.urgency));
    put_list(out, message.ranges, [&](const auto& r) { out.number(r.first).number(r.second); });
    return out.take();
}

bool decode(std::string_view bytes, DoneRanges& out) {
    Reader in(bytes);
    const auto urgency = in.number<uint8_t>();
    out.urgency = urgency == 0 ? Urgency::control : Urgency::bulk;
    bool ordered = urgency <= 1;
    get_list(in, 16, out.ranges, [&](auto& r) {
        r.first = in.number<uint64_t>();
        r.second = in.number<uint64_t>();
        ordered = ordered && r.first <= r.second;
    });
    return in.done() && ordered;
}

std::string encode(const Report& report) {
    Writer out;
    out.number(static_cast<uint8_t>(report.what)).number(report.attempt).string(report.text);
    report.hosts.encode(out);
    return out.take();
}

bool decode(std::string_view bytes, Report& out) {
    Reader in(bytes);
    const auto what = in.number<uint8_t>();
    out.what = static_cast<Report::HostReportKind>(what);
    out.attempt = in.number<uint32_t>();
    out.text = in.string();
    const bool known = what >= 1 && what <= static_cast<uint8_t>(Report::HostReportKind::sure);
    return known && HostSet::decode(in, out.hosts) && in.done() && !out.hosts.empty();
}

std::string encode_head(const MessageHead& head, const Content& content) {
    const bool bulk = content.urgency == Urgency::bulk;
    Writer out;
    out.number(head.edge_number).number(content.origin).number(content.number);
    out.number(
        static_cast<uint8_t>((content.internal ? kInternal : 0) | (bulk ? kBulk : 0) | (content.gathered ? kGathered : 0)));
    out.number(static_cast<uint8_t>(!content.parts.empty()));
    head.to.encode(out);
    out.number(static_cast<uint32_t>(content.payload.size()));
    return out.take();
}

std::string encode_tail(const MessageHead& head, const Content& content) {
    Writer out;
    for (const auto& [host, part] : content.parts) {
        if (head.to.contains(host)) out.number(host).string(part);
    }
    return out.take();
}

bool decode_message(std::string bytes, MessageHead& head, Content& content) {
    content.storage = std::move(bytes);
    Reader in(content.storage);
    head.edge_number = in.number<uint64_t>();
    content.origin = in.number<TreeHostId>();
    content.number = in.number<uint64_t>();
    const auto flags = in.number<uint8_t>();
    const auto has_parts = in.number<uint8_t>();
    content.internal = flags & kInternal;
    content.gathered = flags & kGathered;
    content.urgency = flags & kBulk ? Urgency::bulk : Urgency::control;
    if (flags > 7 || (content.internal && content.gathered) || has_parts > 1 || !HostSet::decode(in, head.to) ||
        head.to.empty())
        return false;
    content.payload = in.string();
    content.parts.clear();
    if (has_parts == 1) {
        const size_t n = head.to.size();
        // Each part takes at least eight bytes: reject a set with more hosts than that.
        if (n > content.storage.size() / 8) return false;
        content.parts.reserve(n);
        for (const HostSet::HostRun& run : head.to.runs()) {
            for (TreeHostId host = run.first; host < run.end; ++host) {
                if (in.number<TreeHostId>() != host) return false;
                content.parts.emplace_back(host, in.string());
            }
        }
    }
    return in.done();
}

std::string greeting_line(std::string_view version) { return std::string(kGreeting).append(version).append("\n"); }

bool parse_greeting(std::string_view line, std::string& version) {
    if (!line.starts_with(kGreeting)) return false;
    version = line.substr(kGreeting.size());
    return true;
}

}  // namespace starling::launch
