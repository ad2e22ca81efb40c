#include "uet/endpoint.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

#include "embed/fork_guard.h"
#include "embed/reasons.h"
#include "embed/wakeup.h"
#include "fep/fep.h"
#include "fep/linger.h"
#include "fep/report/event_log.h"
#include "fep/report/live_report.h"
#include "fep/report/path_log.h"
#include "fep/security.h"
#include "fep/settings/port_entries.h"
#include "fep/settings/settings.h"
#include "lib/base/idle_poll.h"
#include "lib/ports/live_desk.h"
#include "lib/ports/live_socket.h"
#include "lib/ports/open_port.h"
#include "lib/ports/system_random.h"
#include "ses/address_bytes.h"

namespace uet {
namespace {

base::Instant clock_now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return base::Instant::from_ns(t.tv_sec * 1'000'000'000 + t.tv_nsec);
}

std::string changed_case(std::string_view text, int (*change)(int)) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [change](unsigned char c) { return change(c); });
  return out;
}

/// Unknown keys are errors here as they are in a file. So are those that would change nothing: a file serves libfabric programs, too, and
/// what a program says itself is for this endpoint.
std::optional<std::string> wrong_key(const std::map<std::string, std::string>& given) {
  const auto all = fep::settings();
  for (const auto& entry : given) {
    const std::string& key = entry.first;
    const auto at = std::find_if(all.begin(), all.end(), [&](const fep::Setting& s) {
      return changed_case(s.key, std::tolower) == key;
    });
    if (at == all.end())
      return "unknown setting \"" + key + "\"; uet.toml(5) lists the settings, in lower case";
    if (at->libfabric_only)
      return "the setting \"" + key + "\" is for libfabric programs only; leave it out";
  }
  return std::nullopt;
}

/// What does not keep an endpoint from opening: a line on standard error, once in a process.
void tell(const std::string& what) {
  static std::mutex lock;
  static std::set<std::string> told;
  const std::scoped_lock guard(lock);
  if (!what.empty() && told.insert(what).second) std::fprintf(stderr, "uet: %s\n", what.c_str());
}

/// Nothing for what peers do here: it is no operation of this side.
std::optional<Operation> operation_of(ses::OpKind kind) {
  switch (kind) {
    case ses::OpKind::kTaggedSend:
      return Operation::kSend;
    case ses::OpKind::kWrite:
      return Operation::kWrite;
    case ses::OpKind::kRead:
      return Operation::kRead;
    case ses::OpKind::kTaggedReceive:
      return Operation::kReceive;
    default:
      return std::nullopt;
  }
}

void* pointer_of(std::uint64_t context) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(context));
}
std::uint64_t context_of(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}
iovec vector_of(const void* data, std::size_t size) {
  return {const_cast<void*>(data), size};
}

constexpr const char* kIsChild = "the endpoint belongs to the parent of this process";
constexpr const char* kNoPeer = "add_peer() of this endpoint did not return this peer";
constexpr const char* kNoData = "data is null, and size is not 0";
/// [SES 6.4] Deferrable sends, which have more, know no order.
constexpr const char* kOnePacket =
    "sends to this peer have one packet at most: its address names the AI Base or AI Full profile "
    "without HPC, or messages of one packet";

/// Of endpoints in this process, so that each refuses the peers of all others.
std::uint32_t next_number() {
  static std::atomic<std::uint32_t> latest = 0;
  return ++latest;
}

/// A sender that was never added, as far as packets tell its address: with an initiator ID that is made of PIDonFEP and resource index, as
/// it is by default.
std::optional<ses::Address> address_of(const ses::Source& source, const ses::EndpointConfig& own) {
  constexpr std::uint32_t kEnd = 1u << 24, kIndexMask = 0xfff;
  const std::uint32_t id = source.initiator_id;
  if (source.fabric_address.is_unspecified() || id >= kEnd || (id & kIndexMask) == 0)
    return std::nullopt;
  return ses::Address{.fabric_address = source.fabric_address,
                      .pid_on_fep = static_cast<std::uint16_t>(id >> 12),
                      .resource_index = static_cast<std::uint16_t>(id & kIndexMask),
                      .initiator_id = id,
                      .relative = own.relative};
}

}  // namespace

