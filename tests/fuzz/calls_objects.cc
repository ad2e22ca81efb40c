/// Looking, opening and closing.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "lib/base/check.h"
#include "provider/provider.h"
#include "tests/fuzz/calls.h"
#include "tests/fuzz/virtual_host.h"

extern "C" fi_provider* fi_prov_ini(void);

namespace uet::fuzz {

namespace {

constexpr std::size_t kMemoryBytes = 16 * 1024;
constexpr std::array kAddresses = {"10.0.0.1", "10.0.0.2"};
// Bits of what chooses an endpoint, and a region.
constexpr std::uint8_t kDatagram = 32, kIdempotentRegion = 128;

struct InfoDeleter {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, InfoDeleter>;

Info make_hints() {
  Info hints(fi_allocinfo());
  hints->fabric_attr->prov_name = strdup("uet");
  hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  return hints;
}

Info get_info(const fi_info* hints, const char* node) {
  fi_info* info = nullptr;
  const int ret = provider::table().getinfo(FI_VERSION(1, 17), node, nullptr,
                                            FI_SOURCE | FI_NUMERICHOST, hints, &info);
  UET_CHECK(ret == 0 || ret == -FI_ENODATA || ret == -FI_ENOMEM);
  UET_CHECK((ret == 0) == (info != nullptr));
  return Info(info);
}

/// Small tables, so that they fill; no thread, so that each run of an input is the same.
void choose_settings(bool has_rendezvous) {
  VirtualHost::instance().settings = {
      {"port", "dpdk:net_one|dpdk:net_two"},
      {"addr", std::string(kAddresses[0]) + "|" + kAddresses[1]},
      {"progress", "manual"},
      {"tx_size", "8"},
      {"rx_size", "16"},
      {"overflow_msgs", "8"},
      {"overflow_bytes", "65536"},
      {"max_pdc", "16"},
      {"peer_timeout", "3s"},
      {"retry", "4"},
      {"mr_endpoint", "0"},
      {"rendezvous", has_rendezvous ? "1" : "0"},
  };
}

constexpr std::array kWaits = {FI_WAIT_NONE,   FI_WAIT_UNSPEC, FI_WAIT_YIELD,     FI_WAIT_FD,
                               FI_WAIT_POLLFD, FI_WAIT_SET,    FI_WAIT_MUTEX_COND};
/// What a provider without a thread of its own can offer.
bool is_offered(fi_wait_obj wait) {
  return wait == FI_WAIT_NONE || wait == FI_WAIT_UNSPEC || wait == FI_WAIT_YIELD;
}

}  // namespace

Calls::Calls(const Setup& setup) : has_rendezvous_(setup.has_rendezvous) {
  choose_settings(setup.has_rendezvous);
  static const fi_provider* const loaded = fi_prov_ini();
  UET_CHECK(loaded == &provider::table());
  VirtualHost::instance().reset(4793);
  VirtualHost::instance().while_asleep = [this] { turn_all(); };
  for (std::size_t k = 0; k < kKinds; ++k) {
    things_[k].resize(kSlots[k]);
    for (Thing& t : things_[k]) t.kind = static_cast<Kind>(k);
  }
  // Two endpoints that can talk: what most programs have, and a start for all others.
  fi_fabric_attr attr{};
  fid_fabric* fabric = nullptr;
  UET_CHECK(provider::table().fabric(&attr, &fabric, nullptr) == 0);
  opened(all(Kind::kFabric)[0], &fabric->fid, {});
  for (std::uint8_t i = 0; i < 2; ++i) {
    open_domain(i, false);
    Thing& domain = all(Kind::kDomain)[i];
    UET_CHECK(domain.f != nullptr);
    open_other(domain, Kind::kAv, 0);
    open_queue(domain, 3);
    start_endpoint(i, 0);
  }
  if (setup.has_datagrams) {
    for (std::uint8_t i = 0; i < 2; ++i) {
      start_endpoint(i, kDatagram);
      open_memory(all(Kind::kDomain)[i], kIdempotentRegion, FI_REMOTE_READ | FI_REMOTE_WRITE);
    }
  }
  const std::size_t endpoints = setup.has_datagrams ? 4 : 2;
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t peer = 0; peer < endpoints; ++peer) {
      Thing& av = all(Kind::kAv)[i];
      fi_addr_t out = FI_ADDR_NOTAVAIL;
      const auto& name = all(Kind::kEp)[peer].bytes;
      UET_CHECK(fi_av_insert(as<fid_av>(av), name.data(), 1, &out, 0, nullptr) == 1);
      av.addresses.push_back(out);
    }
  }
}

