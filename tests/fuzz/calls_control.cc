/// Binding, enabling, addresses, and asking objects about themselves.
#include <rdma/fi_cm.h>

#include <algorithm>

#include "lib/base/check.h"
#include "tests/fuzz/calls.h"

namespace uet::fuzz {

namespace {

constexpr std::size_t kNameBytes = 32;

}  // namespace

void Calls::bind(Choices& in) {
  const std::uint8_t what = in.u8(), which = in.u8(), other = in.u8();
  if (what % 8 == 7) {  // a region to a counter or an endpoint, a vector or a domain to events
    Thing* const mr = pick(Kind::kMr, which);
    Thing* const cntr = pick(Kind::kCntr, other);
    Thing* const ep = pick(Kind::kEp, other);
    Thing* const eq = pick(Kind::kEq, other);
    Thing* const av = pick(Kind::kAv, which);
    Thing* const domain = pick(Kind::kDomain, which);
    if ((what & 8) != 0 && mr != nullptr && ep != nullptr) {
      if (fi_mr_bind(as<fid_mr>(*mr), ep->f, 0) == 0) use(*mr, *ep);
    } else if ((what & 16) != 0 && mr != nullptr && cntr != nullptr) {
      fi_mr_bind(as<fid_mr>(*mr), cntr->f, (what & 32) != 0 ? FI_REMOTE_WRITE : FI_REMOTE_READ);
    } else if ((what & 64) != 0 && av != nullptr && eq != nullptr) {
      if (fi_av_bind(as<fid_av>(*av), eq->f, 0) == 0) use(*av, *eq);
    } else if (domain != nullptr && eq != nullptr) {
      if (fi_domain_bind(as<fid_domain>(*domain), eq->f, (what & 32) != 0 ? FI_REG_MR : 0) == 0)
        use(*domain, *eq);
    }
    return;
  }
  if (what % 8 == 6) {  // members of a poll set
    Thing* const set = pick(Kind::kSet, which);
    Thing* const member = pick((what & 8) != 0 ? Kind::kCq : Kind::kCntr, other);
    if (set == nullptr || member == nullptr) return;
    const auto at = std::ranges::find(set->uses, member);
    if ((what & 16) == 0) {
      UET_CHECK(fi_poll_add(as<fid_poll>(*set), member->f, 0) == 0);
      if (at == set->uses.end()) use(*set, *member);
    } else {
      const int ret = fi_poll_del(as<fid_poll>(*set), member->f, 0);
      UET_CHECK(ret == (at == set->uses.end() ? -FI_EINVAL : 0));
      if (ret != 0) return;
      set->uses.erase(at);
      --member->users;
    }
    return;
  }
  Thing* const ep = pick(Kind::kEp, which);
  if (ep == nullptr) return;
  if (what % 8 < 2) {
    Thing* const av = pick(Kind::kAv, other);
    if (av != nullptr && fi_ep_bind(as<fid_ep>(*ep), av->f, 0) == 0) use(*ep, *av);
  } else if (what % 8 < 5) {
    Thing* const cq = pick(Kind::kCq, other);
    if (cq == nullptr) return;
    const bool tx = (what & 8) == 0, rx = (what & 16) == 0, selective = (what & 32) != 0;
    const std::uint64_t flags = (tx ? FI_TRANSMIT : 0) | (rx ? FI_RECV : 0) |
                                (selective ? FI_SELECTIVE_COMPLETION : 0) |
                                ((what & 0xc0) == 0xc0 ? FI_MORE : 0);
    if (fi_ep_bind(as<fid_ep>(*ep), cq->f, flags) != 0) return;
    if (tx) {
      use(*ep, *cq);
      ep->tx_cq = cq;
      ep->tx_selective = selective;
    }
    if (rx) {
      use(*ep, *cq);
      ep->rx_cq = cq;
      ep->rx_selective = selective;
    }
  } else if (Thing* const cntr = pick(Kind::kCntr, other)) {
    constexpr std::array<std::uint64_t, 8> kFlags = {
        FI_SEND,        FI_RECV,         FI_READ,           FI_WRITE,
        FI_REMOTE_READ, FI_REMOTE_WRITE, FI_SEND | FI_RECV, FI_TRANSMIT};
    const std::uint64_t flags = kFlags[what / 8 % kFlags.size()];
    if (fi_ep_bind(as<fid_ep>(*ep), cntr->f, flags) != 0) return;
    use(*ep, *cntr);
    if (flags == (FI_SEND | FI_RECV)) use(*ep, *cntr);
  }
}

void Calls::enable(Choices& in) {
  const std::uint8_t which = in.u8();
  if (which >= 192) {
    Thing* const mr = pick(Kind::kMr, which);
    if (mr != nullptr) fi_mr_enable(as<fid_mr>(*mr));
    return;
  }
  Thing* const ep = pick(Kind::kEp, which);
  if (ep == nullptr) return;
  const int ret = fi_enable(as<fid_ep>(*ep));
  UET_CHECK(!ep->is_enabled || ret == 0);
  if (ret != 0) return;
  enabled(*ep);
}

void Calls::enabled(Thing& ep) {
  ep.is_enabled = true;
  ep.bytes.resize(kNameBytes);
  std::size_t length = kNameBytes;
  UET_CHECK(fi_getname(ep.f, ep.bytes.data(), &length) == 0 && length == kNameBytes);
}

void Calls::insert(Choices& in) {
  const std::uint8_t what = in.u8();
  Thing* const av = pick(Kind::kAv, in.u8());
  if (av == nullptr) return;
  fid_av* const f = as<fid_av>(*av);
  if (what >= 208 && !av->addresses.empty()) {
    fi_addr_t old = av->addresses[what % av->addresses.size()];
    fi_av_remove(f, &old, 1, 0);  // a second time: refused
    return;
  }
  std::vector<std::uint8_t> names;
  const Thing* const ep = pick(Kind::kEp, what);
  if (ep != nullptr && !ep->bytes.empty()) names = ep->bytes;
  names.resize(kNameBytes * (1 + (what & 1)));
  if ((what & 6) == 6) {
    const Bytes odd = in.bytes(4);
    for (std::size_t i = 0; i + 1 < odd.size(); i += 2) names[odd[i] % names.size()] = odd[i + 1];
  }
  fi_addr_t out[2] = {FI_ADDR_NOTAVAIL, FI_ADDR_NOTAVAIL};
  const std::size_t count = names.size() / kNameBytes;
  const int ret = fi_av_insert(f, names.data(), count, out, 0, nullptr);
  UET_CHECK(ret <= static_cast<int>(count));
  for (const fi_addr_t address : out)
    if (address != FI_ADDR_NOTAVAIL && av->addresses.size() < 64) av->addresses.push_back(address);
}

void Calls::ask(Choices& in) {
  const std::uint8_t what = in.u8();
  const std::uint8_t which = in.u8();
  std::uint8_t bytes[128] = {};
  std::size_t length = in.u8() % (sizeof bytes + 1);
  switch (what % 4) {
    case 0:
      if (Thing* ep = pick(Kind::kEp, which)) ask_endpoint(*ep, in);
      return;
    case 1: {
      Thing* const av = pick(Kind::kAv, which);
      if (av == nullptr) return;
      const fi_addr_t address =
          av->addresses.empty() || (what & 4) != 0 ? in.u16() : av->addresses[0];
      fi_av_lookup(as<fid_av>(*av), address, bytes, &length);
      char text[64];
      std::size_t room = in.u8() % (sizeof text + 1);
      for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(b ^ in.u8());
      fi_av_straddr(as<fid_av>(*av), bytes, text, &room);
      return;
    }
    case 2: {
      Thing* const eq = pick(Kind::kEq, which);
      if (eq == nullptr) return;
      std::uint32_t event = 0;
      fi_eq_err_entry error{};
      if ((what & 4) != 0) fi_eq_write(as<fid_eq>(*eq), what, bytes, length, 0);
      if ((what & 8) != 0) fi_eq_readerr(as<fid_eq>(*eq), &error, 0);
      fi_eq_read(as<fid_eq>(*eq), &event, bytes, length, (what & 16) != 0 ? FI_PEEK : 0);
      return;
    }
    default: {
      const auto kind = static_cast<Kind>(which % kKinds);
      Thing* const t = pick(kind, what);
      if (t == nullptr || kind == Kind::kEp || kind == Kind::kMr) return;
      fi_control(t->f, in.u8(), bytes);
      return;
    }
  }
}

void Calls::ask_endpoint(Thing& ep, Choices& in) {
  fid_ep* const f = as<fid_ep>(ep);
  std::uint8_t bytes[64] = {};
  const std::uint8_t what = in.u8();
  std::size_t length = in.u8() % (sizeof bytes + 1);
  switch (what % 5) {
    case 0:
      fi_getopt(ep.f, FI_OPT_ENDPOINT - (what >= 240), what / 5 % 20, bytes, &length);
      return;
    case 1:
      bytes[0] = in.u8();
      bytes[1] = in.u8();
      fi_setopt(ep.f, FI_OPT_ENDPOINT - (what >= 240), what / 5 % 20, bytes, length);
      return;
    case 2:
      fi_getname(ep.f, bytes, &length);
      return;
    case 3: {
      const ssize_t tx = f->ops->tx_size_left(f), rx = f->ops->rx_size_left(f);
      UET_CHECK(ep.is_enabled ? tx >= 0 && rx >= 0
                              : tx == -FI_EOPBADSTATE && rx == -FI_EOPBADSTATE);
      return;
    }
    default: {
      constexpr std::array<std::uint64_t, 6> kFlags = {
          0, FI_COMPLETION, FI_INJECT, FI_DELIVERY_COMPLETE, FI_MULTI_RECV, FI_PEEK};
      const bool tx = (what & 64) != 0;
      const std::uint64_t wanted = kFlags[length % kFlags.size()];
      std::uint64_t flags = (tx ? FI_TRANSMIT : FI_RECV) | wanted;
      if (fi_control(ep.f, FI_SETOPSFLAG, &flags) == 0) (tx ? ep.tx_flags : ep.rx_flags) = wanted;
      return;
    }
  }
}

}  // namespace uet::fuzz
