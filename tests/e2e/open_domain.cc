/// Opens a domain of provider uet and closes it again: what a program does first. Exit status 1 when that fails.
/// An argument is the job in the authorization key of the domain.

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

int failed(const char* what, int ret) {
  std::fprintf(stderr, "open_domain: %s: %s\n", what, fi_strerror(-ret));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  fi_info* hints = fi_allocinfo();
  hints->caps = FI_MSG;
  hints->ep_attr->type = FI_EP_RDM;
  hints->fabric_attr->prov_name = strdup("uet");
  fi_info* info = nullptr;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  if (const int ret = fi_getinfo(FI_VERSION(1, 15), nullptr, nullptr, 0, hints, &info); ret != 0)
    return failed("fi_getinfo", ret);
  if (const int ret = fi_fabric(info->fabric_attr, &fabric, nullptr); ret != 0)
    return failed("fi_fabric", ret);
  if (argc > 1) {
    const auto job = static_cast<std::uint32_t>(std::atoi(argv[1]));
    info->domain_attr->auth_key = static_cast<std::uint8_t*>(std::malloc(sizeof job));
    std::memcpy(info->domain_attr->auth_key, &job, sizeof job);
    info->domain_attr->auth_key_size = sizeof job;
  }
  if (const int ret = fi_domain(fabric, info, &domain, nullptr); ret != 0)
    return failed("fi_domain", ret);
  fi_close(&domain->fid);
  fi_close(&fabric->fid);
  fi_freeinfo(info);
  fi_freeinfo(hints);
  return 0;
}
