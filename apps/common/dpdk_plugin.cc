#include "apps/common/dpdk_plugin.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

namespace uet::apps {

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

}  // namespace

void* dpdk_symbol(const char* symbol, std::string& error) {
  for (const std::string& path : library_paths()) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      error = dlerror();
      continue;
    }
    if (void* entry = dlsym(library, symbol)) return entry;
    error = path + " is of another version than this program";
  }
  error =
      "a dpdk port needs " + std::string(kDpdkLibrary) + " (build with -Ddpdk=enabled): " + error;
  return nullptr;
}

}  // namespace uet::apps