struct Endpoint::Impl final : ses::CompletionSink {
  explicit Impl(fep::Settings chosen)
      : settings(std::move(chosen)), rng(ports::make_rng(settings.seed)) {}

  void on_completion(ses::EndpointId, const ses::Completion& c) override {
    const auto operation = operation_of(c.kind);
    if (!operation) return;
    done.push_back(Completion{.operation = *operation,
                              .ok = c.code == ses::ReturnCode::kOk,
                              .reason = reason_of(*operation, c.code),
                              .context = pointer_of(c.context),
                              .length = c.length,
                              .tag = c.tag});
    if (*operation == Operation::kReceive) add_sender(c.source, done.back());
  }

  void add_sender(const ses::Source& source, Completion& to) const {
    if (const auto known = peers.find(fep->ses().find_source(source)); known != peers.end()) {
      to.from = Peer(number, known->first, known->second.number);
      to.sender = known->second.address;
    } else if (const auto heard = address_of(source, config)) {
      to.sender = ses::pack_address(*heard);
    }
  }

  void note_bounds(const ses::SesConfig& c) {
    message_max = c.max_message;
    receives_full =
        std::to_string(c.max_receives) + " receives wait already; messages and cancel() make room";
    peers_full = std::to_string(c.max_peers) + " peers are known already; remove_peer() makes room";
    windows_full = std::to_string(c.max_memory_regions) +
                   " windows are open already; close_window() makes room";
  }

  /// Of a peer of this endpoint.
  auto find(Peer peer) {
    const auto known = peers.find(peer.place_);
    return known != peers.end() && known->second.number == peer.number_ ? known : peers.end();
  }

  /// What becomes of a call, made by `call` where its arguments may be those of one.
  template <typename Call>
  Post post(std::optional<Peer> peer, const void* data, std::size_t size, const Call& call) {
    if (fork_guard.is_in_child()) return refuse(kIsChild);
    if (peer && peer->endpoint_ != number) return refuse(kNoPeer);
    if (peer && find(*peer) == peers.end()) return refuse(reason_of(ses::PostError::kBadPeer));
    if (data == nullptr && size > 0) return refuse(kNoData);
    wants_turn = true;
    const auto result = call();
    if (result.has_value()) {
      refusal = "";
      return Post::kAccepted;
    }
    if (result.error() == ses::PostError::kTooLong && size <= message_max)
      return refuse(kOnePacket);
    if (result.error() != ses::PostError::kAgain) return refuse(reason_of(result.error()));
    // Only what peers send, and cancel(), takes receives away: calls again and again would wait for ever.
    if (!peer) return refuse(receives_full);
    refusal = "as many operations are under way as an endpoint may have; turn() makes room";
    return Post::kTryAgain;
  }
  Post refuse(const char* why) {
    refusal = why;
    return Post::kRefused;
  }
  Post refuse(const std::string& why) { return refuse(why.c_str()); }

  bool turn(base::Instant now) {
    if (fork_guard.is_in_child()) return false;
    const bool did = fep->turn(now);
    if (did) idle_poll.reset();
    wants_turn = did;
    if (path_log != nullptr) path_log->on_turn(now, *fep);
    if (desk.is_due(now)) {
      desk.look(now, [&](const std::string& request) {
        fep::LiveReport report(request, getpid(), ports::program_name());
        report.add(now, *fep, settings);
        return report.text();
      });
    }
    return did;
  }

