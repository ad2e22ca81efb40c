/// Sends of which the target fetches the rest. [SES 9, decision 142]
///
/// Both halves of SES take part on each side, so this is what one asks of the other: the target's Receiver has READs issued by its
/// Transmitter, and the initiator's Receiver, which serves them, tells its Transmitter what of a message has been read.
#pragma once

#include <algorithm>

#include "ses/match_list.h"

namespace uet::ses {

struct Endpoint;
struct RequestView;
struct Sender;
struct UnexpectedMessage;

/// Bit of Address::fep_cap, above those that the specification names: it fetches what a rendezvous leaves out, and reports the
/// end to initiators that ask.
inline constexpr std::uint16_t kFetchesRendezvous = 0x4000;

/// What the target keeps of a rendezvous beside its header and the part that came with it.
struct RestOfMessage {
  std::uint32_t eager = 0;  ///< bytes that come with the message
  // Where the others are, at its source.
  bool relative = true;
  std::uint8_t ri_generation = 0;
  std::uint16_t pid_on_fep = 0;
  std::uint16_t resource_index = 0;
  std::uint16_t fep_cap = 0;  ///< as its address says; 0 where that is not known
  std::uint64_t offset = 0;   ///< of byte 0 of the message
  std::uint64_t key = 0;
  // Once a receive has taken the message.
  std::uint64_t start = 0;  ///< of the message in the receive
  std::uint64_t limit = 0;  ///< bytes of the message that fit

  std::uint64_t first() const { return std::min<std::uint64_t>(eager, limit); }
};

/// One of the READs that a target issues for rendezvous, or the request to send again what was put off. Its address is that of a region at the source of one message, so it
/// brings a Peer of its own, known to no table.
struct Fetch : Pooled {
  ListHook hook;
  Peer peer;
  PoolRef operation;                     ///< the initiator's descriptor of the READ
  UnexpectedMessage* message = nullptr;  ///< null: given up, and the READ has not ended yet
  Sender* sender = nullptr;              ///< whose share it comes from
  std::uint64_t done = 0;                ///< bytes of the message that are here
  std::uint64_t asked = 0;               ///< the READ under way goes so far
  std::uint64_t placed = 0;              ///< bytes that READs brought, some of them perhaps twice
  std::uint64_t seen = 0;                ///< of `placed`, at the last look
  std::int64_t active_at_ns = 0;         ///< when there were more, in loop time
  // Of a request to restart. [SES 8.3]
  std::uint32_t token = 0;   ///< what the restarted message has to name; 0: none
  bool is_answered = false;  ///< its initiator will send the message again
};

struct FetchRequest {
  Endpoint* endpoint = nullptr;
  std::uint32_t job_id = 0;
  const IovList* into = nullptr;  ///< null: no READ, a request to restart with the tokens `key`
  std::uint64_t at = 0;           ///< in `into`
  std::uint64_t length = 0;
  std::uint64_t remote_offset = 0;
  std::uint64_t key = 0;
};

/// The target's Transmitter.
class Fetcher {
 public:
  virtual ~Fetcher() = default;
  /// False when there is no room for it now. FetchSink::on_fetched() follows otherwise.
  virtual bool fetch(Instant now, Fetch& fetch, const FetchRequest& request) = 0;
  /// The memory is not touched any more. on_fetched() follows, perhaps from within this call.
  virtual void give_up(Instant now, Fetch& fetch) = 0;
};

/// The target's Receiver.
class FetchSink {
 public:
  virtual ~FetchSink() = default;
  virtual void on_fetched(Instant now, Fetch& fetch, ReturnCode code) = 0;
};

/// The initiator's Transmitter.
class Restarts {
 public:
  virtual ~Restarts() = default;
  /// The target at `source` has a receive for a message that it put off. What it is told. [SES 8.2]
  virtual ReturnCode on_restart(Instant now, const Endpoint& endpoint,
                                const net::FabricAddress& source, const RequestView& request) = 0;
  /// A request to restart was answered with the error `code`. The target asks no second time, so a message of its that is named there
  /// and still waits ends with that error.
  virtual void on_refused_restart(Instant now, const net::FabricAddress& source,
                                  const RequestView& request, ReturnCode code) = 0;
};

/// The initiator's Transmitter.
class RegionReads {
 public:
  virtual ~RegionReads() = default;
  /// `length` more bytes of the region of `operation` were read, and acknowledged.
  virtual void on_region_read(Instant now, PoolRef operation, std::uint64_t length) = 0;
};

}  // namespace uet::ses