/// One that can talk, with the vector and the queue of its address.
void Calls::start_endpoint(std::size_t address, std::uint8_t how) {
  Thing& ep = *pick_free(Kind::kEp);
  open_endpoint(all(Kind::kDomain)[address], how);
  Thing &av = all(Kind::kAv)[address], &cq = all(Kind::kCq)[address];
  UET_CHECK(ep.f != nullptr && av.f != nullptr && cq.f != nullptr);
  UET_CHECK(fi_ep_bind(as<fid_ep>(ep), av.f, 0) == 0);
  UET_CHECK(fi_ep_bind(as<fid_ep>(ep), cq.f, FI_TRANSMIT | FI_RECV) == 0);
  use(ep, av);
  use(ep, cq);
  use(ep, cq);
  ep.tx_cq = ep.rx_cq = &cq;
  UET_CHECK(fi_enable(as<fid_ep>(ep)) == 0);
  enabled(ep);
}

Calls::~Calls() {
  VirtualHost::instance().while_asleep = nullptr;
}

Thing* Calls::pick(Kind kind, std::uint8_t choice) {
  auto& slots = all(kind);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    Thing& t = slots[(choice + i) % slots.size()];
    if (t.f != nullptr) return &t;
  }
  return nullptr;
}

Thing* Calls::pick_free(Kind kind) {
  for (Thing& t : all(kind))
    if (t.f == nullptr) return &t;
  return nullptr;
}

void Calls::use(Thing& user, Thing& used) {
  user.uses.push_back(&used);
  ++used.users;
}

void Calls::opened(Thing& t, fid* f, std::initializer_list<Thing*> uses) {
  const Kind kind = t.kind;
  t = Thing{};
  t.kind = kind;
  t.f = f;
  for (Thing* used : uses) use(t, *used);
}

// --- Opening --------------------------------------------------------------------------------------

void Calls::open(Choices& in) {
  const auto kind = static_cast<Kind>(in.u8() % kKinds);
  const std::uint8_t how = in.u8();
  if (pick_free(kind) == nullptr) return;
  Thing* const fabric = pick(Kind::kFabric, 0);
  if (kind == Kind::kFabric) {
    fi_fabric_attr attr{};
    fid_fabric* out = nullptr;
    UET_CHECK(provider::table().fabric(&attr, &out, nullptr) == 0);
    opened(*pick_free(kind), &out->fid, {});
    return;
  }
  if (fabric == nullptr) return;
  if (kind == Kind::kDomain) return open_domain(how % 2, (how & 2) != 0);
  if (kind == Kind::kEq) {
    fi_eq_attr attr{};
    attr.size = how & 3;
    attr.flags = (how & 4) != 0 ? FI_WRITE : 0;
    attr.wait_obj = kWaits[how / 8 % kWaits.size()];
    fid_eq* out = nullptr;
    if (fi_eq_open(as<fid_fabric>(*fabric), &attr, &out, nullptr) == 0)
      opened(*pick_free(kind), &out->fid, {fabric});
    return;
  }
  Thing* const domain = pick(Kind::kDomain, how);
  if (domain == nullptr) return;
  if (kind == Kind::kCq) return open_queue(*domain, how / 4);
  if (kind == Kind::kEp) return open_endpoint(*domain, how / 4);
  if (kind == Kind::kMr) return open_memory(*domain, in);
  open_other(*domain, kind, how / 4);
}

void Calls::open_domain(std::uint8_t address, bool is_odd) {
  const Info hints = make_hints();
  const Info info = get_info(hints.get(), kAddresses[address % kAddresses.size()]);
  UET_CHECK(info != nullptr);
  if (is_odd) info->domain_attr->data_progress = FI_PROGRESS_AUTO;
  Thing& fabric = all(Kind::kFabric)[0];
  fid_domain* out = nullptr;
  const int ret = fi_domain(as<fid_fabric>(fabric), info.get(), &out, nullptr);
  UET_CHECK(ret == (is_odd ? -FI_ENOSYS : 0));
  if (ret == 0) opened(*pick_free(Kind::kDomain), &out->fid, {&fabric});
}