  /// 0 or less where there is something to do now.
  base::Duration may_sleep_for(base::Instant now, bool packets_wake) {
    if (wants_turn || wakeup.has_half_call() || !port->arm_wakeup()) return {};
    const base::Duration limit = std::min(fep->next_deadline(), desk.deadline()) - now;
    return packets_wake ? limit : std::min(limit, idle_poll.next());
  }

  /// Until a deadline or `end`, or until there is something to do.
  void sleep(base::Instant now, base::Instant end) {
    const base::Duration limit = std::min(may_sleep_for(now, port->wakeup_fd() >= 0), end - now);
    if (limit <= base::Duration()) return;
    if (wakeup.sleep(limit, port->wakeup_fd(), desk.wakeup())) desk.look_soon();
  }

  /// The peers may not have heard the last acknowledgements, which only this endpoint can send again.
  void say_goodbye() {
    const base::Instant begin = clock_now();
    if (path_log != nullptr) path_log->write(begin, *fep);
    fep->ses().close_endpoint(begin, id);
    fep->pds().close_all(begin);
    const auto received = [this] { return trace.count(base::EventId::kPacketReceived); };
    fep::Linger linger(begin, settings.rto_max, received());
    for (base::Instant now = begin;; now = clock_now()) {
      fep->turn(now);
      if (linger.is_over(now, fep->is_idle(), received())) return;
      wakeup.take_call();
      wants_turn = false;
      sleep(now, now + base::Duration::from_ms(5));
    }
  }

  fep::Settings settings;
  base::Trace trace;
  std::unique_ptr<fep::TraceFile> trace_file;
  std::unique_ptr<fep::PathLog> path_log;
  base::Rng rng;
  std::unique_ptr<net::Port> port;
  std::unique_ptr<fep::Fep> fep;
  ports::LiveDesk desk;
  base::IdlePoll idle_poll;
  ForkGuard fork_guard;
  Wakeup wakeup;
  bool wants_turn = true;            ///< the latest turn did something, or a call came after it
  bool is_slept_on_outside = false;  ///< may_sleep_for() was called after the latest turn
  ses::EndpointConfig config;
  ses::EndpointId id = 0;
  const std::uint32_t number = next_number();
  struct KnownPeer {
    Address address;
    std::uint32_t users = 0;   ///< add_peer() less remove_peer()
    std::uint64_t number = 0;  ///< that of Peer: the ids of ses come again after 262,144 removals
  };
  std::unordered_map<ses::PeerId, KnownPeer> peers;
  std::uint64_t latest_peer = 0;
  std::deque<Completion> done;  ///< at most one entry for each operation in flight
  const char* refusal = "";     ///< of the latest call
  std::string receives_full, peers_full, windows_full;
  std::uint64_t message_max = 0;
};

namespace {

/// A udp port that names no place is on FI_UET_IFNAME.
std::string placed(const fep::Settings& settings, const std::string& spec) {
  const bool is_bare = spec == "udp" || spec.starts_with("udp,");
  return !is_bare || settings.ifname.empty() ? spec : "udp:" + settings.ifname + spec.substr(3);
}

std::optional<std::uint32_t> initiator_of(const fep::Settings& settings) {
  if (!settings.initiator_id) return std::nullopt;
  return static_cast<std::uint32_t>(*settings.initiator_id);
}

/// The first entry of the settings whose port can be opened, as in the provider. Null with what is wrong with each.
std::unique_ptr<net::Port> open_first(const fep::Settings& settings, const base::Rng& rng,
                                      base::Trace& trace, std::string& error) {
  std::string why_none;
  for (const auto& [spec, text] : fep::port_entries(settings)) {
    const auto address = net::FabricAddress::parse(text);
    error = "FI_UET_ADDR: " + text + ": only the provider knows the local rank, %r";
    if (text.empty() || address) {
      auto port = ports::open_port(
          {.request = settings.port_request(placed(settings, spec),
                                            address.value_or(net::FabricAddress{}), rng),
           .impair = settings.impair,
           .pcap = settings.pcap},
          trace, error);
      if (port != nullptr) return port;
    }
    why_none += (why_none.empty() ? "" : "; ") + error;
  }
  error = why_none;
  return nullptr;
}

}  // namespace

