// The one place where SES meets a real Pds.
#include "pds/pds.h"
#include "ses/ses_impl.h"

namespace uet::ses {
namespace {

/// Hands every call to a Pds.
class PdsCarrier final : public Carrier {
 public:
  explicit PdsCarrier(pds::Pds& pds) : pds_(pds) {}

  pds::SubmitResult submit(Instant now, const pds::TxMessage& message) override {
    return pds_.submit(now, message);
  }
  pds::SubmitResult submit_return(Instant now, pds::RxHandle request,
                                  const pds::TxMessage& message) override {
    return pds_.submit_return(now, request, message);
  }
  void unlock(Instant now, pds::PdcRef pdc) override { pds_.unlock(now, pdc); }
  void abort(Instant now, pds::MessageToken token) override { pds_.abort(now, token); }
  std::uint32_t truncate(Instant now, pds::MessageToken token,
                         std::uint32_t extra_segments) override {
    return pds_.truncate(now, token, extra_segments);
  }

 private:
  pds::Pds& pds_;
};

}  // namespace

void Ses::attach(pds::Pds& pds) {
  impl_->own_carrier = std::make_unique<PdsCarrier>(pds);
  impl_->core.carrier = impl_->own_carrier.get();
}

}  // namespace uet::ses
