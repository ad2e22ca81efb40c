/// What a test process of provider uet has open: one endpoint with an address vector and a queue. Opened in one go and never
/// closed: the process exits. What fails ends it with a message.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

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
  fi_info* info = nullptr;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  fid_cq* cq = nullptr;
  fid_ep* ep = nullptr;

  explicit Node(std::uint64_t caps) {
    fi_info* hints = fi_allocinfo();
    hints->caps = caps;
    hints->ep_attr->type = FI_EP_RDM;
    hints->fabric_attr->prov_name = strdup("uet");
    hints->domain_attr->mr_mode = 0;
    const int found = fi_getinfo(FI_VERSION(1, 15), nullptr, nullptr, 0, hints, &info);
    if (found == -FI_ENODATA) {
      std::printf("skipped: provider uet is not there\n");
      std::exit(kSkip);
    }
    must(found, "fi_getinfo");
    must(fi_fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
    must(fi_domain(fabric, info, &domain, nullptr), "fi_domain");
    fi_av_attr av_attr{};
    av_attr.type = FI_AV_TABLE;
    must(fi_av_open(domain, &av_attr, &av, nullptr), "fi_av_open");
    fi_cq_attr cq_attr{};
    cq_attr.format = FI_CQ_FORMAT_CONTEXT;
    cq_attr.size = 4096;
    must(fi_cq_open(domain, &cq_attr, &cq, nullptr), "fi_cq_open");
    must(fi_endpoint(domain, info, &ep, nullptr), "fi_endpoint");
    must(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind av");
    must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind cq");
    must(fi_enable(ep), "fi_enable");
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
