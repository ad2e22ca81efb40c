/// Endpoint: control side, and what all data transfer calls share.
#pragma once

#include <rdma/fi_endpoint.h>

#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <span>

#include "provider/amo_map.h"
#include "provider/av.h"
#include "provider/cntr.h"
#include "provider/cq.h"
#include "provider/left_work.h"
#include "provider/object.h"
#include "provider/offer.h"
#include "provider/size_limits.h"
#include "ses/ses.h"

struct fi_deferred_work;

namespace uet::provider {

class Domain;
class Endpoint;
class PostQueue;
class SharedReceive;
class SharedTransmit;
struct Offer;
struct TriggeredOp;

extern fi_ops_msg msg_ops, no_msg_ops;
extern fi_ops_tagged tagged_ops, no_tagged_ops;
extern fi_ops_rma rma_ops, no_rma_ops;
extern fi_ops_atomic atomic_ops, no_atomic_ops;
extern fi_ops_collective no_collective_ops;

inline std::size_t total_bytes(std::span<const iovec> iov) {
  std::size_t bytes = 0;
  for (const iovec& v : iov) bytes += v.iov_len;
  return bytes;
}

/// What a fid_ep of ours is: an endpoint, or an alias of one. They differ in the flags that operations have by default.
class EndpointFid : public fid_ep {
 public:
  static EndpointFid& of(fid_ep* f) { return *static_cast<EndpointFid*>(f); }
  static EndpointFid& of(fid_t f) { return of(reinterpret_cast<fid_ep*>(f)); }
  EndpointFid& operator=(const EndpointFid&) = delete;

  Endpoint& endpoint() const { return endpoint_; }
  /// Flags of fi_send and its like, and of fi_recv and its like.
  std::uint64_t tx_flags() const;
  std::uint64_t rx_flags() const;
  /// Of fi_trecv and its like: FI_MULTI_RECV reaches tagged receives of endpoints with FI_TAGGED_MULTI_RECV alone.
  std::uint64_t tagged_rx_flags() const;
  /// FI_GETOPSFLAG and FI_SETOPSFLAG: `flags` names the half, FI_TRANSMIT or FI_RECV. 0, or the error to answer.
  int get_ops_flags(std::uint64_t& flags) const;
  int set_ops_flags(std::uint64_t flags);

 protected:
  explicit EndpointFid(Endpoint& endpoint) : fid_ep{}, endpoint_(endpoint) {}
  EndpointFid(const EndpointFid& other)
      : fid_ep(other),
        endpoint_(other.endpoint_),
        tx_op_flags_(other.tx_op_flags_.load()),
        rx_op_flags_(other.rx_op_flags_.load()) {}
  /// Without a look at what is offered.
  void begin_with(std::uint64_t tx_op_flags, std::uint64_t rx_op_flags) {
    tx_op_flags_ = tx_op_flags;
    rx_op_flags_ = rx_op_flags;
  }

 private:
  Endpoint& endpoint_;
  std::atomic<std::uint64_t> tx_op_flags_{0}, rx_op_flags_{0};
};

class Endpoint final : public EndpointFid, private ses::CompletionSink, private LeftWork {
 public:
  static int open(Domain& domain, const fi_info& info, fid_ep** out, void* context);
  static Endpoint& of(fid_ep* f) { return EndpointFid::of(f).endpoint(); }
  static Endpoint& of(fid_t f) { return EndpointFid::of(f).endpoint(); }

  ses::EndpointId id() const { return id_; }
  Domain& domain() { return domain_; }
  Worker& worker() { return worker_; }
  Users& users() { return users_; }

  // --- Data transfer: flags are those of the call, or of the EndpointFid where the call has none
  // --------
  std::uint64_t caps() const { return caps_; }
  /// What every operation has besides, fi_sendmsg and fi_recvmsg and their like included.
  std::uint64_t tx_msg_flags() const { return tx_msg_flags_; }
  std::uint64_t rx_msg_flags() const { return rx_msg_flags_; }
  /// That operations may have by default.
  std::uint64_t possible_op_flags(bool is_transmit) const;

