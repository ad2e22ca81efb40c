#include "uet/endpoint.h"

#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <set>
#include <utility>

#include "embed/fork_guard.h"
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

const char* reason_of(ses::ReturnCode code) {
  switch (code) {
    case ses::ReturnCode::kOk:
      return "";
    case ses::ReturnCode::kTruncated:
      return "the message was longer than the buffer";
    case ses::ReturnCode::kPeerSilent:
      return "the peer was silent for too long";
    case ses::ReturnCode::kMessageTimeout:
      return "the rest of the message never came";
    case ses::ReturnCode::kUndeliverable:
      return "the peer cannot be reached";
    case ses::ReturnCode::kCancelled:
      return "cancelled";
    case ses::ReturnCode::kBadMkey:
      return "the window does not exist";
    case ses::ReturnCode::kBadAddr:
      return "outside the window";
    case ses::ReturnCode::kPermViolation:
      return "not allowed by the window";
    default:
      return "refused by the peer";
  }
}

const char* reason_of(ses::PostError error) {
  switch (error) {
    case ses::PostError::kAgain:
      return "no room; turn() makes some";
    case ses::PostError::kBadPeer:
      return "add_peer() did not return this peer";
    case ses::PostError::kBadJob:
      return "the peer is in another job (FI_UET_JOB)";
    case ses::PostError::kTooLong:
      return "longer than a message may be";
    case ses::PostError::kModeForbids:
      return "the delivery mode forbids it";
    default:
      return "an argument is wrong";
  }
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

}  // namespace

struct Endpoint::Impl final : ses::CompletionSink {
  explicit Impl(fep::Settings chosen)
      : settings(std::move(chosen)), rng(ports::make_rng(settings.seed)) {}

  void on_completion(ses::EndpointId, const ses::Completion& c) override {
    const auto operation = operation_of(c.kind);
    if (!operation) return;
    done.push_back(Completion{.operation = *operation,
                              .ok = c.code == ses::ReturnCode::kOk,
                              .reason = reason_of(c.code),
                              .context = pointer_of(c.context),
                              .length = c.length,
                              .tag = c.tag});
  }

  /// What becomes of a call, made by `call` unless the process is a child.
  template <typename Call>
  Post post(const Call& call) {
    if (fork_guard.is_in_child()) {
      refusal = "the endpoint belongs to the parent of this process";
      return Post::kRefused;
    }
    const auto result = call();
    refusal = result.has_value() ? "" : reason_of(result.error());
    if (result.has_value()) return Post::kAccepted;
    return result.error() == ses::PostError::kAgain ? Post::kTryAgain : Post::kRefused;
  }

