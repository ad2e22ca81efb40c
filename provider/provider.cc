/// The one symbol libfabric looks for, and the parameters.
#include "provider/provider.h"

#include <pthread.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <mutex>
#include <set>

#include "lib/base/version.h"
#include "lib/udp/descriptor.h"
#include "provider/errors.h"
#include "provider/fabric.h"
#include "provider/getinfo.h"
#include "provider/workers.h"

namespace uet::provider {
namespace {

/// 0: no domain was opened, so there is nothing that a child could not have.
std::atomic<pid_t> used_by{0};

/// What the user was told, by whatever thread. Never freed: cleanup() may still speak.
struct Told {
  std::mutex mutex;
  std::set<std::string> texts;
};
Told& told() {
  static auto* instance = new Told;
  return *instance;
}

/// fork() copies the process with all its locks as they are: those that a child needs are held
/// meanwhile. [FI 2.5.11]
void before_fork() {
  lock_ports();
  Workers::lock_all();
  told().mutex.lock();
}
void after_fork_in_parent() {
  told().mutex.unlock();
  Workers::unlock_all();
  unlock_ports();
}
void after_fork_in_child() {
  told().mutex.unlock();
  Workers::abandon_all_in_child();
  abandon_ports_in_child();
  unlock_ports();
}

/// Runs after the destructors of this library's globals: touches nothing that has one.
/// [FI 2.5.7]
void cleanup() {
  guarded([] {
    if (!is_forked_child()) Workers::stop_all();
    return 0;
  });
}

int getinfo(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
            const fi_info* hints, fi_info** info) {
  const int ret = guarded([&] { return get_info(version, node, service, flags, hints, info); });
  // Some applications treat anything else as fatal. [FI 2.5.13]
  return ret == 0 || ret == -FI_ENOMEM ? ret : -FI_ENODATA;
}

int fabric(fi_fabric_attr* attr, fid_fabric** out, void* context) {
  return guarded([&] { return open_fabric(attr, out, context); });
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

void define_parameters() {
  for (const fep::Setting& setting : fep::settings()) {
    fi_param_define(&table(), lower(setting.key).c_str(), FI_PARAM_STRING, "%s",
                    fep::describe(setting).c_str());
  }
}

}  // namespace

fi_provider& table() {
  static fi_provider provider = {
      .version = FI_VERSION(base::kVersionMajor, base::kVersionMinor),
      // libfabric passes over providers with a smaller version than the application asks for, and
      // lets it ask for its own at most. So this is the version of the libfabric that runs, also
      // above what our headers know: no structure that we fill changed incompatibly. [FI 2.2]
      .fi_version = std::max<std::uint32_t>(FI_VERSION(2, 0), ::fi_version()),
      .context = {},
      .name = "uet",
      .getinfo = getinfo,
      .fabric = fabric,
      .cleanup = cleanup,
  };
  return provider;
}

base::Result<fep::Settings, std::string> load_settings() {
  for (const std::string& name : fep::unknown_variables(environ))
    tell_user(fep::about_unknown_variable(name, "fi_info -e"));
  return fep::Settings::load([](std::string_view key) -> std::optional<std::string> {
    char* value = nullptr;
    if (fi_param_get_str(&table(), lower(key).c_str(), &value) != 0 || value == nullptr) {
      return std::nullopt;
    }
    return std::string(value);
  });
}

void log_warning(const std::string& text) {
  const base::WithoutCancellation without_cancellation;
  FI_WARN(&table(), FI_LOG_CORE, "%s\n", text.c_str());
}

void log_info(const std::string& text) {
  const base::WithoutCancellation without_cancellation;
  FI_INFO(&table(), FI_LOG_CORE, "%s\n", text.c_str());
}

void tell_user(const std::string& text) {
  {
    const std::lock_guard guard(told().mutex);
    if (!told().texts.insert(text).second) return;
  }
  const base::WithoutCancellation without_cancellation;
  std::fprintf(stderr, "uet: %s\n", text.c_str());
  log_warning(text);
}

bool is_forked_child() {
  const pid_t by = used_by;
  return by != 0 && by != getpid();
}

void note_use() {
  used_by = getpid();
}

}  // namespace uet::provider

extern "C" FI_EXT_INI {
  uet::provider::guarded([] {
    uet::provider::define_parameters();
    // Handlers that are registered later run earlier, and those below wait for threads that open sockets.
    uet::udp::let_children_go();
    // libfabric calls this again for each further path that leads to this library.
    static const int once =
        pthread_atfork(uet::provider::before_fork, uet::provider::after_fork_in_parent,
                       uet::provider::after_fork_in_child);
    return once;
  });
  return &uet::provider::table();
}