  struct Send {
    bool tagged = false;
    bool deferred = false;  ///< its context is a TriggeredOp
    std::uint64_t tag = 0;
    std::span<const iovec> iov;
    fi_addr_t destination = FI_ADDR_UNSPEC;
    std::uint64_t data = 0;
    std::uint64_t flags = 0;
    void* context = nullptr;
  };
  struct Rma {
    bool read = false;
    bool deferred = false;
    std::span<const iovec> iov;
    fi_addr_t peer = FI_ADDR_UNSPEC;
    std::uint64_t remote_address = 0;
    std::uint64_t key = 0;
    std::uint64_t data = 0;
    std::uint64_t flags = 0;
    void* context = nullptr;
  };
  /// Operator and type are libfabric's.
  struct Atomic {
    AtomicForm form{};
    bool deferred = false;
    int type = 0;
    int op = 0;
    std::span<const fi_ioc> operand, compare, result;
    fi_addr_t peer = FI_ADDR_UNSPEC;
    std::uint64_t remote_address = 0;
    std::uint64_t key = 0;
    std::uint64_t data = 0;
    std::uint64_t flags = 0;
    void* context = nullptr;
  };
  struct Receive {
    bool tagged = false;
    bool deferred = false;
    std::uint64_t tag = 0;
    std::uint64_t ignore = 0;
    std::span<const iovec> iov;
    fi_addr_t source = FI_ADDR_UNSPEC;
    std::uint64_t flags = 0;
    void* context = nullptr;
  };
  ssize_t post_send(const Send& op);
  ssize_t post_rma(const Rma& op);
  ssize_t post_atomic(const Atomic& op);
  ssize_t post_receive(const Receive& op);
  /// Of deferred work, which its counter starts.
  template <typename Op>
  int defer(const fi_deferred_work& work, const Op& op);
  /// A receive for the shared receive context that is `id` to SES.
  static ssize_t hand_over(Domain& domain, ses::EndpointId id, const Receive& op);

  // --- Control
  // ------------------------------------------------------------------------------------
  int bind(fid_t other, std::uint64_t flags);
  /// Called through `by`.
  int control(EndpointFid& by, int command, void* arg);
  int get_name(void* address, std::size_t* length);
  int get_option(int level, int name, void* value, std::size_t* length);
  int set_option(int level, int name, const void* value, std::size_t length);
  ssize_t cancel(void* context);
  ssize_t tx_size_left();
  ssize_t rx_size_left();
  int close();

  // --- With the lock held
  // ------------------------------------------------------------------------
  /// One of its operations is over, or a receive that it shares.
  void complete(const ses::Completion& c);
  /// Posts the first of `due`, whose counter has reached its threshold, and takes it out. False: there is no room for it now.
  bool start(std::list<TriggeredOp>& due);

  bool is_datagram() const { return type_ == FI_EP_DGRAM; }
  std::size_t payload_mtu() const;  ///< bytes of the elements that one atomic takes

  static constexpr std::size_t kIovLimit = 16;

 private:
  /// What a completion has to remember about its operation.
  enum UserFlag : std::uint8_t { kWantsEntry = 1, kIsInject = 2, kIsDeferred = 4 };
  static constexpr unsigned kDeviceShift = 3;  ///< above the flags: whose memory it is
  enum Counter { kSend, kRecv, kRead, kWrite, kRemoteRead, kRemoteWrite, kCounters };

  Endpoint(Domain& domain, const fi_info& info, const Offer& offer, void* context);
  ~Endpoint();

  void take_attributes(const fi_info& info, const Offer& offer);
  void take_sizes(const fi_info& info, const Offer& offer);
  int set_size(int name, const void* value, std::size_t length);
  bool take_auth_key(const fi_info& info);
  int bind_cq(fid_t other, std::uint64_t flags);
  int bind_counter(fid_t other, std::uint64_t flags);
  int bind_shared_transmit(fid_t other);
  int bind_shared_receive(fid_t other);
  void leave_shared();
  int enable();
  int open_below();
  ses::EndpointConfig config_below() const;
  void choose_ops();

  /// One buffer of an operation, and whose memory it is.
  struct Local {
    std::span<const iovec> iov;
    bool is_source = false;  ///< read, not written
    Devices::Place place;
  };
  DelayedPosts::Post describe_post(base::Instant now, fi_addr_t peer,
                                   std::span<const Local> buffers) const;
  /// With the lock held: fills `place`. 0, or the error to answer.
  static int locate(Domain& domain, std::span<Local> buffers);
  static std::uint8_t device_flag(std::span<const Local> buffers);
  /// Before a completion is passed on: what it brought is in its memory, or the completion becomes an error.
  bool settle_devices(const ses::Completion& c);