  bool turn(base::Instant now) {
    if (fork_guard.is_in_child()) return false;
    const bool did = fep->turn(now);
    if (did) idle_poll.reset();
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

  /// Until a deadline or `end`, or until there is something to do.
  void sleep(base::Instant now, base::Instant end) {
    if (!port->arm_wakeup()) return;
    base::Duration sleep = std::min({end, fep->next_deadline(), desk.deadline()}) - now;
    // A port without a descriptor cannot wake us.
    if (port->wakeup_fd() < 0) sleep = std::min(sleep, idle_poll.next());
    if (sleep <= base::Duration()) return;
    // Entries with a descriptor of -1 are skipped.
    pollfd fds[2] = {{.fd = port->wakeup_fd(), .events = POLLIN, .revents = 0}, desk.wakeup()};
    const timespec limit{sleep.ns() / 1'000'000'000, sleep.ns() % 1'000'000'000};
    ppoll(fds, 2, &limit, nullptr);
    if (fds[1].revents != 0) desk.look_soon();
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
  ses::EndpointId id = 0;
  std::deque<Completion> done;  ///< at most one entry for each operation in flight
  const char* refusal = "";     ///< of the latest call
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
  const auto config = settings->fep_config(impl->port->facts());
  if (!config) {
    error = config.error();
    return nullptr;
  }
  if (config->security != nullptr && settings->addresses.empty() && settings->ifname.empty())
    tell(config->security->why_risky_at(impl->port->facts().address));
  const base::Instant now = clock_now();
  impl->fep = std::make_unique<fep::Fep>(*config, *impl->port, impl->rng, impl->trace, now);
  const auto opened = impl->fep->ses().open_endpoint(
      now,
      ses::EndpointConfig{.job_id = static_cast<std::uint32_t>(settings->job),
                          .relative = settings->mode == fep::AddressMode::kRelative,
                          .pid_on_fep = static_cast<std::uint16_t>(settings->pid_on_fep),
                          .resource_index = static_cast<std::uint16_t>(settings->ri),
                          .initiator_id = initiator_of(*settings),
                          .has_untagged = false,  // none could be received
                          .has_datagrams = false},
      *impl);
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

std::vector<std::uint8_t> Endpoint::address() const {
  const auto bytes = ses::pack_address(impl_->fep->ses().address_of(impl_->id));
  return {bytes.begin(), bytes.end()};
}

std::string Endpoint::address_text() const {
  return ses::format_address(impl_->fep->ses().address_of(impl_->id));
}

std::optional<Peer> Endpoint::add_peer(std::span<const std::uint8_t> bytes) {
  const auto address = ses::unpack_address(bytes);
  if (impl_->fork_guard.is_in_child() || !address || !ses::is_complete(bytes)) return std::nullopt;
  // No packet of ours could ever get there: said at once, not when FI_UET_PEER_TIMEOUT is over.
  const bool is_v4 = impl_->port->facts().address.is_v4();
  if (address->fabric_address.is_v4() != is_v4) return std::nullopt;
  const auto peer = impl_->fep->ses().add_peer(*address);
  return peer ? std::optional<Peer>(*peer) : std::nullopt;
}

Post Endpoint::send(Peer to, std::uint64_t tag, const void* data, std::size_t size, void* context) {
  const iovec all = vector_of(data, size);
  const ses::SendRequest request{
      .peer = to, .tagged = true, .tag = tag, .iov = {&all, 1}, .context = context_of(context)};
  return impl_->post([&] { return impl_->fep->ses().send(clock_now(), impl_->id, request); });
}

Post Endpoint::receive(std::uint64_t tag, std::uint64_t ignore, void* data, std::size_t size,
                       void* context) {
  const iovec all = vector_of(data, size);
  const ses::ReceiveRequest request{.tagged = true,
                                    .tag = tag,
                                    .ignore = ignore,
                                    .iov = {&all, 1},
                                    .context = context_of(context)};
  return impl_->post([&] { return impl_->fep->ses().receive(clock_now(), impl_->id, request); });
}

Post Endpoint::write(Peer to, Window window, std::uint64_t offset, const void* data,
                     std::size_t size, void* context) {
  const iovec all = vector_of(data, size);
  const ses::RmaRequest request{.peer = to,
                                .iov = {&all, 1},
                                .remote_offset = offset,
                                .key = window.key,
                                .context = context_of(context)};
  return impl_->post([&] { return impl_->fep->ses().rma(clock_now(), impl_->id, request); });
}

Post Endpoint::read(Peer from, Window window, std::uint64_t offset, void* data, std::size_t size,
                    void* context) {
  const iovec all = vector_of(data, size);
  const ses::RmaRequest request{.peer = from,
                                .read = true,
                                .iov = {&all, 1},
                                .remote_offset = offset,
                                .key = window.key,
                                .context = context_of(context)};
  return impl_->post([&] { return impl_->fep->ses().rma(clock_now(), impl_->id, request); });
}

const char* Endpoint::why_not() const {
  return impl_->refusal;
}

std::optional<Window> Endpoint::open_window(void* data, std::size_t size) {
  if (impl_->fork_guard.is_in_child()) return std::nullopt;
  const iovec all = vector_of(data, size);
  const auto key = impl_->fep->ses().register_memory(ses::MemoryRequest{
      .iov = {&all, 1}, .remote_read = true, .remote_write = true, .virtual_addressing = false});
  return key ? std::optional(Window{*key}) : std::nullopt;
}

void Endpoint::close_window(Window window) {
  if (impl_->fork_guard.is_in_child()) return;
  impl_->fep->ses().deregister_memory(window.key);
}

bool Endpoint::turn() {
  return impl_->turn(clock_now());
}

std::optional<Completion> Endpoint::poll() {
  if (impl_->fork_guard.is_in_child() || impl_->done.empty()) return std::nullopt;
  const Completion first = impl_->done.front();
  impl_->done.pop_front();
  return first;
}

std::optional<Completion> Endpoint::wait(int milliseconds) {
  const base::Instant end = clock_now() + base::Duration::from_ms(milliseconds);
  impl_->idle_poll.reset();
  while (!impl_->fork_guard.is_in_child()) {
    const bool busy = turn();
    if (auto completion = poll()) return completion;
    const base::Instant now = clock_now();
    if (now >= end) return std::nullopt;
    if (!busy) impl_->sleep(now, end);
  }
  return std::nullopt;
}

}  // namespace uet
