/// Limits and timers of the semantic sublayer. [SES 19]
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/units.h"

namespace uet::ses {

/// Resource indices are 1 to this one. [SES 2]
inline constexpr std::uint16_t kMaxIndex = 0xfff;

struct SesConfig {
  /// A message that has begun keeps its place until all of it is here. Where places are so few that the first packets of others, which
  /// are refused and sent again, leave its initiator no window for the rest of it, no message ends. Random worlds go down to this.
  static constexpr std::uint32_t kFewestMessages = 16;

  std::uint32_t max_endpoints = 4094;
  std::uint32_t max_sends = 4096;      ///< operations being sent, all endpoints together
  std::uint32_t max_receives = 65536;  ///< posted receives, all endpoints together
  std::uint32_t max_messages =
      16384;  ///< messages being received; a Fep takes no fewer than kFewestMessages
  std::uint32_t max_peers = 131072;
  std::uint32_t max_memory_regions = 65535;
  std::uint32_t inject_size = 4096;
  /// Of the largest packets that the device takes, said in addresses; 0: not said, and no wide READ of 1,280 is
  /// served. [decisions 162, 170]
  std::uint32_t device_payload = 0;
  std::uint64_t overflow_bytes =
      64ull << 20;  ///< unexpected messages of more than 64 bytes, per endpoint
  std::uint32_t overflow_msgs = 131072;
  std::uint64_t overflow_bytes_total = 256ull
                                       << 20;  ///< all endpoints together, block headers included
  std::uint32_t overflow_msgs_total = 262144;
  std::uint32_t overflow_headers =
      1024;  ///< messages without room of which the header is kept, per endpoint
  std::uint32_t max_senders =
      8192;  ///< peers that hold anything of what follows, or were refused lately
  std::uint32_t max_read_returns =
      32768;  ///< requests whose read data waits to leave or to be acknowledged
  std::uint32_t asked_packets =
      2048;  ///< requests, of 8 KiB where they are for more, that READs to one peer make before more READs wait
  /// At least the packets of a READ that the carrier may have under way: the more, the less each asks for, since all that comes behind
  /// one that was lost is remembered. [decision 108]
  std::uint32_t requests_under_way = 1024;
  std::uint32_t max_returns_carried =
      4032;  ///< of max_read_returns, those that the carrier has at a time; no more than it takes
  std::uint64_t read_copy_bytes = 16ull << 20;  ///< copies of read data of ordered reads
  std::uint64_t max_message = 0xffff'ffffull;
  bool reject_long = false;       ///< refuse instead of truncating
  std::uint32_t retry_limit = 0;  ///< retries of refused messages, 0: for ever
  base::Duration retry_backoff_min = base::Duration::from_ms(1);
  base::Duration retry_backoff_max = base::Duration::from_seconds(1);
  /// What belongs to a message is kept for so long without a word of it, as long as the loop turns.
  base::Duration message_idle = base::Duration::from_seconds(60);
  base::Duration ri_reuse = base::Duration::from_seconds(1);
  /// The first of the resource indices that SES chooses, from 1 to kMaxIndex. [decision 168]
  std::uint16_t first_index = 1;
  std::uint16_t max_ack_data =
      16;  ///< read data that rides on an ACK, bytes per message; no more than the carrier keeps
  std::uint16_t iov_limit = 16;
  /// Senders whose messages wait unexpected are slowed down before the room for them is gone. [CC 4.8]
  bool flow_control = true;
  bool use_generations = true;
  bool medium_headers = false;  ///< send the medium header where it is allowed
  /// Send the small header where key and peer allow it, and say in the address that we take it. FI_UET_SMALL_HEADERS, on by
  /// default. [SES 5]
  bool small_headers = false;
  /// Ordered sends between endpoints that both have this go by RUD over all paths, and the target restores their order.
  /// FI_UET_SPRAY_ORDERED, on by default. [decision 141]
  bool spray_ordered = false;
  /// Initiators' streams of such messages that are remembered; those of half of max_senders at most.
  std::uint32_t max_streams = 4096;
  /// Sends that a target had no room for begin again as a rendezvous, where the target fetches; and we fetch. [decision 142]
  bool rendezvous = false;
  /// Sends of so many bytes begin as one.
  std::uint64_t rendezvous_from = ~0ull;
  std::uint32_t rendezvous_eager = 0;  ///< bytes that such sends carry with them
  std::uint32_t max_fetches =
      256;  ///< READs for rendezvous, and restarts, under way; a source: half
  /// Sends of several packets by RUD are such that a target without a receive may put them off, and has them sent again when it has
  /// one: what the AI profiles ask for. FI_UET_DEFERRABLE, off by default. [SES 8]
  bool sends_deferrable = false;
  base::Duration restart_limit{};  ///< such a send fails when it was put off for so long; 0: never
  /// We put off what has no room, and what is longer than `overflow_max`. [SES 7.2]
  bool defers = false;
  std::uint64_t overflow_max = 1ull << 20;
  std::uint32_t max_deferred = 1024;       ///< messages put off, per endpoint
  std::uint32_t max_deferred_of_peer = 8;  ///< of those, of one peer
};

}  // namespace uet::ses
