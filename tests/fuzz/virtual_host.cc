#include "tests/fuzz/virtual_host.h"

#include <poll.h>
#include <rdma/providers/fi_prov.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/base/check.h"
#include "lib/net/heap_packet_pool.h"
#include "lib/ports/open_port.h"
#include "lib/ports/system_random.h"
#include "provider/address_lock.h"
#include "provider/clock.h"
#include "provider/live_view.h"

namespace uet::fuzz {

using base::Duration;
using base::Instant;

// --- Ports ----------------------------------------------------------------------------------------

class VirtualPort final : public net::Port {
 public:
  VirtualPort(const net::PortRequest& request) {
    facts_.name = request.spec;
    facts_.address = request.address;
    facts_.ip_mtu = 1500;
    facts_.link_rate = base::BitRate::from_gbps(25);
    pool_.let_borrow();
    VirtualHost::instance().join(*this);
  }
  ~VirtualPort() override {
    VirtualHost::instance().leave(*this);
    UET_CHECK(pool_.available() == pool_.capacity());  // every packet has come back
    close(fd_);
  }
  VirtualPort(const VirtualPort&) = delete;
  VirtualPort& operator=(const VirtualPort&) = delete;

  const net::PortFacts& facts() const override { return facts_; }
  net::PacketPool& pool() override { return pool_; }
  std::size_t receive(Instant, std::span<net::RxPacket> out) override {
    return VirtualHost::instance().deliver(*this, out);
  }
  std::size_t send(Instant, std::span<net::TxPacket> in) override {
    for (net::TxPacket& tx : in) {
      VirtualHost::instance().carry(facts_.address, tx);
      tx.packet.reset();
    }
    return in.size();
  }
  int wakeup_fd() const override { return fd_; }
  bool arm_wakeup() override { return !VirtualHost::instance().has_arrived(facts_.address); }

 private:
  static constexpr std::size_t kPackets = 512, kPacketBytes = 2048;
  net::PortFacts facts_;
  net::HeapPacketPool pool_{kPackets, kPacketBytes};
  const int fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);  ///< never written: sleeping is virtual
};

// --- Host -----------------------------------------------------------------------------------------

VirtualHost& VirtualHost::instance() {
  static auto* host = new VirtualHost;
  return *host;
}

void VirtualHost::reset(std::uint64_t seed) {
  UET_CHECK(ports_.empty());
  now_ = Instant::from_ns(1'000'000);
  rng_ = base::Rng(seed);
  lost_in_256 = 0;
  while_asleep = nullptr;
  flights_.clear();
}

Instant VirtualHost::look() {
  now_ = now_ + Duration::from_us(1);
  return now_;
}

void VirtualHost::sleep(Duration at_most) {
  const Instant end = now_ + std::max(at_most, Duration{});
  // What has arrived already waits for others, who may never look.
  const auto next = std::ranges::upper_bound(flights_, now_, {}, &Flight::arrives);
  now_ = next == flights_.end() ? end : std::min(end, next->arrives);
  if (is_asleep_ || while_asleep == nullptr) return;
  is_asleep_ = true;
  while_asleep();
  is_asleep_ = false;
}

void VirtualHost::join(VirtualPort& port) {
  UET_CHECK(ports_.try_emplace(port.facts().address, &port).second);
}

void VirtualHost::leave(VirtualPort& port) {
  ports_.erase(port.facts().address);
}

void VirtualHost::carry(net::FabricAddress from, net::TxPacket& tx) {
  if (rng_.below(256) < lost_in_256 || flights_.size() >= kInFlight) return;
  if (!ports_.contains(tx.destination)) return;
  const net::Packet& packet = tx.packet;
  Flight f{.arrives = now_ + Duration::from_us(5),
           .from = from,
           .to = tx.destination,
           .entropy = tx.entropy,
           .tos = tx.tos,
           .bytes = {}};
  for (const auto part : {packet.front(), packet.borrowed(), packet.back()})
    f.bytes.insert(f.bytes.end(), part.begin(), part.end());
  flights_.push_back(std::move(f));
}

bool VirtualHost::has_arrived(net::FabricAddress at) const {
  return std::ranges::any_of(flights_,
                             [&](const Flight& f) { return f.to == at && f.arrives <= now_; });
}

std::size_t VirtualHost::deliver(VirtualPort& port, std::span<net::RxPacket> out) {
  const net::FabricAddress own = port.facts().address;
  std::size_t n = 0;
  for (auto f = flights_.begin(); f != flights_.end() && n < out.size() && f->arrives <= now_;) {
    if (f->to != own) {
      ++f;
      continue;
    }
    if (net::Packet p = port.pool().allocate(); p) {
      std::ranges::copy(f->bytes, p.append(f->bytes.size()));
      out[n++] = {std::move(p), f->from, own, f->entropy, f->tos};
    }
    f = flights_.erase(f);
  }
  return n;
}

}  // namespace uet::fuzz

// --- In the place of files of the provider and the ports ------------------------------------------

namespace uet::ports {

base::Rng make_rng(std::uint64_t) {
  return base::Rng(4793);
}

std::uint32_t number_of_process(std::uint64_t) {
  return 4793;
}

}  // namespace uet::ports

namespace uet::provider {

base::Instant clock_now() {
  return fuzz::VirtualHost::instance().look();
}
/// The processor's ticks say nothing of this time.
bool SystemTime::has_steady_ticks() {
  return false;
}

AddressLock::AddressLock(AddressLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
AddressLock& AddressLock::operator=(AddressLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
AddressLock::~AddressLock() = default;
std::optional<AddressLock> AddressLock::acquire(net::FabricAddress, pid_t&) {
  return AddressLock(-1);
}
bool AddressLock::is_held(net::FabricAddress, pid_t&) {
  return false;
}
void AddressLock::abandon_in_child() {}

LiveView::Entry::~Entry() {
  (void)worker_;
}
std::unique_ptr<LiveView::Entry> LiveView::show(Worker& worker) {
  return std::make_unique<Entry>(worker);
}
void LiveView::stop() {}

}  // namespace uet::provider

namespace uet::ports {

std::unique_ptr<net::Port> open_port(const PortPlan& plan, base::Trace&, std::string&) {
  return std::make_unique<fuzz::VirtualPort>(plan.request);
}

}  // namespace uet::ports

extern "C" {

/// The linker sends calls of ppoll() here.
int __wrap_ppoll(pollfd* fds, nfds_t count, const timespec* limit, const sigset_t*) {
  for (nfds_t i = 0; i < count; ++i) fds[i].revents = 0;
  uet::fuzz::VirtualHost::instance().sleep(
      limit == nullptr
          ? uet::base::Duration::from_seconds(1)
          : uet::base::Duration::from_ns(limit->tv_sec * 1'000'000'000LL + limit->tv_nsec));
  return 0;
}

/// And of sched_yield(), which gives a busy machine's core away for nothing.
int __wrap_sched_yield() {
  return 0;
}

/// Settings are the test's, whatever the environment says.
__attribute__((visibility("default"))) int fi_param_define(const fi_provider*, const char*,
                                                           fi_param_type, const char*, ...) {
  return 0;
}
__attribute__((visibility("default"))) int fi_param_get(fi_provider*, const char* name,
                                                        void* value) {
  const auto& settings = uet::fuzz::VirtualHost::instance().settings;
  const auto at = settings.find(std::string_view(name));
  if (at == settings.end()) return -FI_ENODATA;
  *static_cast<const char**>(value) = at->second.c_str();
  return 0;
}

}  // extern "C"