Endpoint::Endpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

std::unique_ptr<Endpoint> Endpoint::open(const std::map<std::string, std::string>& given,
                                         std::string& error) try {
  if (auto wrong = wrong_key(given)) {
    error = *wrong;
    return nullptr;
  }
  for (const std::string& name : fep::unknown_variables(environ))
    tell(fep::about_unknown_variable(name, "fi_uet(7)"));
  const auto settings =
      fep::Settings::load([&](std::string_view key) -> std::optional<std::string> {
        if (const auto it = given.find(changed_case(key, std::tolower)); it != given.end())
          return it->second;
        const char* value = std::getenv(("FI_UET_" + std::string(key)).c_str());
        return value == nullptr ? std::nullopt : std::optional<std::string>(value);
      });
  if (!settings) {
    error = settings.error();
    return nullptr;
  }
  auto impl = std::make_unique<Impl>(*settings);
  if (!impl->wakeup.open()) {
    error = "no descriptor to sleep on: " + std::string(std::strerror(errno));
    return nullptr;
  }
  if (!settings->trace.empty()) {
    impl->trace_file = fep::TraceFile::open(settings->trace, impl->trace, error);
    if (impl->trace_file == nullptr) return nullptr;
    impl->fork_guard.watch(*impl->trace_file);
  }
  if (!settings->path_log.empty()) {
    impl->path_log = fep::PathLog::open(settings->path_log, error);
    if (impl->path_log == nullptr) return nullptr;
    impl->fork_guard.watch(*impl->path_log);
  }
  impl->port = open_first(*settings, impl->rng, impl->trace, error);
  if (impl->port == nullptr) return nullptr;
  tell(std::exchange(error, {}));  // a remark of the port
  impl->fork_guard.watch(*impl->port);
  const auto config =
      settings->fep_config(impl->port->facts(), ports::number_of_process(settings->seed));
  if (!config) {
    error = config.error();
    return nullptr;
  }
  if (config->security != nullptr && settings->addresses.empty() && settings->ifname.empty())
    tell(config->security->why_risky_at(impl->port->facts().address));
  const base::Instant now = clock_now();
  impl->fep = std::make_unique<fep::Fep>(*config, *impl->port, impl->rng, impl->trace, now);
  impl->note_bounds(config->ses);
  impl->config = {.job_id = static_cast<std::uint32_t>(settings->job),
                  .relative = settings->mode == fep::AddressMode::kRelative,
                  .pid_on_fep = static_cast<std::uint16_t>(settings->pid_on_fep),
                  .resource_index = static_cast<std::uint16_t>(settings->ri),
                  .initiator_id = initiator_of(*settings),
                  .sends_ordered = true,
                  .has_untagged = false,  // none could be received
                  .has_datagrams = false};
  const auto opened = impl->fep->ses().open_endpoint(now, impl->config, *impl);
  if (!opened) {
    error = "no endpoint with this job, process number and resource index can be opened";
    return nullptr;
  }
  impl->id = *opened;
  return std::unique_ptr<Endpoint>(new Endpoint(std::move(impl)));
} catch (const std::bad_alloc&) {
  error = "there is not enough memory for an endpoint";
  return nullptr;
}

Endpoint::~Endpoint() {
  if (impl_->fork_guard.is_in_child()) {
    // As the fork found it, perhaps in the middle of a call: closing it would send, and remove what the parent's files and sockets are
    // found by.
    (void)impl_.release();
    return;
  }
  try {
    impl_->say_goodbye();
  } catch (const std::exception&) {
    // Out of memory: peers hear nothing more.
  }
}

Address Endpoint::address() const {
  return ses::pack_address(impl_->fep->ses().address_of(impl_->id));
}

std::string Endpoint::address_text() const {
  return ses::format_address(impl_->fep->ses().address_of(impl_->id));
}

