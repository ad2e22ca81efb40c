/// What a test process of provider uet has open: one endpoint with an address vector and a queue. Opened in one go and never
/// closed: the process exits. What fails ends it with a message.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "apps/libfabric_endpoint.h"

namespace uet::e2e {

constexpr int kSkip = 77;

[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, what.c_str());
  std::exit(1);
}
inline void must(int ret, const char* what) {
  if (ret != 0) fail(std::string(what) + ": " + fi_strerror(-ret));
}

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

using Name = std::array<std::uint8_t, 32>;

struct Node {
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  fid_cq* cq = nullptr;
  fid_ep* ep = nullptr;

  explicit Node(std::uint64_t caps) {
    const libfabric::Info hints = libfabric::make_hints();
    hints->caps = caps;
    hints->ep_attr->type = FI_EP_RDM;
    hints->fabric_attr->prov_name = strdup("uet");
    hints->domain_attr->mr_mode = 0;
    const libfabric::Offer offer = libfabric::get_info(FI_VERSION(1, 15), *hints);
    if (offer.error == -FI_ENODATA) {
      std::printf("skipped: provider uet is not there\n");
      std::exit(kSkip);
    }
    must(offer.error, "fi_getinfo");
    try {
      libfabric::Endpoint objects(
          *offer.info,
          {.av_type = FI_AV_TABLE, .cq_format = FI_CQ_FORMAT_CONTEXT, .cq_size = 4096});
      // Left open, until the process exits.
      ep = objects.ep.release();
      av = objects.av.release();
      cq = objects.cq.release();
      domain = objects.domain.release();
      objects.fabric.release();
    } catch (const std::exception& e) {
      fail(e.what());
    }
  }

  Name name() const {
    Name out{};
    std::size_t length = out.size();
    must(fi_getname(&ep->fid, out.data(), &length), "fi_getname");
    return out;
  }
  fi_addr_t insert(const Name& peer) const {
    fi_addr_t out = FI_ADDR_UNSPEC;
    if (fi_av_insert(av, peer.data(), 1, &out, 0, nullptr) != 1) fail("fi_av_insert");
    return out;
  }
};

}  // namespace uet::e2e
