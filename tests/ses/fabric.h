/// Two or more Ses joined by a scripted carrier: exactly-once delivery, any order that the mode allows, nothing lost.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "lib/base/rng.h"
#include "ses/request_view.h"
#include "ses/responses.h"
#include "ses/ses.h"
#include "ses/ways.h"

namespace uet::ses::testing {

using base::Duration;
using base::Instant;

/// Packets in plain heap memory.
class HeapPool final : public net::PacketPool {
 public:
  explicit HeapPool(std::size_t count = 256);
  std::size_t capacity() const override { return buffers_.size(); }
  std::size_t available() const override { return free_.size() + cached_; }
  std::size_t max_packet_bytes() const override { return kBytes - kHeadroom; }

 protected:
  bool refill() override;
  void spill() override;

 private:
  static constexpr std::size_t kBytes = 10240;
  std::vector<net::PacketBuffer> buffers_;
  std::vector<std::uint8_t> memory_;
  std::vector<net::PacketBuffer*> free_;
};

/// Keeps what an endpoint reports.
class Recorder final : public CompletionSink {
 public:
  void on_completion(EndpointId, const Completion& completion) override {
    all.push_back(completion);
  }
  std::size_t count(OpKind kind) const;
  const Completion* find(std::uint64_t context) const;
  const Completion* find(OpKind kind) const;

  std::vector<Completion> all;
};

class Fabric;

/// One FEP: a Ses, and its side of the fabric.
class Node final : public Carrier {
 public:
  Node(Fabric& fabric, std::uint32_t number, const SesConfig& config, std::uint32_t payload_mtu);

  pds::SubmitResult submit(Instant now, const pds::TxMessage& message) override;
  pds::SubmitResult submit_return(Instant now, pds::RxHandle request,
                                  const pds::TxMessage& message) override;
  void unlock(Instant now, pds::PdcRef pdc) override;
  void abort(Instant now, pds::MessageToken token) override;
  std::uint32_t truncate(Instant now, pds::MessageToken token, std::uint32_t extra) override;
  void hurry(Instant, pds::MessageToken token) override { hurried.push_back(token); }

  std::vector<pds::MessageToken> hurried;
  Fabric& fabric;
  net::FabricAddress address;
  base::Rng rng;
  base::Trace trace;
  Ses ses;
  int locks = 0;
};

/// One direction of one PDC.
struct Channel {
  Node* from = nullptr;
  Node* to = nullptr;
  pds::Mode mode{};
  bool is_return = false;
  pds::PdcRef ref_at_from, ref_at_to;
  std::uint32_t next_psn = 1;
  struct Queued {
    pds::TxMessage message;
    std::uint32_t sent = 0;
  };
  std::deque<Queued> queue;
};

/// A packet on its way.
struct Flight {
  Channel* channel = nullptr;
  pds::MessageToken token = 0;
  std::uint32_t segment = 0;
  std::uint32_t psn = 0;
  std::uint8_t next_hdr = 0;
  std::vector<std::uint8_t> bytes;

  /// The decoded request; only for forward packets.
  RequestView view(std::uint32_t mtu) const;
};

/// An answer on its way back.
struct Reply {
  Channel* channel = nullptr;
  pds::MessageToken token = 0;
  std::uint32_t segment = 0;
  std::uint32_t psn = 0;
  std::uint8_t next_hdr = 0;
  bool guaranteed = false;
  std::vector<std::uint8_t> bytes;

  ResponseView view() const;
};

class Fabric {
 public:
  explicit Fabric(std::uint64_t seed = 1, std::uint32_t mtu = 1024) : payload_mtu(mtu), rng(seed) {}

  Node& add_node(const SesConfig& config = {});

  /// Cuts every queued packet.
  void cut_all();
  /// Cuts one packet of the oldest queued message of each channel; false when nothing was queued.
  bool cut_one_each();
  /// Delivers a packet, or an answer. False when there is none at that place.
  bool deliver(std::size_t flight);
  bool reply(std::size_t index);
  /// Everything in the order in which it was sent.
  void run();
  /// Cuts, delivers and answers in random order (ROD in order), until nothing moves.
  void run_randomly();
  void advance(Duration by);
  /// Turns deadlines until `until` or idle.
  void run_for(Duration time);

  void fail_message(Node& node, pds::MessageToken token, pds::PdsError error);
  /// The PDC that carried `flight` is lost at both ends.
  void lose_pdc(Channel& channel, pds::PdsError error);

  std::uint32_t payload_mtu;
  base::Rng rng;
  HeapPool pool;
  Instant now = Instant::from_ns(1'000'000);
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<Flight> flights;
  std::vector<Reply> replies;
  std::vector<Flight> sent_log;                    ///< every packet cut
  std::vector<Reply> reply_log;                    ///< every answer made
  std::size_t queue_limit = 1000;                  ///< messages per node before kAgain
  std::size_t return_limit = 1'000'000;            ///< the same for read data going back
  std::optional<net::FabricAddress> full_towards;  ///< kAgain for messages to this node
  std::optional<net::FabricAddress> deaf;          ///< takes messages and never answers
  struct Unheard {
    Node* from;
    pds::TxMessage message;
  };
  std::vector<Unheard> unheard;  ///< messages to it
  std::size_t refused = 0;
  double hide_replies = 0;  ///< share of unguaranteed answers that only a cumulative ACK stands for

 private:
  friend class Node;
  Channel& channel(Node& from, Node& to, pds::Mode mode, std::uint32_t context);
  Channel* find_channel_at(const Node& to, pds::PdcRef ref);
  void cut(Channel& channel);
  bool may_deliver(std::size_t index) const;
  void finish(const Flight& flight, const pds::SesResponse& response, bool guaranteed);
  bool has_queued() const;
  std::size_t queued_at(const Node& node) const;
  std::size_t returns_queued_at(const Node& node) const;

  std::map<std::tuple<Node*, Node*, pds::Mode, std::uint32_t>, std::unique_ptr<Channel>> channels_;
  std::map<Channel*, std::unique_ptr<Channel>> returns_;  ///< by forward channel
  std::uint32_t next_pdc_ = 1;
};

}  // namespace uet::ses::testing
