#include "lib/ports/dpdk_plugin.h"

#include <dlfcn.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "lib/net/plugin_abi.h"
#include "lib/net/port_plugin.h"

namespace uet::ports {

namespace {

constexpr const char* kDpdkLibrary = "libuet-dpdk.so";

/// Where the build tree has it, as seen from the program or library that this code is part of; where the installation has it,
/// seen from the library and from the provider, which keeps a moved installation whole, then by its path; where the system looks.
std::vector<std::string> library_paths() {
  std::vector<std::string> out;
  std::error_code error;
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&library_paths), &self) != 0 && self.dli_fname != nullptr) {
    auto file = std::filesystem::canonical(self.dli_fname, error);
    // A program started through PATH is known by its bare name.
    if (error) file = std::filesystem::canonical("/proc/self/exe", error);
    if (!error) {
      const auto dir = file.parent_path();
      for (const char* relative :
           {".", "../lib/dpdk", "../../lib/dpdk", "../dpdk", "uet", "../uet"})
        out.push_back((dir / relative / kDpdkLibrary).lexically_normal().string());
    }
  }
  out.push_back(std::string(UET_PLUGIN_DIR "/") + kDpdkLibrary);
  std::erase_if(out, [](const std::string& path) { return !std::filesystem::exists(path); });
  out.emplace_back(kDpdkLibrary);
  return out;
}

}  // namespace

void* dpdk_symbol(const char* symbol, std::string& error) {
  std::string why;  // of the first library in the list: the others are guesses
  for (const std::string& path : library_paths()) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      if (const char* const said = dlerror(); why.empty()) why = said;
      continue;
    }
    const void* const abi = dlsym(library, net::kDpdkPluginAbi);
    void* const entry = dlsym(library, symbol);
    if (abi != nullptr && entry != nullptr &&
        std::strcmp(*static_cast<const char* const*>(abi), net::kPluginAbi) == 0)
      return entry;
    if (why.empty())
      why = path + " was built from other sources than this program: build both together";
  }
  error = "the dpdk port needs " + std::string(kDpdkLibrary) +
          " (build with -Ddpdk=enabled): " + (why.empty() ? "not found" : why);
  return nullptr;
}

}  // namespace uet::ports
