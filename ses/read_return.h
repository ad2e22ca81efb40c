/// Read data on its way back to an initiator. [SES 6.3]
#pragma once

#include "ses/match_list.h"
#include "ses/slab.h"

namespace uet::ses {

struct Sender;

/// A READ whose data goes back in packets of its own: complete when all were asked for and
/// acknowledged. Outlives the RxMessage, because the initiator may use the message id again before
/// the last acknowledgement is here.
struct ReadProgress : Pooled {
  EndpointId endpoint = 0;
  Source source;
  std::uint64_t key = 0;
  PoolRef operation;  ///< the region is the source of this rendezvous
  std::size_t length = 0;
  std::uint32_t piece = 0;  ///< in each packet of its data but the last of what one asks for
  std::uint32_t returns_open = 0;
  bool all_requested = false;
  bool failed = false;
  bool was_counted = false;  ///< an atomic, which was complete when it was executed
};

/// What one packet of a READ asked for, on its way back: one packet, or several of a wide READ and where the way carries less than the
/// peer's.
struct alignas(64) ReadReturn : Pooled {
  bool is_carried = false;
  bool small = false;        ///< the request had no message id
  bool failed = false;       ///< a part was refused
  bool is_lost = false;      ///< the bytes of an ordered read could not be had
  ListHook hook;             ///< while it waits for a place with the carrier
  Sender* sender = nullptr;  ///< whose share it comes from
  pds::RxHandle request;
  PoolRef region;
  std::uint32_t length = 0;
  std::uint64_t start = 0;  ///< in the region
  std::uint32_t piece = 0;  ///< of `length` in each packet but the last
  std::uint32_t segments = 0;
  std::uint32_t answered = 0;
  std::uint32_t message_offset = 0;
  std::uint32_t request_length = 0;
  std::uint32_t job_id = 0;
  std::uint32_t copy_cost = 0;
  PoolRef progress;
  std::uint16_t request_message_id = 0;
  Block* copy = nullptr;  ///< ordered reads: the bytes as they were when the request arrived
};
// Two lines of the cache: a reader has thousands under way.
static_assert(sizeof(ReadReturn) <= 128);

using ReturnList =
    boost::intrusive::list<ReadReturn,
                           boost::intrusive::member_hook<ReadReturn, ListHook, &ReadReturn::hook>>;

}  // namespace uet::ses
