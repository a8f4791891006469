// Hosts and messages of the universe; see also universe_start, universe_end and universe_requests.
#include "launch/universe/universe.h"

#include <algorithm>
#include <csignal>

#include "base/config.h"
#include "base/error.h"
#include "launch/common/signals.h"
#include "launch/universe/universe_job.h"
#include "mpi.h"

namespace starling::launch {

Universe::Universe(EventLoop& loop, Launcher& launcher, std::optional<TreeSettings> tree)
    : loop_(loop),
      launcher_(launcher),
      tree_(tree ? std::make_unique<Tree>(loop, std::move(*tree)) : nullptr),
      deputy_(
          launcher, kRootHost,
          [this](uint32_t to, std::string payload, bool bulk) {
              if (to != kRootHost) {
                  tree_->send(to, std::move(payload), bulk ? Urgency::bulk : Urgency::control);
                  return;
              }
              // Handle the message later: the host agent may report in the middle of an operation of this class.
              post([this, payload = std::move(payload)] { on_message(kRootHost, payload); });
          },
          [this](const HostOrder& topic, std::string_view piece, const HostSet&, bool) {
              // The root needs no gathering on its own host. Its piece is posted like its other reports, so that the end of a job's
              // processes here cannot overtake their output.
              post([this, topic = encode(topic), piece = std::string(piece)] {
                  on_gathered(topic, {{HostSet::one(kRootHost), piece}});
              });
          }),
      names_(loop) {
    UniverseHost own;
    own.name = host_name();
    own.state = UniverseHost::HostState::up;
    own.facts = tree_ ? own_facts() : own_identity();
    own.offered = !tree_;
    host_names_.add(own.name, kRootHost);
    host_with_id_[own.facts.entry.id] = kRootHost;
    hosts_.push_back(std::move(own));
    if (tree_) listen_to_tree();
}

void Universe::listen_to_tree() {
    launcher_.on_other_child = [this](pid_t pid, int status) { tree_->child_exited(pid, status); };
    TreeHandlers handlers;
    handlers.on_message = [this](const TreeMessage& message) { on_message(message.from, message.payload); };
    handlers.on_gathered = [this](std::string_view topic, const std::vector<GatheredPiece>& pieces) {
        on_gathered(topic, pieces);
    };
    handlers.on_ready = [this](TreeHostId host, std::string_view facts) { on_host_ready(host, facts); };
    handlers.on_failed = [this](TreeHostId host, const std::string& sentence) { on_host_failed(host, sentence); };
    handlers.on_lost = [this](TreeHostId host, const std::string& sentence) { on_host_lost(host, sentence); };
    handlers.on_suspect = [this](TreeHostId host, bool suspected) {
        if (host < hosts_.size()) hosts_[host].suspected = suspected;
    };
    tree_->set_handlers(std::move(handlers));
}

Universe::~Universe() {
    *alive_ = false;
    launcher_.on_other_child = nullptr;
}

void Universe::post(std::function<void()> what) {
    loop_.after(std::chrono::milliseconds(0), [alive = alive_, what = std::move(what)] {
        if (*alive) what();
    });
}

uint32_t Universe::find_host(std::string_view name) const {
    const uint32_t host = host_names_.find(name);
    if (host == HostNames::kNone) return job::kNoHost;
    return hosts_[host].same_as == job::kNoHost ? host : hosts_[host].same_as;
}

static bool has_none(const UniverseHost& host) {
    return host.state == UniverseHost::HostState::lost || host.state == UniverseHost::HostState::failed;
}

bool Universe::has_daemon(std::string_view name) const {
    const uint32_t host = find_host(name);
    return host != job::kNoHost && !has_none(hosts_[host]);
}

uint32_t Universe::offered() const {
    return static_cast<uint32_t>(
        std::count_if(hosts_.begin(), hosts_.end(), [](const UniverseHost& host) { return host.offered; }));
}

uint32_t Universe::slots() const {
    uint32_t sum = 0;
    for (const UniverseHost& host : hosts_) {
        if (host.state == UniverseHost::HostState::up && host.offered) sum += host.slots ? host.slots : host.facts.cores;
    }
    return std::max(sum, 1u);
}

uint32_t Universe::processes() const {
    uint32_t sum = 0;
    for (const UniverseHost& host : hosts_) sum += host.placed;
    return sum;
}

void Universe::add_hosts(const std::vector<HostSlots>& hosts, bool offered, std::function<void(const std::string&)> ready) {
    std::vector<std::string> fresh;
    Growth growth{{}, std::move(ready)};
    for (const HostSlots& host : hosts) {
        const uint32_t known = find_host(host.name);
        if (known != job::kNoHost && !has_none(hosts_[known])) {
            if (host.slots > 0) hosts_[known].slots = host.slots;
            hosts_[known].offered |= offered;
            growth.hosts.push_back(known);
            continue;
        }
        UniverseHost entry;
        entry.name = host.name;
        entry.slots = host.slots;
        entry.offered = offered;
        if (known != job::kNoHost) {
            // A host that comes back offers what it offered before it was lost.
            entry.offered |= std::exchange(hosts_[known].offered, false);
            if (host.slots == 0) entry.slots = hosts_[known].slots;
            replace_name(known);
        }
        growth.hosts.push_back(static_cast<uint32_t>(hosts_.size()));
        host_names_.add(entry.name, static_cast<uint32_t>(hosts_.size()));
        hosts_.push_back(std::move(entry));
        fresh.push_back(host.name);
    }
    growing_.push_back(std::move(growth));
    if (!fresh.empty() && tree_->grow(fresh) != hosts_.size() - fresh.size())
        panic("the daemon tree did not number the new hosts from %zu on; report this as a bug of Starling",
              hosts_.size() - fresh.size());
    post([this] { check_growth(); });
}

void Universe::on_host_ready(uint32_t host, std::string_view facts) {
    if (host >= hosts_.size()) return;
    if (decode(facts, hosts_[host].facts)) {
        hosts_[host].state = UniverseHost::HostState::up;
        host_names_.add(hosts_[host].facts.entry.name, host);
        recognize(host);
    } else {
        hosts_[host].state = UniverseHost::HostState::failed;
        hosts_[host].problem = "the daemon on " + hosts_[host].name + " sent an invalid description of its host";
    }
    check_growth();
}

// Detects that a machine was named twice, for example by an address or by its name in another network. Processes identify their host by its
// id, so both names must become one host here too. The first name is used, unless the other is in use already.
void Universe::recognize(uint32_t host) {
    const auto [at, fresh] = host_with_id_.try_emplace(hosts_[host].facts.entry.id, host);
    if (fresh) return;
    const uint32_t other = at->second;
    if (host > other || is_in_use(other)) return make_alias(host, other);
    at->second = host;
    make_alias(other, host);
}

void Universe::make_alias(uint32_t host, uint32_t of) {
    UniverseHost &alias = hosts_[host], &same = hosts_[of];
    if (alias.offered && same.offered) {
        unite_slots(same.slots, alias.slots);
    } else if (alias.slots > 0) {
        same.slots = alias.slots;
    }
    same.offered |= alias.offered;
    alias.offered = false;
    alias.state = UniverseHost::HostState::alias;
    for (UniverseHost& other : hosts_) {
        if (other.same_as == host) other.same_as = of;
    }
    alias.same_as = of;
}

bool Universe::is_in_use(uint32_t host) const {
    return host == kRootHost ||
           std::any_of(jobs_.begin(), jobs_.end(), [&](const UniverseJob& job) { return job.holders.contains(host); });
}

void Universe::forget_machine(uint32_t lost) {
    const auto at = host_with_id_.find(hosts_[lost].facts.entry.id);
    if (at != host_with_id_.end() && at->second == lost) host_with_id_.erase(at);
    for (UniverseHost& host : hosts_) {
        if (host.same_as != lost) continue;
        host.same_as = job::kNoHost;
        host.state = UniverseHost::HostState::lost;
        host.problem = hosts_[lost].problem;
    }
}

std::string Universe::aliases() const {
    std::string text;
    for (const UniverseHost& host : hosts_) {
        if (host.state == UniverseHost::HostState::alias)
            text += (text.empty() ? "" : ", ") + host.name + " is the same machine as " + hosts_[host.same_as].name;
    }
    return text;
}

// Renames a host that is lost or never was up, so that a new daemon can use its names.
void Universe::replace_name(uint32_t host) {
    hosts_[host].name += " (before)";
    host_names_ = {};
    for (uint32_t i = 0; i < hosts_.size(); ++i) {
        if (hosts_[i].name.ends_with(" (before)")) continue;
        host_names_.add(hosts_[i].name, i);
        if (hosts_[i].state == UniverseHost::HostState::up) host_names_.add(hosts_[i].facts.entry.name, i);
    }
}

void Universe::on_host_failed(uint32_t host, const std::string& sentence) {
    if (host >= hosts_.size()) return;
    hosts_[host].state = UniverseHost::HostState::failed;
    hosts_[host].problem = sentence;
    check_growth();
}

bool Universe::has_grown(const Growth& growth, std::string& problem) const {
    bool all_up = true;
    for (const uint32_t host : growth.hosts) {
        const UniverseHost::HostState state = hosts_[host].state;
        all_up = all_up && (state == UniverseHost::HostState::up || state == UniverseHost::HostState::alias);
        if (state == UniverseHost::HostState::failed || state == UniverseHost::HostState::lost) problem = hosts_[host].problem;
    }
    return all_up || !problem.empty();
}

// Selects this host's addresses again: the networks that it shares with other hosts are known when they are up.
void Universe::check_own_addresses() {
    std::vector<uint32_t> others;
    for (const UniverseHost& host : hosts_) {
        const job::HostEntry& entry = host.facts.entry;
        if (host.state == UniverseHost::HostState::up && &host != &hosts_[kRootHost])
            others.insert(others.end(), entry.ipv4, entry.ipv4 + entry.addresses);
    }
    hosts_[kRootHost].facts = own_facts(others);
}

void Universe::check_growth() {
    // Empty growing_ first: a callback may call add_hosts(), which appends to it.
    std::vector<Growth> still;
    for (Growth& growth : std::exchange(growing_, {})) {
        std::string problem;
        if (has_grown(growth, problem)) {
            check_own_addresses();
            growth.ready(problem);
        } else {
            still.push_back(std::move(growth));
        }
    }
    for (Growth& growth : still) growing_.push_back(std::move(growth));
}

void Universe::remove_load(uint32_t host, uint32_t processes) {
    hosts_[host].placed -= std::min(processes, hosts_[host].placed);
}

void Universe::on_message(uint32_t from, std::string_view payload) {
    HostOrder order;
    if (!decode(payload, order)) {
        if (on_print) on_print("a message from host " + hosts_[from].name + " is invalid and ignored");
        return;
    }
    // Orders between host agents arrive here too if they are for the root's own host agent.
    if (!is_for_root(order.kind)) {
        deputy_.on_order(from, payload);
        return;
    }
    if (order.kind == OrderKind::print) {
        if (on_print) on_print(hosts_[from].name + ": " + order.text);
        return;
    }
    if (order.kind == OrderKind::client || order.kind == OrderKind::client_closed) {
        if (on_client) on_client(from, order);
        return;
    }
    UniverseJob* job = find(order.job);
    if (!job) return;
    switch (order.kind) {
        case OrderKind::failed:
            return on_failed(*job, from, order);
        case OrderKind::absent:
            return on_absent(*job, from, order);
        case OrderKind::arrived:
            return on_arrived(*job, HostSet::one(from));
        case OrderKind::output:
            return on_output(*job, from, order);
        case OrderKind::taken:
            return on_input_taken(*job, from);
        case OrderKind::rank_request:
            return on_request(*job, from, order);
        case OrderKind::stacks_shown:
            if (job->patron) on_stacks_shown(*job->patron);
            return;
        default:
            return;
    }
}

void Universe::on_gathered(std::string_view topic, const std::vector<GatheredPiece>& pieces) {
    HostOrder order;
    if (!decode(topic, order)) return;
    for (const GatheredPiece& piece : pieces) {
        // Handling a piece may end the job, so find it again each time.
        if (UniverseJob* job = find(order.job)) on_part(*job, order.kind, piece.hosts, piece.bytes);
    }
}

void Universe::on_part(UniverseJob& job, OrderKind kind, const HostSet& hosts, std::string_view bytes) {
    switch (kind) {
        case OrderKind::started:
            return on_started(job, hosts, bytes);
        case OrderKind::arrived:
            return on_arrived(job, hosts);
        case OrderKind::ranks_ended:
            return on_hosts_ended(job, hosts, bytes);
        case OrderKind::want_table:
            return on_want_table(job, hosts);
        case OrderKind::host_ports:
            return on_host_ports(job, hosts, bytes);
        case OrderKind::processes:
            return on_processes(job, hosts, bytes);
        default:
            return;
    }
}

void Universe::on_output(UniverseJob& job, uint32_t host, const HostOrder& order) {
    const int target = stream_of(order.descriptor);
    HostOrder written = job.order(OrderKind::written);
    written.descriptor = static_cast<uint64_t>(target);
    written.count = order.bytes.size();
    if (!job.patron) {
        send_order(host, written);
        return;
    }
    job.patron->output(target, order.bytes, [this, host, written] { send_order(host, written); });
}

void Universe::send_order(uint32_t host, const HostOrder& order) { send_order(HostSet::one(host), order); }

// Sends an order. The host agent of this host is called directly; its reports are posted, so they arrive later.
void Universe::send_order(HostSet hosts, const HostOrder& order) {
    if (hosts.empty()) return;
    std::string payload = encode(order);
    if (hosts.contains(kRootHost)) deputy_.on_order(kRootHost, payload);
    hosts.remove(kRootHost);
    if (!hosts.empty()) tree_->multicast(hosts, std::move(payload));
}

Universe::UniverseJob* Universe::find(job::JobId id) {
    for (UniverseJob& job : jobs_) {
        if (job.id() == id) return &job;
    }
    return nullptr;
}

// Returns the client with this id if it has jobs; null: it has none, or has left.
JobClient* Universe::find_client(uint64_t id) {
    for (const UniverseJob& job : jobs_) {
        if (job.patron && job.patron->id == id) return job.patron;
    }
    return nullptr;
}

const Universe::UniverseJob* Universe::first_job(const JobClient& patron) const {
    for (const UniverseJob& job : jobs_) {
        if (job.patron == &patron && job.number == 0) return &job;
    }
    return nullptr;
}

void Universe::detail(const JobClient& patron, const std::string& sentence) {
    if (patron.verbose) const_cast<JobClient&>(patron).print(sentence);
}

void Universe::signal(JobClient& patron, int signal) {
    if (signal == SIGINT || signal == SIGQUIT || signal == SIGTERM || signal == SIGHUP) patron.forwarded_signal = signal;
    const bool at_once = patron.insistence.grows(signal, patron.ending() == JobClient::Ending::begun);
    if (asks_to_end(signal)) patron.end_by = EventLoop::Clock::now() + std::chrono::seconds(config().signal_grace);
    for (UniverseJob& job : jobs_) {
        if (job.patron != &patron) continue;
        HostOrder order = job.order(at_once ? OrderKind::kill : OrderKind::signal);
        order.signal = static_cast<uint64_t>(signal);
        job.asked_to_end |= asks_to_end(signal);
        send_order(job.present, order);
    }
}

// Passes the signal that asked the client's jobs to end to a job that has started since.
void Universe::pass_on_signal(UniverseJob& job) {
    if (job.patron->forwarded_signal == 0 || std::exchange(job.asked_to_end, true)) return;
    HostOrder order = job.order(OrderKind::signal);
    order.signal = static_cast<uint64_t>(job.patron->forwarded_signal);
    send_order(job.present, order);
}

void Universe::suspend(std::function<void()> done) {
    if (!tree_) return done();
    tree_->broadcast(encode(HostOrder{.kind = OrderKind::signal, .signal = SIGTSTP}), Urgency::control, std::move(done));
}

void Universe::resume() {
    if (tree_) tree_->broadcast(encode(HostOrder{.kind = OrderKind::signal, .signal = SIGCONT}));
}

bool Universe::wants_input(const JobClient& patron) const {
    const UniverseJob* job = first_job(patron);
    if (!job) return false;
    const HostSet hosts = job->input_hosts();
    return !hosts.empty() && !(job->spec.input.is_single() && hosts.contains(kRootHost));
}

void Universe::input(JobClient& patron, std::string data) {
    UniverseJob* job = first_job(patron);
    if (!job) return;
    job->input_awaited = job->input_hosts().intersection(job->holders);
    send_order(job->input_awaited, job->order(OrderKind::input, std::move(data)));
}

// Notifies the job client when all hosts have taken the last piece of input.
void Universe::on_input_taken(UniverseJob& job, uint32_t host) {
    if (!job.input_awaited.contains(host)) return;
    job.input_awaited.remove(host);
    if (job.input_awaited.empty() && job.patron) job.patron->input_read();
}

void Universe::listen_for_clients(const std::string& socket_name, std::function<void()> done) {
    tree_->broadcast(encode(HostOrder{.kind = OrderKind::serve_clients, .text = socket_name}), Urgency::control,
                     std::move(done));
}

void Universe::send_to_client(uint32_t host, uint64_t connection, control::MessageKind kind, const std::string& payload) {
    const auto message = static_cast<uint64_t>(kind);
    send_order(host, HostOrder{.kind = OrderKind::to_client, .connection = connection, .message = message, .bytes = payload});
}

void Universe::shut_down(std::function<void()> done) {
    deputy_.end_everything();
    jobs_.clear();
    const bool alone = hosts_.size() == 1;
    if (alone) return done();
    tree_->shut_down(std::chrono::seconds(5), [done = std::move(done)](const std::vector<TreeHostId>&) { done(); });
}

}  // namespace starling::launch
