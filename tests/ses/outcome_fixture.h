/// What becomes of operations of A.
#pragma once

#include "tests/ses/pair_test.h"

namespace uet::ses::testing {

struct OutcomeTest : PairTest {
  void send_with(Bytes& data, bool dc, bool fence, std::uint64_t context) {
    const iovec iov = piece(data);
    SendRequest r;
    r.peer = b_of_a;
    r.iov = {&iov, 1};
    r.delivery_complete = dc;
    r.fence = fence;
    r.context = context;
    ASSERT_TRUE(sa().send(fabric.now, ea, r));
  }
};

}  // namespace uet::ses::testing