std::optional<Peer> Endpoint::add_peer(std::span<const std::uint8_t> bytes) {
  const auto refuse = [this](const char* why) {
    impl_->refusal = why;
    return std::nullopt;
  };
  if (impl_->fork_guard.is_in_child()) return refuse(kIsChild);
  auto address = ses::unpack_address(bytes);
  if (!address || !ses::is_complete(bytes)) return refuse("these bytes are no address");
  // No packet of ours could ever get there: said at once, not when FI_UET_PEER_TIMEOUT is over.
  if (address->fabric_address.is_v4() != impl_->port->facts().address.is_v4())
    return refuse("the address is of the IP family that this endpoint does not have");
  // The address of a sender, as packets tell it, says nothing of what the endpoint can do. Where that is known it is the same peer.
  if (address->fep_cap == 0 && address->has_initiator_id) {
    const auto known =
        impl_->peers.find(impl_->fep->ses().find_source({.fabric_address = address->fabric_address,
                                                         .job_id = impl_->config.job_id,
                                                         .initiator_id = address->initiator_id}));
    if (known != impl_->peers.end()) address = ses::unpack_address(known->second.address);
  }
  const auto peer = impl_->fep->ses().add_peer(*address);
  if (!peer)
    return refuse(peer.error() == ses::PostError::kNoResources ? impl_->peers_full.c_str()
                                                               : "these bytes are no address");
  auto& known = impl_->peers[*peer];
  if (known.users++ == 0) {
    known.address = ses::pack_address(*address);
    known.number = ++impl_->latest_peer;
  }
  impl_->refusal = "";
  return Peer(impl_->number, *peer, known.number);
}

bool Endpoint::remove_peer(Peer peer) {
  impl_->refusal = kIsChild;
  if (impl_->fork_guard.is_in_child()) return false;
  const auto known = impl_->find(peer);
  impl_->refusal = kNoPeer;
  if (peer.endpoint_ != impl_->number || known == impl_->peers.end()) return false;
  impl_->refusal = "";
  impl_->fep->ses().remove_peer(peer.place_);
  if (--known->second.users == 0) impl_->peers.erase(known);
  return true;
}

Post Endpoint::send(Peer to, std::uint64_t tag, const void* data, std::size_t size, void* context) {
  const iovec all = vector_of(data, size);
  const ses::SendRequest request{.peer = to.place_,
                                 .tagged = true,
                                 .tag = tag,
                                 .iov = {&all, 1},
                                 .context = context_of(context)};
  return impl_->post(to, data, size,
                     [&] { return impl_->fep->ses().send(clock_now(), impl_->id, request); });
}

Post Endpoint::receive(std::uint64_t tag, std::uint64_t ignore, void* data, std::size_t size,
                       void* context) {
  const iovec all = vector_of(data, size);
  const ses::ReceiveRequest request{.tagged = true,
                                    .tag = tag,
                                    .ignore = ignore,
                                    .iov = {&all, 1},
                                    .context = context_of(context)};
  return impl_->post(std::nullopt, data, size,
                     [&] { return impl_->fep->ses().receive(clock_now(), impl_->id, request); });
}

Post Endpoint::write(Peer to, Window window, std::uint64_t offset, const void* data,
                     std::size_t size, void* context) {
  const iovec all = vector_of(data, size);
  const ses::RmaRequest request{.peer = to.place_,
                                .iov = {&all, 1},
                                .remote_offset = offset,
                                .key = window.key,
                                .context = context_of(context)};
  return impl_->post(to, data, size,
                     [&] { return impl_->fep->ses().rma(clock_now(), impl_->id, request); });
}

