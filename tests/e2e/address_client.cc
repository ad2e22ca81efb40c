/// A program that libfabric has loaded the provider into, led by lines on its standard input; each is answered by one line.
///
///   look    fi_getinfo: the address that it proposes, or those of several devices with | between them
///   name A  the same of a source at address A
///   open    a domain and an endpoint of what was proposed first: the address it has, or the error
///   second  the same of what was proposed second
///   peer    behind open: the address of service 9228 of localhost as fi_getinfo's destination, and as an address vector takes it
///   turn    behind open: looks after the endpoint for ten seconds
///   fork    a child that does nothing: its process id
///   quit
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

namespace {

fi_info* info = nullptr;
fid_fabric* fabric = nullptr;
fid_domain* domain = nullptr;
fid_av* av = nullptr;
fid_cq* cq = nullptr;
fid_ep* ep = nullptr;

/// `source`: empty for one of the provider's choice.
std::string look(const std::string& source = {}) {
  fi_info* hints = fi_allocinfo();
  hints->fabric_attr->prov_name = strdup("uet");
  hints->ep_attr->type = FI_EP_RDM;
  const int ret = fi_getinfo(FI_VERSION(1, 15), source.empty() ? nullptr : source.c_str(), nullptr,
                             source.empty() ? 0 : FI_SOURCE, hints, &info);
  fi_freeinfo(hints);
  if (ret != 0) return fi_strerror(-ret);
  // The printed form of an address needs an AV, and that a domain: the fabric address is bytes 16 to 19 for IPv4.
  std::string all;
  for (const fi_info* i = info; i != nullptr; i = i->next) {
    const auto* bytes = static_cast<const unsigned char*>(i->src_addr);
    char text[32];
    std::snprintf(text, sizeof text, "%u.%u.%u.%u", bytes[16], bytes[17], bytes[18], bytes[19]);
    all += (all.empty() ? "" : "|") + std::string(text);
  }
  return all;
}

std::string text_of(const void* address) {
  char text[128];
  std::size_t length = sizeof text;
  fi_av_straddr(av, address, text, &length);
  return text;
}

/// `entry`: of what was proposed.
std::string open_all(fi_info* entry) {
  if (entry == nullptr) return "there is no such entry";
  fi_av_attr av_attr{};
  fi_cq_attr cq_attr{};
  int ret = fi_fabric(entry->fabric_attr, &fabric, nullptr);
  if (ret == 0) ret = fi_domain(fabric, entry, &domain, nullptr);
  if (ret == 0) ret = fi_av_open(domain, &av_attr, &av, nullptr);
  if (ret == 0) ret = fi_cq_open(domain, &cq_attr, &cq, nullptr);
  if (ret == 0) ret = fi_endpoint(domain, entry, &ep, nullptr);
  if (ret == 0) ret = fi_ep_bind(ep, &av->fid, 0);
  if (ret == 0) ret = fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV);
  if (ret == 0) ret = fi_enable(ep);
  if (ret != 0) return fi_strerror(-ret);
  unsigned char name[64];
  std::size_t length = sizeof name;
  if (fi_getname(&ep->fid, name, &length) != 0) return "fi_getname failed";
  return text_of(name);
}

std::string find_peer() {
  fi_info* found = nullptr;
  fi_addr_t entry = FI_ADDR_NOTAVAIL;
  unsigned char address[64];
  std::size_t length = sizeof address;
  const int ret = fi_getinfo(FI_VERSION(1, 15), "localhost", "9228", 0, info, &found);
  if (ret != 0) return fi_strerror(-ret);
  const std::string destination = text_of(found->dest_addr);
  fi_freeinfo(found);
  if (fi_av_insertsvc(av, "localhost", "9228", &entry, 0, nullptr) != 1)
    return "fi_av_insertsvc failed";
  if (fi_av_lookup(av, entry, address, &length) != 0) return "fi_av_lookup failed";
  return destination + " " + text_of(address);
}

std::string turn() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  fi_cq_entry entry;
  while (std::chrono::steady_clock::now() < end) (void)fi_cq_read(cq, &entry, 1);
  return "done";
}

std::string fork_child() {
  const pid_t child = fork();
  if (child == 0) {
    // Descriptors that are for this script, not for libfabric.
    close(0);
    close(1);
    for (;;) pause();
  }
  return std::to_string(child);
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    const std::string answer = line == "look"              ? look()
                               : line.starts_with("name ") ? look(line.substr(5))
                               : line == "open"            ? open_all(info)
                               : line == "second"          ? open_all(info->next)
                               : line == "peer"            ? find_peer()
                               : line == "turn"            ? turn()
                                                           : fork_child();
    std::cout << answer << std::endl;
  }
  return 0;
}