  // How an operation is posted: check() without the lock. Then post_now() with it; or, while another thread has the loop,
  // leave() for carry_out() by that thread.
  template <typename Op>
  ssize_t post(const Op& op);
  int check(const Send& op) const;
  int check(const Rma& op) const;
  int check(const Receive& op) const;
  int check(const Atomic& op) const;
  int check_transmit(SizeLimits::Kind kind, std::uint64_t flags, std::size_t bytes) const;
  template <typename Op>
  bool may_leave(const Op& op) const;
  bool carry_out() override;
  bool carry_out(PostQueue& left);
  /// Where `op`, or one of its kind, is left for the holder of the lock.
  template <typename Op>
  PostQueue& left_of(const Op& op) const;
  /// With the lock held: what was left before `op`, of its kind, is posted first. False: some of that has to wait, and `op` with it.
  template <typename Op>
  bool carry_out_before(const Op& op);
  template <typename Op>
  static CqEntry entry_of(const Op& op);
  template <typename Op>
  void fail(const Op& op, ssize_t error);
  /// Whose call it is: the application's own turns the loop for room and lets packets leave. One that was left, and answered, and
  /// one that waited for its counter do neither; the latter waits for room.
  enum class Turn { kOwn, kLeft, kTriggered };
  ssize_t post_now(const Send& op, Turn turn = Turn::kOwn);
  ssize_t post_now(const Rma& op, Turn turn = Turn::kOwn);
  ssize_t post_now(const Receive& op, Turn turn = Turn::kOwn);
  ssize_t post_now(const Atomic& op, Turn turn = Turn::kOwn);
  template <typename Op>
  bool is_over_when_copied(const Op& op, SizeLimits::Kind kind) const;
  template <typename Op>
  ssize_t post_copied(const Op& op, Turn turn);
  struct PreparedAtomic;
  int prepare(const Atomic& op, PreparedAtomic& out) const;
  ssize_t post_prepared(const Atomic& op, const PreparedAtomic& atomic, Turn turn);
  template <typename Op>
  ssize_t post_triggered(Op op);  ///< waits for a counter: triggered.cc
  void complete_deferred(const ses::Completion& c);
  void drop_triggered();
  bool cancel_triggered(base::Instant now, void* context);
  template <typename Post>
  ssize_t transmit(fi_addr_t peer, std::uint64_t flags, std::span<Local> buffers, Turn turn,
                   Post&& post);
  /// How many more transmits a call may begin, and how many fit beside those under way.
  std::size_t tx_room() const;
  std::size_t tx_places() const;
  bool counts_transmits() const {
    return counters_[kSend] != nullptr || counters_[kRead] != nullptr ||
           counters_[kWrite] != nullptr;
  }
  void hurry();
  void finish_injects();
  template <typename Op, typename Request>
  void describe(const Op& op, std::span<const Local> buffers, Request& request) const;
  static ssize_t give_receive(Domain& domain, ses::EndpointId id, const Receive& op,
                              ses::PeerId source, Turn turn);
  ssize_t post_peek(base::Instant now, const Receive& op, ses::PeerId source);
  static std::uint8_t entry_flag(std::uint64_t flags) {
    return (flags & FI_COMPLETION) != 0 ? kWantsEntry : 0;
  }
  void on_completion(ses::EndpointId endpoint, const ses::Completion& completion) override;
  static Counter counter_of(ses::OpKind kind);
  void transmit_is_over(const ses::Completion& c);
  void count(Counter which, bool success);
  void report(Cq& cq, const ses::Completion& c, std::uint64_t flags);

  Domain& domain_;
  Worker& worker_;
  ses::EndpointId id_ = 0;  ///< 0 until enabled
  bool tx_selective_ = false;
  bool rx_selective_ = false;
  bool directed_receive_ = false;
  bool reports_source_ = false;
  std::uint64_t tx_msg_flags_ = 0, rx_msg_flags_ = 0;
  std::size_t tx_size_ = 0;
  /// Changed with the worker's lock held.
  class Outstanding {
   public:
    operator std::size_t() const { return count_.load(std::memory_order_relaxed); }
    void operator++() { count_.store(*this + 1, std::memory_order_relaxed); }
    void operator--() { count_.store(*this - 1, std::memory_order_relaxed); }

   private:
    std::atomic<std::size_t> count_{0};
  };
  Outstanding tx_outstanding_;
  std::size_t injects_outstanding_ = 0;
  base::Instant injected_at_;            ///< the latest of them
  SharedTransmit* shared_tx_ = nullptr;  ///< bounds what is outstanding, in the place of tx_size_
  SharedReceive* shared_rx_ = nullptr;   ///< its receives are posted there
  Av* av_ = nullptr;
  Cq* tx_cq_ = nullptr;
  Cq* rx_cq_ = nullptr;
  std::array<Cntr*, kCounters> counters_{};
  std::unique_ptr<PostQueue> left_transmits_, left_receives_;  ///< there when enabled
  std::list<TriggeredOp> deferred_;  ///< deferred work that its counter has started

  // As asked for in fi_endpoint().
  fi_ep_type type_ = FI_EP_RDM;
  SizeLimits sizes_;
  std::uint64_t caps_ = 0;
  std::uint64_t msg_order_ = 0;
  std::uint32_t job_id_ = 0;
  std::optional<ses::Address> wanted_address_;
  bool shares_tx_ = false, shares_rx_ = false;
  std::size_t min_multi_recv_ = 64;
  Users users_;
  UserOf domain_use_;
};

inline std::uint64_t EndpointFid::tx_flags() const {
  return tx_op_flags_.load(std::memory_order_relaxed) | endpoint_.tx_msg_flags();
}
inline std::uint64_t EndpointFid::tagged_rx_flags() const {
  const bool may_be_buffers = (endpoint_.caps() & kTaggedMultiRecv) != 0;
  return may_be_buffers ? rx_flags() : rx_flags() & ~FI_MULTI_RECV;
}
inline std::uint64_t EndpointFid::rx_flags() const {
  return rx_op_flags_.load(std::memory_order_relaxed) | endpoint_.rx_msg_flags();
}

}  // namespace uet::provider
