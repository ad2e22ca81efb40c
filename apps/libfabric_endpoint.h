/// One libfabric endpoint of any provider, with its address vector and its completion queue, as the tools and test programs open it.
/// What fails throws std::runtime_error, which names the call.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace uet::libfabric {

/// Closes any libfabric object.
struct FidDeleter {
  template <typename T>
  void operator()(T* object) const {
    fi_close(&object->fid);
  }
};
template <typename T>
using Fid = std::unique_ptr<T, FidDeleter>;

struct InfoDeleter {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, InfoDeleter>;

/// `ret` is what libfabric's `call` returned.
[[noreturn]] inline void fail(const char* call, ssize_t ret) {
  throw std::runtime_error(std::string(call) + ": " + fi_strerror(static_cast<int>(-ret)));
}
inline void check(ssize_t ret, const char* call) {
  if (ret != 0) fail(call, ret);
}

/// To be filled in.
inline Info make_hints() {
  Info hints(fi_allocinfo());
  if (!hints) throw std::runtime_error("fi_allocinfo: out of memory");
  return hints;
}
/// What is offered for `hints`, and what fi_getinfo() returned: nothing unless that is 0.
struct Offer {
  Info info;
  int error = 0;
};
inline Offer get_info(std::uint32_t version, const fi_info& hints) {
  fi_info* found = nullptr;
  const int ret = fi_getinfo(version, nullptr, nullptr, 0, &hints, &found);
  return Offer{Info(found), ret};
}

struct EndpointOptions {
  fi_av_type av_type = FI_AV_UNSPEC;
  fi_cq_format cq_format = FI_CQ_FORMAT_CONTEXT;
  std::size_t cq_size = 0;        ///< 0: the provider's choice
  bool sleeps_if_it_can = false;  ///< fi_cq_sread() is to be used where the provider has it
};

/// Calls `open`, whose last arguments are where the object goes and a context.
template <typename T, typename Open, typename... Arguments>
Fid<T> opened(const char* call, Open open, Arguments... arguments) {
  T* out = nullptr;
  check(open(arguments..., &out, nullptr), call);
  return Fid<T>(out);
}

/// Enabled when it is made. The members are for libfabric's calls; they are closed from the last to the first, as libfabric asks for.
struct Endpoint {
  Endpoint() = default;
  Endpoint(fi_info& info, const EndpointOptions& options)
      : fabric(opened<fid_fabric>("fi_fabric", fi_fabric, info.fabric_attr)),
        domain(opened<fid_domain>("fi_domain", fi_domain, fabric.get(), &info)) {
    open_queue(options);
    fi_av_attr av_attr{};
    av_attr.type = options.av_type;
    av = opened<fid_av>("fi_av_open", fi_av_open, domain.get(), &av_attr);
    ep = opened<fid_ep>("fi_endpoint", fi_endpoint, domain.get(), &info);
    check(fi_ep_bind(ep.get(), &av->fid, 0), "fi_ep_bind(av)");
    check(fi_ep_bind(ep.get(), &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind(cq)");
    check(fi_enable(ep.get()), "fi_enable");
  }

  /// Registers memory, which must stay until this is gone. Null: `error` is what fi_mr_reg() returned.
  fid_mr* add_memory(void* data, std::size_t size, std::uint64_t access, std::uint64_t key,
                     std::uint64_t flags, int& error) {
    fid_mr* mr = nullptr;
    error = fi_mr_reg(domain.get(), data, size, access, 0, key, flags, &mr, nullptr);
    if (error == 0) memories.emplace_back(mr);
    return mr;
  }
  /// What peers insert into their address vectors.
  std::vector<std::uint8_t> name() const {
    std::vector<std::uint8_t> bytes(256);
    std::size_t length = bytes.size();
    check(fi_getname(&ep->fid, bytes.data(), &length), "fi_getname");
    bytes.resize(length);
    return bytes;
  }

  Fid<fid_fabric> fabric;
  Fid<fid_domain> domain;
  Fid<fid_cq> cq;
  Fid<fid_av> av;
  std::vector<Fid<fid_mr>> memories;
  Fid<fid_ep> ep;
  bool can_sleep = false;  ///< `cq` has fi_cq_sread()

 private:
  void open_queue(const EndpointOptions& options) {
    fi_cq_attr attr{};
    attr.format = options.cq_format;
    attr.size = options.cq_size;
    attr.wait_obj = options.sleeps_if_it_can ? FI_WAIT_UNSPEC : FI_WAIT_NONE;
    fid_cq* out = nullptr;
    int ret = fi_cq_open(domain.get(), &attr, &out, nullptr);
    can_sleep = ret == 0 && options.sleeps_if_it_can;
    if (ret != 0 && options.sleeps_if_it_can) {
      attr.wait_obj = FI_WAIT_NONE;
      ret = fi_cq_open(domain.get(), &attr, &out, nullptr);
    }
    check(ret, "fi_cq_open");
    cq.reset(out);
  }
};

/// What peers add to offsets into memory at `data`.
inline std::uint64_t base_of(const fi_info& info, const void* data) {
  const auto mode = info.domain_attr->mr_mode;
  const bool is_virtual = (mode & FI_MR_VIRT_ADDR) != 0 || mode == FI_MR_BASIC;
  return is_virtual ? reinterpret_cast<std::uintptr_t>(data) : 0;
}

}  // namespace uet::libfabric