void Calls::open_queue(Thing& domain, std::uint8_t how) {
  fi_cq_attr attr{};
  attr.size = how / 64;
  attr.format = static_cast<fi_cq_format>(1 + (how + 0u) % 4);
  attr.wait_obj = kWaits[how / 4 % kWaits.size()];
  attr.wait_cond = (how & 32) != 0 ? FI_CQ_COND_THRESHOLD : FI_CQ_COND_NONE;
  fid_cq* out = nullptr;
  const int ret = fi_cq_open(as<fid_domain>(domain), &attr, &out, nullptr);
  UET_CHECK((ret == 0) == is_offered(attr.wait_obj));
  if (ret != 0) return;
  Thing& cq = *pick_free(Kind::kCq);
  opened(cq, &out->fid, {&domain});
  cq.domain = &domain;
  cq.format = attr.format;
  cq.spins = attr.wait_obj == FI_WAIT_YIELD;
}

void Calls::open_endpoint(Thing& domain, std::uint8_t how) {
  const Info hints = make_hints();
  constexpr std::array<std::uint64_t, 4> kCaps = {0, FI_MSG | FI_MULTI_RECV,
                                                  FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE,
                                                  FI_RMA | FI_MSG | FI_TAGGED | FI_RMA_EVENT};
  const bool is_datagram = (how & kDatagram) != 0;
  hints->caps = kCaps[how % (is_datagram ? 2 : kCaps.size())];
  if (is_datagram) hints->ep_attr->type = FI_EP_DGRAM;
  if ((how & 4) != 0 && !is_datagram) hints->tx_attr->msg_order = FI_ORDER_SAS;
  if ((how & 8) != 0) hints->rx_attr->op_flags = FI_COMPLETION;
  const Info info = get_info(hints.get(), nullptr);
  if (info == nullptr) return;
  // Whichever address was asked for, the endpoint has that of its domain.
  std::free(std::exchange(info->src_addr, nullptr));
  info->src_addrlen = 0;
  if ((how & 16) != 0) info->tx_attr->size = 1;
  fid_ep* out = nullptr;
  if (fi_endpoint(as<fid_domain>(domain), info.get(), &out, nullptr) != 0) return;
  Thing& ep = *pick_free(Kind::kEp);
  opened(ep, &out->fid, {&domain});
  ep.domain = &domain;
  ep.is_datagram = is_datagram;
  ep.tx_flags = info->tx_attr->op_flags;
  ep.rx_flags = info->rx_attr->op_flags;
}

void Calls::open_memory(Thing& domain, Choices& in) {
  const std::uint8_t how = in.u8();
  const std::uint64_t access = (how & 4) != 0   ? std::uint64_t{FI_REMOTE_READ}
                               : (how & 8) != 0 ? std::uint64_t{in.u16()} << (how >> 4)
                                                : FI_REMOTE_READ | FI_REMOTE_WRITE;
  open_memory(domain, how, access);
}

void Calls::open_memory(Thing& domain, std::uint8_t how, std::uint64_t access) {
  Thing& mr = *pick_free(Kind::kMr);
  std::vector<std::uint8_t> memory(kMemoryBytes >> (how & 3));
  const std::size_t half = memory.size() / 2;
  const iovec parts[2] = {{memory.data(), half}, {memory.data() + half, memory.size() - half}};
  const bool is_idempotent = (how & kIdempotentRegion) != 0;
  fid_mr* out = nullptr;
  const int ret = fi_mr_regv(as<fid_domain>(domain), parts, (how & 16) != 0 ? 2 : 1, access,
                             how & 64, how, is_idempotent ? kIdempotent : 0, &out, nullptr);
  if (ret != 0) return;
  UET_CHECK(((fi_mr_key(out) & kIdempotentKey) != 0) == is_idempotent);
  opened(mr, &out->fid, {&domain});
  mr.domain = &domain;
  mr.bytes = std::move(memory);
}

void Calls::open_other(Thing& domain, Kind kind, std::uint8_t how) {
  if (kind == Kind::kAv) {
    fi_av_attr attr{};
    attr.type = static_cast<fi_av_type>(how % 4);
    attr.flags = (how & 4) != 0 ? FI_EVENT : 0;
    attr.rx_ctx_bits = (how & 8) != 0 ? how / 16 : 0;
    fid_av* out = nullptr;
    if (fi_av_open(as<fid_domain>(domain), &attr, &out, nullptr) == 0)
      opened(*pick_free(kind), &out->fid, {&domain});
    return;
  }
  if (kind == Kind::kCntr) {
    fi_cntr_attr attr{};
    attr.wait_obj = kWaits[how % kWaits.size()];
    fid_cntr* out = nullptr;
    const int ret = fi_cntr_open(as<fid_domain>(domain), &attr, &out, nullptr);
    UET_CHECK((ret == 0) == is_offered(attr.wait_obj));
    if (ret != 0) return;
    Thing& cntr = *pick_free(kind);
    opened(cntr, &out->fid, {&domain});
    cntr.spins = attr.wait_obj == FI_WAIT_YIELD;
    return;
  }
  fi_poll_attr attr{};
  fid_poll* out = nullptr;
  if (fi_poll_open(as<fid_domain>(domain), &attr, &out) == 0)
    opened(*pick_free(Kind::kSet), &out->fid, {});  // it uses its members alone
}

