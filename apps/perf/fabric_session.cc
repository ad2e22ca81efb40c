#include "apps/perf/fabric_session.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <cstring>
#include <stdexcept>

namespace uet::perf {
namespace {

void check(int rc, const char* call) {
  if (rc != 0) FabricSession::fail(call, rc);
}

/// What each side tells the other about its memory.
struct MemoryInfo {
  std::uint64_t address;
  std::uint64_t key;
};

}  // namespace

void FabricSession::fail(const char* call, ssize_t rc) {
  throw std::runtime_error(std::string(call) + ": " + fi_strerror(static_cast<int>(-rc)));
}

FabricSession::FabricSession(ControlChannel& control, const std::string& provider, bool ordered,
                             std::size_t buffer_bytes)
    : buffer_(buffer_bytes) {
  std::unique_ptr<fi_info, InfoDeleter> hints(fi_allocinfo());
  if (!hints) throw std::runtime_error("fi_allocinfo: out of memory");
  hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->tx_attr->msg_order = ordered ? FI_ORDER_SAS : FI_ORDER_NONE;
  hints->rx_attr->msg_order = hints->tx_attr->msg_order;
  hints->fabric_attr->prov_name = strdup(provider.c_str());
  fi_info* found = nullptr;
  const int rc = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found);
  if (rc != 0)
    throw std::runtime_error("provider " + provider +
                             " offers no RDM endpoint with messages, tags and RMA (" +
                             fi_strerror(-rc) + "); is FI_PROVIDER_PATH set?");
  info_.reset(found);

  fid_fabric* fabric = nullptr;
  check(fi_fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  check(fi_domain(fabric, info_.get(), &domain, nullptr), "fi_domain");
  domain_.reset(domain);
  fi_cq_attr cq_attr{};
  cq_attr.format = FI_CQ_FORMAT_CONTEXT;
  cq_attr.size = 4096;
  fid_cq* cq = nullptr;
  check(fi_cq_open(domain, &cq_attr, &cq, nullptr), "fi_cq_open");
  cq_.reset(cq);
  fi_av_attr av_attr{};
  av_attr.type = FI_AV_MAP;
  fid_av* av = nullptr;
  check(fi_av_open(domain, &av_attr, &av, nullptr), "fi_av_open");
  av_.reset(av);
  fid_ep* ep = nullptr;
  check(fi_endpoint(domain, info_.get(), &ep, nullptr), "fi_endpoint");
  ep_.reset(ep);
  check(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind(av)");
  check(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind(cq)");
  check(fi_enable(ep), "fi_enable");

  const std::uint64_t access =
      FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  fid_mr* mr = nullptr;
  check(fi_mr_reg(domain, buffer_.data(), buffer_.size(), access, 0, 1, 0, &mr, nullptr),
        "fi_mr_reg");
  mr_.reset(mr);
  descriptor_ = fi_mr_desc(mr);

  std::vector<std::uint8_t> name(256);
  std::size_t length = name.size();
  check(fi_getname(&ep->fid, name.data(), &length), "fi_getname");
  name.resize(length);
  const std::vector<std::uint8_t> peer_name = control.exchange(name);
  if (fi_av_insert(av, peer_name.data(), 1, &peer_, 0, nullptr) != 1)
    throw std::runtime_error("fi_av_insert: the peer's address was refused");

  const bool virtual_addresses = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0 ||
                                 info_->domain_attr->mr_mode == FI_MR_BASIC;
  MemoryInfo mine{virtual_addresses ? reinterpret_cast<std::uint64_t>(buffer_.data()) : 0,
                  fi_mr_key(mr)};
  std::vector<std::uint8_t> blob(sizeof mine);
  std::memcpy(blob.data(), &mine, sizeof mine);
  blob = control.exchange(blob);
  if (blob.size() != sizeof mine)
    throw std::runtime_error("the two sides run different versions of uet-perf");
  std::memcpy(&mine, blob.data(), sizeof mine);
  remote_address_ = mine.address;
  remote_key_ = mine.key;
}

std::size_t FabricSession::poll() {
  fi_cq_entry entries[32];
  const ssize_t got = fi_cq_read(cq_.get(), entries, 32);
  if (got > 0) return static_cast<std::size_t>(got);
  if (got == -FI_EAGAIN) return 0;
  if (got == -FI_EAVAIL) {
    fi_cq_err_entry error{};
    if (fi_cq_readerr(cq_.get(), &error, 0) == 1)
      throw std::runtime_error(
          std::string("operation failed: ") + fi_strerror(error.err) + " (" +
          fi_cq_strerror(cq_.get(), error.prov_errno, error.err_data, nullptr, 0) + ")");
  }
  fail("fi_cq_read", got);
}

void FabricSession::wait_for(std::uint64_t& finished, std::uint64_t count) {
  while (finished < count) finished += poll();
}

}  // namespace uet::perf