Post Endpoint::read(Peer from, Window window, std::uint64_t offset, void* data, std::size_t size,
                    void* context) {
  const iovec all = vector_of(data, size);
  const ses::RmaRequest request{.peer = from.place_,
                                .read = true,
                                .iov = {&all, 1},
                                .remote_offset = offset,
                                .key = window.key,
                                .context = context_of(context)};
  return impl_->post(from, data, size,
                     [&] { return impl_->fep->ses().rma(clock_now(), impl_->id, request); });
}

bool Endpoint::cancel(const void* context) {
  impl_->refusal = kIsChild;
  if (impl_->fork_guard.is_in_child()) return false;
  impl_->refusal = "no operation with this context waits";
  if (!impl_->fep->ses().cancel(clock_now(), impl_->id, context_of(context))) return false;
  impl_->refusal = "";
  impl_->wants_turn = true;
  return true;
}

const char* Endpoint::why_not() const {
  return impl_->refusal;
}

std::optional<Window> Endpoint::open_window(void* data, std::size_t size) {
  impl_->refusal = kIsChild;
  if (impl_->fork_guard.is_in_child()) return std::nullopt;
  impl_->refusal = kNoData;
  if (data == nullptr && size > 0) return std::nullopt;
  const iovec all = vector_of(data, size);
  const auto key = impl_->fep->ses().register_memory(ses::MemoryRequest{
      .iov = {&all, 1}, .remote_read = true, .remote_write = true, .virtual_addressing = false});
  impl_->refusal = key                                           ? ""
                   : key.error() == ses::PostError::kNoResources ? impl_->windows_full.c_str()
                                                                 : reason_of(key.error());
  return key ? std::optional(Window{*key}) : std::nullopt;
}

void Endpoint::close_window(Window window) {
  if (impl_->fork_guard.is_in_child()) return;
  impl_->fep->ses().deregister_memory(window.key);
  impl_->wants_turn = true;
}

bool Endpoint::turn() {
  if (impl_->fork_guard.is_in_child()) return false;
  impl_->wakeup.take_call();
  if (std::exchange(impl_->is_slept_on_outside, false)) {
    pollfd desk = impl_->desk.wakeup();
    if (desk.fd >= 0 && ::poll(&desk, 1, 0) == 1) impl_->desk.look_soon();
  }
  return impl_->turn(clock_now());
}

std::optional<Completion> Endpoint::poll() {
  if (impl_->fork_guard.is_in_child() || impl_->done.empty()) return std::nullopt;
  const Completion first = impl_->done.front();
  impl_->done.pop_front();
  return first;
}

std::optional<Completion> Endpoint::wait(std::chrono::milliseconds limit) {
  constexpr std::chrono::milliseconds kForEver = std::chrono::years(10);  // no sum of it overflows
  const base::Instant end =
      clock_now() +
      base::Duration::from_ms(std::clamp(limit, std::chrono::milliseconds(0), kForEver).count());
  impl_->idle_poll.reset();
  while (!impl_->fork_guard.is_in_child()) {
    const bool busy = impl_->turn(clock_now());
    if (auto completion = poll()) return completion;
    if (impl_->wakeup.take_call()) return std::nullopt;
    const base::Instant now = clock_now();
    if (now >= end) return std::nullopt;
    if (!busy) impl_->sleep(now, end);
  }
  return std::nullopt;
}

int Endpoint::wakeup_fd() const {
  return impl_->wakeup.fd();
}

std::chrono::nanoseconds Endpoint::may_sleep_for() {
  if (impl_->fork_guard.is_in_child()) return std::chrono::nanoseconds::max();
  if (!impl_->done.empty()) return {};
  impl_->is_slept_on_outside = true;
  const bool packets_wake = impl_->wakeup.watch(impl_->port->wakeup_fd(), impl_->desk.wakeup());
  const base::Duration limit = impl_->may_sleep_for(clock_now(), packets_wake);
  return std::chrono::nanoseconds(std::max<std::int64_t>(limit.ns(), 0));
}

void Endpoint::wake() {
  if (!impl_->fork_guard.is_in_child()) impl_->wakeup.call();
}

}  // namespace uet
