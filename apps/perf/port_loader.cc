#include "apps/perf/port_loader.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

#include "lib/udp/udp_port.h"

namespace uet::perf {

namespace {

constexpr const char* kDpdkLibrary = "libuet-dpdk.so";

/// In the build tree, beside the installed program, and where the system looks.
std::vector<std::string> library_paths() {
  std::vector<std::string> out;
  std::error_code error;
  const auto self = std::filesystem::canonical("/proc/self/exe", error);
  if (!error) {
    const auto dir = self.parent_path();
    for (const char* relative :
         {"../lib/dpdk", "../../lib/dpdk", "../lib", "../lib/x86_64-linux-gnu"})
      out.push_back((dir / relative / kDpdkLibrary).lexically_normal().string());
  }
  std::erase_if(out, [](const std::string& path) { return !std::filesystem::exists(path); });
  out.emplace_back(kDpdkLibrary);
  return out;
}

net::OpenPortFunction load_dpdk(std::string& error) {
  for (const std::string& path : library_paths()) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      error = dlerror();
      continue;
    }
    if (void* entry = dlsym(library, net::kDpdkPluginEntry))
      return reinterpret_cast<net::OpenPortFunction>(entry);
    error = path + " is not the DPDK port of this program";
  }
  error =
      "a dpdk port needs " + std::string(kDpdkLibrary) + " (build with -Ddpdk=enabled): " + error;
  return nullptr;
}

}  // namespace

std::unique_ptr<net::Port> open_port(const net::PortRequest& request, base::Trace& trace,
                                     std::string& error) {
  net::OpenPortFunction open = nullptr;
  if (request.spec.starts_with("udp")) {
    open = udp::open_udp_port;
  } else if (request.spec.starts_with("dpdk:")) {
    open = load_dpdk(error);
  } else {
    error =
        "unknown port '" + request.spec + "'; write udp[:<interface or address>] or dpdk:<device>";
  }
  return open == nullptr ? nullptr : open(request, trace, error);
}

}  // namespace uet::perf
