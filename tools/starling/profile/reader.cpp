#include "reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "fields.h"
#include "lines.h"
#include "site_names.h"

namespace starling::analysis {

namespace {

constexpr uint64_t kMostRanks = 1 << 24;  ///< limit of the ranks of all jobs together
constexpr uint64_t kMostJobs = 1 << 20;
constexpr uint64_t kMostProcessors = 1 << 16;
constexpr uint64_t kMostOccurrence = uint64_t{1} << 53;

/// Combines job and rank to one number, for use before all jobs are known.
uint64_t key(uint64_t job, uint64_t rank) { return job << 32 | rank; }

/// Content of a line of kind "phase".
struct Line {
    uint64_t who = 0, from = 1, to = 1;
    double began = 0, seconds = 0;
    Waits waits;
    uint32_t first = 0, count = 0;          ///< range of the line's entries in Lot::sent
    uint32_t first_size = 0, end_size = 0;  ///< range of the line's entries in Lot::by_size
    std::array<Amount, kSizes> sizes;
    std::array<Amount, kAccesses> accesses;
    Amount by_packets;
};

/// The traffic to one target process, which has the number that the file uses.
struct Row {
    uint64_t to;
    Amount all, on_connection, in_memory;
};

/// All lines of one phase, of all processes.
struct Lot {
    std::string mark;
    std::vector<Line> lines;
    std::vector<Row> sent;
    std::vector<std::pair<uint64_t, Amount>> by_size;
};

struct Event {
    double when;
    uint64_t at, peer;
    bool opened;
};

Amount amount_at(const Json::array_t& row, size_t at) {
    return {amount_of(row[at], "a number of messages"), amount_of(row[at + 1], "a number of bytes")};
}

Job read_job(const Json& object) {
    Job job;
    job.number = static_cast<uint32_t>(count_of(member(object, "job"), "\"job\"", 0, kMostJobs));
    const Json& parent = member(object, "parent");
    if (!parent.is_null()) job.parent = static_cast<int64_t>(count_of(parent, "\"parent\"", 0, kMostJobs));
    job.size = static_cast<uint32_t>(count_of(member(object, "size"), "\"size\"", 0, kMostRanks));
    for (const Json& host : list_of(member(object, "hosts"), "\"hosts\"")) job.hosts.push_back(text_of(host, "a host"));
    job.foreign = job.size == 0;
    job.host_of_rank.assign(job.size, static_cast<uint32_t>(job.hosts.size()));
    for (const Json& place : list_of(member(object, "places"), "\"places\"")) {
        const Json::array_t& run = row_of(place, "a place", 3);
        const uint64_t host = count_of(run[0], "the host of a place", 0, job.hosts.empty() ? 0 : job.hosts.size() - 1);
        const uint64_t first = count_of(run[1], "the first rank of a place", 0, job.size);
        const uint64_t count = count_of(run[2], "the ranks of a place", 0, job.size - first);
        std::fill_n(job.host_of_rank.begin() + static_cast<ptrdiff_t>(first), count, static_cast<uint32_t>(host));
    }
    return job;
}

Waits read_waits(const Json& object) {
    Waits waits;
    const auto found = object.find("waits");
    if (found == object.end()) return waits;
    if (!found->is_object()) throw Refusal("\"waits\" is not an object");
    for (const auto& [cause, seconds] : found->items()) {
        const double time = amount_of(seconds, "a time waited");
        (cause == "late sender"     ? waits.late_sender
         : cause == "late receiver" ? waits.late_receiver
         : cause == "collective"    ? waits.collective
                                    : waits.other) += time;
    }
    return waits;
}

CoreUse read_core_use(const Json& cores) {
    CoreUse use;
    use.known = true;
    uint64_t least = 0;  // ranges ascend, so a file of many ranges does not fill the memory
    for (const Json& range : list_of(member(cores, "cpus"), "\"cpus\"")) {
        const Json::array_t& ends = row_of(range, "a range of processors", 2);
        const uint64_t first = count_of(ends[0], "the first processor of a range", least, kMostProcessors);
        const uint64_t last = count_of(ends[1], "the last processor of a range", first, kMostProcessors);
        for (uint64_t cpu = first; cpu <= last; ++cpu) use.cpus.push_back(static_cast<uint32_t>(cpu));
        least = last + 1;
    }
    use.cpu = amount_of(member(cores, "cpu"), "\"cpu\"");
    use.polled = std::min(use.cpu, amount_of(member(cores, "polled"), "\"polled\""));
    use.core_wait = amount_of(member(cores, "waited"), "\"waited\"");
    return use;
}

}  // namespace

struct Reader::Implementation {
    std::string file;
    uint64_t number = 0;  ///< number of the line that is being read
    bool headed = false, told = false;
    Run run;
    std::vector<std::string> names;  ///< names of phases, in the order of their appearance
    std::unordered_map<std::string, Lot> lots;
    std::unordered_map<uint64_t, Job> jobs;
    std::map<Site, Calls> collectives, file_collectives;  ///< of all complete files, and of the current one
    std::map<WaitPlace, Waits> waiting, file_waiting;
    std::map<FilePlace, Calls> file_calls, unnamed_file_calls;
    std::vector<Event> events;
    std::unordered_map<uint64_t, CoreUse> core_use;
    SiteNames sites;  ///< of the current file

