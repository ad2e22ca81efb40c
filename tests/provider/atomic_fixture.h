/// Two endpoints, and memory at B that A changes.
#pragma once

#include <rdma/fi_atomic.h>

#include <cstring>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {

class AtomicPair : public PairTest {
 protected:
  void open_with_memory(const std::function<void(fi_info&)>& adjust = [](fi_info&) {}) {
    const Info hints = make_hints();
    hints->domain_attr->mr_mode = 0;
    adjust(*hints);
    open(hints.get());
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_EQ(fi_mr_reg(b.domain, memory, sizeof memory, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey,
                        0, &mr, nullptr),
              0);
  }
  ~AtomicPair() override {
    if (mr != nullptr) {
      EXPECT_EQ(fi_close(&mr->fid), 0);
    }
  }

  /// The sum of a uint64 from A to B, in the form that takes all there is.
  fi_msg_atomic sum_message(const fi_ioc& operand, const fi_rma_ioc& remote) const {
    fi_msg_atomic m{};
    m.msg_iov = &operand;
    m.iov_count = 1;
    m.addr = to_b;
    m.rma_iov = &remote;
    m.rma_iov_count = 1;
    m.datatype = FI_UINT64;
    m.op = FI_SUM;
    return m;
  }

  static constexpr std::uint64_t kKey = 42;
  alignas(64) std::uint8_t memory[16384] = {};
  fid_mr* mr = nullptr;
};

}  // namespace uet::provider::testing
