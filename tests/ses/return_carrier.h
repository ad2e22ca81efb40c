/// A carrier for tests of read data on its way back.
#pragma once

#include <set>
#include <vector>

#include "pds/pds.h"

namespace uet::ses::testing {

/// A carrier that only takes read data, and as much of it as the test says.
class ReturnCarrier final : public pds::Carrier {
 public:
  pds::SubmitResult submit(base::Instant, const pds::TxMessage&) override {
    return pds::SubmitResult::kQueued;
  }
  pds::SubmitResult submit_return(base::Instant, pds::RxHandle request,
                                  const pds::TxMessage& message) override {
    ++asked;
    if (gone.contains(request.pdc.value) || request.return_direction)
      return pds::SubmitResult::kNever;
    if (taken.size() >= room) return pds::SubmitResult::kAgain;
    taken.push_back({message.token, request.pdc.value});
    return pds::SubmitResult::kQueued;
  }
  void unlock(base::Instant, pds::PdcRef) override {}
  void abort(base::Instant, pds::MessageToken) override {}
  std::uint32_t truncate(base::Instant, pds::MessageToken, std::uint32_t) override { return 0; }

  struct Taken {
    pds::MessageToken token;
    std::uint32_t pdc;
  };
  std::vector<Taken> taken;
  std::set<std::uint32_t> gone;
  std::size_t room = 1'000'000;
  std::size_t asked = 0;
};

}  // namespace uet::ses::testing