    void header(const Json& object);
    void job(const Json& object);
    void phase(const Json& object);
    void end(const Json& object);
    void line(const Json& object);

    uint64_t process(const Json& job, const Json& rank);
    void read_peers(const Json& object, Lot& lot, Line& line);
    void read_accesses(const Json& object, Lot& lot, Line& line);
    void read_sizes(const Json& object, Lot& lot, Line& line);
    void read_collectives(const Json& object);
    void read_waiting(const Json& object);
    void read_files(const Json& object);
    void read_connections(const Json& object, const Line& line);

    void name_sites();
    void number_processes();
    uint32_t index(uint64_t who) const { return run.jobs[place.at(who >> 32)].first + static_cast<uint32_t>(who); }
    void make_spans(const std::string& name, Lot& lot);

    std::unordered_map<uint64_t, size_t> place;  ///< index of each job in run.jobs, by job number
};

void Reader::Implementation::header(const Json& object) {
    if (headed) throw Refusal("this is a second \"profile\" line; keep runs in separate files");
    const Json& version = member(object, "version");
    if (version != 1) throw Refusal(fmt::format("version {} of the format, but this starling reads version 1", version.dump()));
    const std::string& application = text_of(member(object, "application"), "\"application\"");
    if (run.files.size() > 1 && application != run.application)
        throw Refusal(fmt::format("the application is {}, but {} in {}: only runs of one application can be merged",
                                  application, run.application, run.files[0]));
    if (run.files.size() == 1) {
        run.application = application;
        if (const auto found = object.find("starling"); found != object.end()) run.starling = text_of(*found, "\"starling\"");
        if (const auto found = object.find("started"); found != object.end()) run.started = text_of(*found, "\"started\"");
        if (const auto found = object.find("command"); found != object.end())
            for (const Json& word : list_of(*found, "\"command\""))
                run.command.push_back(text_of(word, "a word of the command"));
    }
    headed = true;
}

void Reader::Implementation::job(const Json& object) {
    Job job = read_job(object);
    const auto known = jobs.find(job.number);
    if (known == jobs.end()) {
        if (job.size > kMostRanks - run.processes) throw Refusal("more than 16 million processes");
        run.processes += job.size;
        jobs.emplace(job.number, std::move(job));
    } else if (!job.foreign && known->second.size != job.size) {
        throw Refusal(
            fmt::format("job {} has {} processes, but {} before: only runs of one size can be merged (starling profile "
                        "plan --size scales a plan)",
                        job.number, job.size, known->second.size));
    }
}

uint64_t Reader::Implementation::process(const Json& job, const Json& rank) {
    const uint64_t number = count_of(job, "a job's number", 0, kMostJobs);
    const auto known = jobs.find(number);
    if (known == jobs.end()) throw Refusal(fmt::format("job {} was not described before", number));
    Job& its = known->second;
    const uint64_t most = its.foreign ? its.size + kMostRanks - run.processes : its.size;
    if (most == 0) throw Refusal("more than 16 million processes");
    const uint64_t which = count_of(rank, "a rank", 0, most - 1);
    if (which >= its.size) {
        run.processes += static_cast<uint32_t>(which) + 1 - its.size;
        its.size = static_cast<uint32_t>(which) + 1;
    }
    return key(number, which);
}

void Reader::Implementation::read_peers(const Json& object, Lot& lot, Line& line) {
    const auto found = object.find("peers");
    if (found == object.end()) return;
    for (const Json& entry : list_of(*found, "\"peers\"")) {
        const Json::array_t& row = row_of(entry, "a peer", 10);
        Row sent{process(row[0], row[1]), {}, amount_at(row, 8), {}};
        for (size_t size = 0; size < kSizes; ++size) {
            const Amount amount = amount_at(row, 2 + 2 * size);
            line.sizes[size] += amount;
            sent.all += amount;
        }
        if (sent.on_connection.messages > sent.all.messages)
            throw Refusal("a peer has more messages on connections than messages in total");
        lot.sent.push_back(sent);
    }
}

/// Adds accesses to the row of the same target process if there is one.
void Reader::Implementation::read_accesses(const Json& object, Lot& lot, Line& line) {
    const auto found = object.find("accesses");
    if (found == object.end()) return;
    std::unordered_map<uint64_t, size_t> rows;
    for (size_t i = line.first; i < lot.sent.size(); ++i) rows.emplace(lot.sent[i].to, i);
    for (const Json& entry : list_of(*found, "\"accesses\"")) {
        const Json::array_t& row = row_of(entry, "the accesses of a process", 12);
        const uint64_t to = process(row[0], row[1]);
        Amount all;
        for (size_t i = 0; i < kAccesses; ++i) {
            const Amount amount = amount_at(row, 2 + 2 * i);
            line.accesses[i] += amount;
            all += amount;
        }
        const Amount packets = amount_at(row, 8), connection = amount_at(row, 10);
        if (packets.messages > all.messages || packets.bytes > all.bytes || connection.messages > packets.messages)
            throw Refusal("a process has more accesses by packets, or on connections, than accesses in total");
        line.by_packets += packets;
        const auto [at, fresh] = rows.try_emplace(to, lot.sent.size());
        if (fresh) lot.sent.push_back({to, {}, {}, {}});
        Row& sent = lot.sent[at->second];
        sent.all += packets;
        sent.on_connection += connection;
        sent.in_memory += {all.messages - packets.messages, all.bytes - packets.bytes};
    }
}

void Reader::Implementation::read_sizes(const Json& object, Lot& lot, Line& line) {
    line.first_size = static_cast<uint32_t>(lot.by_size.size());
    if (const auto found = object.find("sizes"); found != object.end()) {
        for (const Json& entry : list_of(*found, "\"sizes\"")) {
            const Json::array_t& row = row_of(entry, "a size", 3);
            lot.by_size.emplace_back(count_of(row[0], "a size of messages", 0, UINT64_MAX), amount_at(row, 1));
        }
    }
    line.end_size = static_cast<uint32_t>(lot.by_size.size());
}

void Reader::Implementation::read_collectives(const Json& object) {
    const auto found = object.find("collectives");
    if (found == object.end()) return;
    for (const Json& entry : list_of(*found, "\"collectives\"")) {
        const Json::array_t& row = row_of(entry, "a collective", 9);
        Site site{text_of(row[0], "a call site"),  text_of(row[1], "a communicator"),
                  text_of(row[3], "a collective"), text_of(row[4], "a size class"),
                  text_of(row[5], "an algorithm"), static_cast<uint32_t>(count_of(row[2], "a size", 1, kMostRanks))};
        site.tried = row.size() > 10 && flag_of(row[10], "whether an algorithm was tried");
        Calls& calls = file_collectives[site];
        calls.calls += amount_of(row[6], "a number of calls");
        calls.bytes += amount_of(row[7], "a number of bytes");
        const double seconds = amount_of(row[8], "a time");
        calls.seconds += seconds;
        // Older files lack the squares: assume that one call took all the time.
        calls.squares += row.size() > 9 ? amount_of(row[9], "a sum of squares") : seconds * seconds;
    }
}

void Reader::Implementation::read_waiting(const Json& object) {
    const auto found = object.find("waiting");
    if (found == object.end()) return;
    for (const Json& entry : list_of(*found, "\"waiting\"")) {
        const Json::array_t& row = row_of(entry, "a place that waits", 6);
        double seconds[4];
        for (size_t i = 0; i < 4; ++i) seconds[i] = amount_of(row[2 + i], "a time waited");
        file_waiting[{text_of(row[0], "a call site"), text_of(row[1], "a function")}].add(
            {seconds[0], seconds[1], seconds[2], seconds[3]});
    }
}

void Reader::Implementation::read_files(const Json& object) {
    const auto found = object.find("files");
    if (found == object.end()) return;
    for (const Json& entry : list_of(*found, "\"files\"")) {
        const Json::array_t& row = row_of(entry, "the accesses to a file", 6);
        unnamed_file_calls[{text_of(row[0], "a file"), text_of(row[1], "a call site"), text_of(row[2], "a function")}].add(
            {amount_of(row[3], "a number of calls"), amount_of(row[4], "a number of bytes"), amount_of(row[5], "a time")});
    }
}

void Reader::Implementation::read_connections(const Json& object, const Line& line) {
    const auto found = object.find("connections");
    if (found == object.end()) return;
    for (const Json& entry : list_of(*found, "\"connections\"")) {
        const Json::array_t& row = row_of(entry, "a connection", 4);
        const std::string& what = text_of(row[3], "what became of a connection");
        if (what != "opened" && what != "closed") throw Refusal("a connection was " + what + "; it must be opened or closed");
        const Event event{line.began + amount_of(row[0], "a time"), line.who, process(row[1], row[2]), what == "opened"};
        if (run.files.size() == 1) events.push_back(event);
    }
}

void Reader::Implementation::phase(const Json& object) {
    const std::string& name = text_of(member(object, "phase"), "\"phase\"");
    Line line;
    line.who = process(member(object, "job"), member(object, "rank"));
    line.from = count_of(member(object, "from"), "\"from\"", 1, kMostOccurrence);
    line.to = count_of(member(object, "to"), "\"to\"", line.from, kMostOccurrence);
    line.began = amount_of(member(object, "began"), "\"began\"");
    line.seconds = amount_of(member(object, "seconds"), "\"seconds\"");
    line.waits = read_waits(object);
    const auto [at, fresh] = lots.try_emplace(name);
    Lot& lot = at->second;
    if (fresh) names.push_back(name);
    if (lot.mark.empty()) lot.mark = object.contains("mark") ? text_of(object["mark"], "\"mark\"") : "program";
    line.first = static_cast<uint32_t>(lot.sent.size());
    read_peers(object, lot, line);
    read_accesses(object, lot, line);
    line.count = static_cast<uint32_t>(lot.sent.size()) - line.first;
    read_sizes(object, lot, line);
    read_collectives(object);
    read_waiting(object);
    read_files(object);
    read_connections(object, line);
    lot.lines.push_back(line);
    told = true;
}

void Reader::Implementation::end(const Json& object) {
    const uint64_t who = process(member(object, "job"), member(object, "rank"));
    if (const auto cores = object.find("cores"); cores != object.end() && run.files.size() == 1)
        core_use[who] = read_core_use(*cores);
    const std::string& how = text_of(member(object, "how"), "\"how\"");
    (how == "finalized" ? run.finalized : run.ended_early) += 1;
}

void Reader::Implementation::line(const Json& object) {
    if (!object.is_object()) throw Refusal("this line is not a JSON object");
    const std::string& kind = text_of(member(object, "kind"), "\"kind\"");
    if (kind == "profile") return header(object);
    if (!headed) throw Refusal("this line comes before the \"profile\" line, which must be the first");
    if (kind == "job") return job(object);
    if (kind == "phase") return phase(object);
    if (kind == "module" || kind == "site") return sites.take(object);
    if (kind == "end") return end(object);
}

// The lines that name a file's call sites follow those that use them. Sites with equal names become one.
void Reader::Implementation::name_sites() {
    for (const auto& [site, calls] : file_collectives) {
        Site named = site;
        named.site = sites.name_of(site.site);
        collectives[named].add(calls);
    }
    for (const auto& [place, waits] : file_waiting) waiting[{sites.name_of(place.site), place.function}].add(waits);
    for (const auto& [place, calls] : unnamed_file_calls)
        file_calls[{place.file, sites.name_of(place.site), place.function}].add(calls);
    unnamed_file_calls.clear();
    file_collectives.clear();
    file_waiting.clear();
    sites = SiteNames();
}

void Reader::Implementation::number_processes() {
    for (auto& [number, job] : jobs)
        if (job.size > 0) run.jobs.push_back(std::move(job));
    std::sort(run.jobs.begin(), run.jobs.end(), [](const Job& a, const Job& b) { return a.number < b.number; });
    uint32_t first = 0;
    for (size_t i = 0; i < run.jobs.size(); ++i) {
        run.jobs[i].first = first;
        first += run.jobs[i].size;
        place[run.jobs[i].number] = i;
    }
}

// Files may combine different occurrences of a phase into their sums. Cuts the phase wherever a sum begins or ends, and distributes each
// line's sums evenly over the resulting spans.
void Reader::Implementation::make_spans(const std::string& name, Lot& lot) {
    std::vector<uint64_t> cuts;
    for (const Line& line : lot.lines) {
        cuts.push_back(line.from);
        cuts.push_back(line.to + 1);
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<Span> spans(cuts.size() - 1);
    for (size_t i = 0; i < spans.size(); ++i) {
        spans[i].name = name;
        spans[i].mark = lot.mark;
        spans[i].from = cuts[i];
        spans[i].to = cuts[i + 1] - 1;
    }
    const double mean = 1.0 / static_cast<double>(run.files.size());
    for (const Line& line : lot.lines) {
        size_t at = static_cast<size_t>(std::lower_bound(cuts.begin(), cuts.end(), line.from) - cuts.begin());
        double before = 0;
        for (; at < spans.size() && spans[at].to <= line.to; ++at) {
            Span& span = spans[at];
            const double share = span.occurrences() / static_cast<double>(line.to - line.from + 1);
            const double weight = share * mean;
            Part part{index(line.who), line.began + before, line.seconds * share, {}, static_cast<uint32_t>(span.sent.size()),
                      line.count};
            before += part.seconds;
            part.waits.add(line.waits, weight);
            span.waits.add(line.waits, weight);
            for (size_t size = 0; size < kSizes; ++size) span.sizes[size] += line.sizes[size] * weight;
            for (size_t i = 0; i < kAccesses; ++i) span.accesses[i] += line.accesses[i] * weight;
            span.by_packets += line.by_packets * weight;
            for (uint32_t i = line.first_size; i < line.end_size; ++i)
                span.by_size[lot.by_size[i].first] += lot.by_size[i].second * weight;
            for (uint32_t i = line.first; i < line.first + line.count; ++i) {
                const Row& row = lot.sent[i];
                span.sent.push_back({index(row.to), row.all * weight, row.on_connection * weight, row.in_memory * weight});
            }
            span.parts.push_back(part);
        }
    }
    for (Span& span : spans) {
        if (span.parts.empty()) continue;  // No line reports these occurrences, which lie between reported ones.
        span.began = span.parts[0].began;
        for (const Part& part : span.parts) {
            span.began = std::min(span.began, part.began);
            span.seconds += part.seconds / static_cast<double>(span.parts.size());
        }
        run.spans.push_back(std::move(span));
    }
}

Reader::Reader() : all_(std::make_unique<Implementation>()) {}
Reader::~Reader() = default;

void Reader::begin_file(const std::string& name) {
    all_->file = name;
    all_->run.files.push_back(name);
    all_->number = 0;
    all_->headed = all_->told = false;
}

void Reader::take(std::string_view line) {
    ++all_->number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    try {
        all_->line(Json::parse(line));
    } catch (const Refusal& refusal) {
        throw Refusal(fmt::format("{}, line {}: {}", all_->file, all_->number, refusal.what()));
    } catch (const Json::exception&) { throw Refusal(fmt::format("{}, line {}: this is not JSON", all_->file, all_->number)); }
}

void Reader::end_file() {
    if (!all_->headed) throw Refusal(all_->file + " is empty: mpiexec --profile writes profiles");
    if (!all_->told || all_->jobs.empty())
        throw Refusal(all_->file + " has no phase of any process: the job ended before the first phase did");
    all_->name_sites();
}

Run Reader::finish() {
    Implementation& all = *all_;
    all.number_processes();
    for (const std::string& name : all.names) {
        Lot lot = std::move(all.lots[name]);
        all.make_spans(name, lot);
    }
    std::stable_sort(all.run.spans.begin(), all.run.spans.end(),
                     [](const Span& a, const Span& b) { return a.began < b.began; });
    const double mean = 1.0 / static_cast<double>(all.run.files.size());
    for (auto& [site, calls] : all.collectives)
        all.run.collectives[site] = {calls.calls * mean, calls.bytes * mean, calls.seconds * mean, calls.squares * mean};
    for (const auto& [place, waits] : all.waiting) all.run.waiting[place].add(waits, mean);
    for (const auto& [place, calls] : all.file_calls)
        all.run.file_calls[place] = {calls.calls * mean, calls.bytes * mean, calls.seconds * mean};
    all.run.core_use.resize(all.run.processes);
    for (auto& [who, use] : all.core_use) all.run.core_use[all.index(who)] = std::move(use);
    for (const Event& event : all.events)
        all.run.connections.push_back({event.when, all.index(event.at), all.index(event.peer), event.opened});
    std::stable_sort(all.run.connections.begin(), all.run.connections.end(),
                     [](const ConnectionEvent& a, const ConnectionEvent& b) { return a.when < b.when; });
    return std::move(all.run);
}

Run read_profiles(const std::vector<std::string>& files) {
    Reader reader;
    for (const std::string& file : files) {
        Lines lines(file);
        reader.begin_file(file);
        for (std::string_view line; lines.next(line);) reader.take(line);
        reader.end_file();
    }
    return reader.finish();
}

}  // namespace starling::analysis