// --- Closing --------------------------------------------------------------------------------------

void Calls::close(Choices& in) {
  const auto kind = static_cast<Kind>(in.u8() % kKinds);
  if (Thing* t = pick(kind, in.u8())) close_one(*t);
}

void Calls::close_one(Thing& t) {
  const int ret = fi_close(t.f);
  UET_CHECK(ret == (t.users != 0 ? -FI_EBUSY : 0));
  if (ret != 0) return;
  for (Thing* used : t.uses) --used->users;
  if (t.kind == Kind::kEp) {
    drain_all();  // what was in the queues when it was closed
    for (auto& [context, op] : operations_) {
      if (op.ep != &t) continue;
      op.is_open = op.is_claimed = false;
      op.buffer.reset();
      op.ep = nullptr;
    }
  }
  const Kind kind = t.kind;
  t = Thing{};
  t.kind = kind;
}

/// The network is good from now on, and all queues are read: what was sent arrives, or fails. Last come receives that claimed a
/// message whose sender gave it up: they are told after a minute.
void Calls::settle() {
  VirtualHost& host = VirtualHost::instance();
  host.lost_in_256 = 0;
  struct Pace {
    int turns;
    base::Duration step;
  };
  constexpr std::array kPaces = {
      Pace{200, base::Duration::from_us(50)}, Pace{50, base::Duration::from_ms(2)},
      Pace{100, base::Duration::from_ms(50)}, Pace{50, base::Duration::from_ms(200)},
      Pace{60, base::Duration::from_seconds(2)}};
  for (const Pace& pace : kPaces) {
    for (int i = 0; i < pace.turns; ++i) {
      host.pass(pace.step);
      drain_all();
      turn_all();
    }
  }
  drain_all();
  for (const auto& [context, op] : operations_)
    UET_CHECK(!op.is_open || !op.tells_success || !op.must_end || op.ep->is_fenced);
}

void Calls::finish() {
  settle();
  // Each kind before those that it uses.
  for (const Kind kind : {Kind::kSet, Kind::kMr, Kind::kEp, Kind::kAv, Kind::kCq, Kind::kCntr,
                          Kind::kDomain, Kind::kEq, Kind::kFabric}) {
    for (Thing& t : all(kind)) {
      if (t.f == nullptr) continue;
      close_one(t);
      UET_CHECK(t.f == nullptr);
    }
  }
  UET_CHECK(VirtualHost::instance().open_ports() == 0);
}

// --- Looking --------------------------------------------------------------------------------------

/// fi_getinfo() with hints that no program gives.
void Calls::look(Choices& in) {
  const Info hints = make_hints();
  const std::uint8_t what = in.u8();
  if ((what & 1) != 0) hints->caps = std::uint64_t{in.u16()} << (in.u8() % 48);
  if ((what & 2) != 0) hints->mode = std::uint64_t{in.u16()} << (in.u8() % 48);
  if ((what & 4) != 0) hints->tx_attr->op_flags = std::uint64_t{in.u16()} << (in.u8() % 48);
  if ((what & 8) != 0) hints->rx_attr->msg_order = std::uint64_t{in.u16()} << (in.u8() % 48);
  if ((what & 16) != 0) hints->domain_attr->mr_mode = in.u16();
  if ((what & 32) != 0) hints->ep_attr->type = static_cast<fi_ep_type>(in.u8() % 8);
  if ((what & 64) != 0) hints->tx_attr->size = in.u16();
  if ((what & 128) != 0) hints->domain_attr->threading = static_cast<fi_threading>(in.u8() % 8);
  const Info info = get_info(hints.get(), (what & 3) == 3 ? kAddresses[1] : nullptr);
  if (info == nullptr) return;
  UET_CHECK(hints->caps == 0 || (hints->caps & ~info->caps) == 0);
  UET_CHECK(info->tx_attr->size >= hints->tx_attr->size);
}

}  // namespace uet::fuzz
