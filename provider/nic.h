/// The nic attributes of a fi_info.
#pragma once

#include <rdma/fabric.h>

#include "provider/port_picker.h"

namespace uet::provider {

/// Complete (all three sub-structures), on the C heap, freed by fi_close on its fid. Null without
/// memory.
fid_nic* make_nic(const PortChoice& choice);

}  // namespace uet::provider
