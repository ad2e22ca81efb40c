/// What goes wrong below, in libfabric's words.
#pragma once

#include <new>

#include <rdma/fi_errno.h>

#include "provider/provider.h"
#include "ses/ses.h"

namespace uet::provider {

/// The err of a completion that ended with `code`. [SES 12]
int fi_error_of(ses::ReturnCode code);
/// Text for fi_cq_strerror; `prov_errno` is the return code as a number.
const char* describe_return_code(int prov_errno);
/// Negative fi_errno for an operation that was refused.
int fi_error_of(ses::PostError error);

/// Nothing thrown may reach a C caller: runs `body` and turns an exception into a negative error.
template <typename Body>
auto guarded(Body&& body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
  } catch (const std::exception& e) {
    log_warning(std::string("internal error: ") + e.what());
    return -FI_EOTHER;
  } catch (...) {
    return -FI_EOTHER;
  }
}

}  // namespace uet::provider
