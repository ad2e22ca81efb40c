/// Two endpoints on loopback addresses.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "uet/endpoint.h"

namespace uet::test {

class EndpointTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string error;
    for (auto* side : {&a_, &b_}) {
      const std::string address = side == &a_ ? "127.0.77.1" : "127.0.77.2";
      *side = Endpoint::open({{"port", "udp"}, {"addr", address}}, error);
      ASSERT_NE(*side, nullptr) << error;
    }
    const auto b_at_a = a_->add_peer(b_->address());
    ASSERT_TRUE(b_at_a.has_value());
    b_at_a_ = *b_at_a;
  }
  /// Turns both until `side` has a completion; fails the test after some seconds.
  Completion finish(Endpoint& side) {
    for (int i = 0; i < 5000; ++i) {
      a_->turn();
      b_->turn();
      if (const auto done = side.poll()) return *done;
      if (const auto done = side.wait(std::chrono::milliseconds(1))) return *done;
    }
    ADD_FAILURE() << "no completion";
    return {};
  }

  std::unique_ptr<Endpoint> a_, b_;
  Peer b_at_a_;
};

}  // namespace uet::test
