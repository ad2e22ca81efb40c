#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>

#include "lib/net/capture_port.h"
#include "lib/net/impair_port.h"
#include "lib/net/port_plugin.h"
#include "lib/udp/udp_port.h"
#include "provider/clock.h"
#include "provider/port_picker.h"
#include "provider/provider.h"

namespace uet::provider {
namespace {

constexpr const char* kDpdkLibrary = "libuet-dpdk.so";

/// Beside this library, where the build tree has it, and where the system looks.
std::vector<std::string> dpdk_library_paths() {
  std::vector<std::string> out;
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&open_port), &self) != 0 && self.dli_fname != nullptr) {
    std::error_code error;
    const auto file = std::filesystem::canonical(self.dli_fname, error);
    if (!error) {
      const auto dir = file.parent_path();
      out.push_back((dir / kDpdkLibrary).string());
      out.push_back((dir / ".." / "lib" / "dpdk" / kDpdkLibrary).lexically_normal().string());
      // Installed: the plug-in for libfabric lies one folder below the libraries.
      out.push_back((dir / ".." / kDpdkLibrary).lexically_normal().string());
    }
  }
  out.push_back(kDpdkLibrary);
  return out;
}

/// Loaded at the first use and never unloaded: DPDK cannot be started twice. [libfabric 2.5-12]
net::OpenPortFunction load_dpdk(std::string& error) {
  static net::OpenPortFunction entry = nullptr;
  if (entry != nullptr) return entry;
  for (const std::string& path : dpdk_library_paths()) {
    const bool is_file = path.find('/') != std::string::npos;
    if (is_file && !std::filesystem::exists(path)) continue;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      error = dlerror();
      continue;
    }
    entry = reinterpret_cast<net::OpenPortFunction>(dlsym(library, net::kDpdkPluginEntry));
    if (entry != nullptr) return entry;
    error = path + " is not the DPDK port of this provider";
  }
  error = "the dpdk port needs " + std::string(kDpdkLibrary) +
          " (build with -Ddpdk=enabled): " + (error.empty() ? "not found" : error);
  return nullptr;
}

/// The time of day at the origin of clock_now(), ns since 1970.
std::int64_t unix_ns_at_clock_zero() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec - clock_now().ns();
}

/// FI_UET_PCAP: outside of the impairment, so that the capture shows what the endpoint saw.
std::unique_ptr<net::Port> capture(std::unique_ptr<net::Port> port, std::string path,
                                   base::Trace& trace, std::string& error) {
  if (const auto at = path.find("%p"); at != std::string::npos)
    path.replace(at, 2, std::to_string(getpid()));
  auto file = net::CaptureFile::open({.path = path, .interface_name = port->facts().name}, error);
  if (file == nullptr) {
    error = "FI_UET_PCAP: " + error;
    return nullptr;
  }
  return std::make_unique<net::CapturePort>(std::move(port), std::move(file),
                                            unix_ns_at_clock_zero(), trace);
}

}  // namespace

std::unique_ptr<net::Port> open_port(const fep::Settings& settings, const PortChoice& choice,
                                     base::Trace& trace, std::string& error) {
  net::PortRequest request = settings.port_request(choice.spec, choice.address);
  if (request.mtu == 0) request.mtu = choice.mtu;
  net::OpenPortFunction open = udp::open_udp_port;
  if (choice.spec.starts_with("dpdk:")) open = load_dpdk(error);
  if (open == nullptr) return nullptr;
  auto port = open(request, trace, error);
  if (port != nullptr) port = net::impair(std::move(port), settings.impair, trace, error);
  if (port != nullptr && !settings.pcap.empty())
    port = capture(std::move(port), settings.pcap, trace, error);
  return port;
}

}  // namespace uet::provider
