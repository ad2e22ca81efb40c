/// What all of the provider shares: libfabric's table of it, its settings, its messages to the user.
#pragma once

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

#include <string>

#include "fep/settings/settings.h"
#include "lib/base/result.h"

namespace uet::provider {

/// The table that fi_prov_ini() returned.
fi_provider& table();

/// FI_UET_* (and the file FI_UET_CONFIG names) as they are now, or a sentence that says what is
/// wrong with them.
base::Result<fep::Settings, std::string> load_settings();

/// To libfabric's log (FI_LOG_LEVEL=warn shows it).
void log_warning(const std::string& text);
void log_info(const std::string& text);

/// Something only the user can put right: to stderr, each text once, and to libfabric's log.
void tell_user(const std::string& text);

/// True in a child made by fork() after its parent opened a domain, or tried to: the worker's thread, the address lock and
/// what DPDK has begun belong to the parent. [FI 2.5.11]
bool is_forked_child();
/// A domain is being opened.
void note_use();

}  // namespace uet::provider
