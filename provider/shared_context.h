/// Contexts that several endpoints share: of transmission, a bound on what they have under way together; of reception, receives that messages to
/// any of them take.
#pragma once

#include <rdma/fi_endpoint.h>

#include <vector>

#include "provider/endpoint.h"
#include "provider/object.h"
#include "ses/ses.h"

namespace uet::provider {

class Domain;
class Worker;

/// How many of a kind fi_getinfo offers for an endpoint to share; the number that can be open is bounded by memory alone for
/// transmission, and by SES as that of endpoints is for reception.
inline constexpr std::size_t kSharedContexts = 1024;

/// May be closed before its endpoints, which it goes on to bound: Sandia OpenSHMEM does so.
class SharedTransmit final : public fid_stx {
 public:
  static int open(Domain& domain, const fi_tx_attr* attr, fid_stx** out, void* context);
  static SharedTransmit& of(fid_t f) {
    return *static_cast<SharedTransmit*>(reinterpret_cast<fid_stx*>(f));
  }

  Worker& worker() { return worker_; }

  // --- With the worker's lock held
  // ----------------------------------------------------------------
  void join() { ++endpoints_; }
  /// The last endpoint of a context that was closed takes it along.
  void leave() {
    if (--endpoints_ == 0 && is_closed_) delete this;
  }
  bool has_room() const { return outstanding_ < size_; }
  std::size_t room() const { return has_room() ? size_ - outstanding_ : 0; }
  void add(std::size_t operations) { outstanding_ += operations; }
  void remove(std::size_t operations) { outstanding_ -= operations; }

  int close();

 private:
  SharedTransmit(Domain& domain, std::size_t size, void* context);
  ~SharedTransmit() = default;

  Domain& domain_;
  Worker& worker_;
  const std::size_t size_;
  std::size_t outstanding_ = 0;  ///< of all endpoints
  std::size_t endpoints_ = 0;
  bool is_closed_ = false;
  UserOf domain_use_;
};

/// Receives are posted here. What a message brings is reported by the endpoint that it came to; the end of a receive that no message
/// took by the endpoint that has been bound longest, and by none while there is none.
class SharedReceive final : public fid_ep, private ses::CompletionSink {
 public:
  static int open(Domain& domain, const fi_rx_attr* attr, fid_ep** out, void* context);
  static SharedReceive& of(fid_ep* f) { return *static_cast<SharedReceive*>(f); }
  static SharedReceive& of(fid_t f) { return of(reinterpret_cast<fid_ep*>(f)); }

  Domain& domain() { return domain_; }
  ses::EndpointId id() const { return id_; }
  Users& users() { return users_; }
  /// Of fi_recv and its like. Whether calls without FI_COMPLETION have an entry is said by the endpoint that the message comes to.
  std::uint64_t flags() const { return op_flags_; }

  ssize_t post(Endpoint::Receive op);
  ssize_t cancel(void* context);
  ssize_t size_left();
  int get_option(int level, int name, void* value, std::size_t* length);
  int set_option(int level, int name, const void* value, std::size_t length);
  int close();

  // --- With the worker's lock held
  // ----------------------------------------------------------------
  void join(Endpoint& endpoint) { members_.push_back(&endpoint); }
  void leave(Endpoint& endpoint) { std::erase(members_, &endpoint); }

 private:
  SharedReceive(Domain& domain, const fi_rx_attr* attr, void* context);
  ~SharedReceive() = default;
  void on_completion(ses::EndpointId id, const ses::Completion& completion) override;

  Domain& domain_;
  ses::EndpointId id_ = 0;
  std::uint64_t op_flags_ = 0;
  bool directed_ = false;
  std::size_t min_multi_recv_;
  std::vector<Endpoint*> members_;
  Users users_;
  UserOf domain_use_;
};

}  // namespace uet::provider
