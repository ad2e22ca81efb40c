/// Messages that arrived before their receive. [SES 7.2, 7.3]
#pragma once

#include <boost/intrusive/list.hpp>

#include "ses/match_list.h"
#include "ses/payload_sizes.h"
#include "ses/slab.h"

namespace uet::ses {

struct RxMessage;

/// One unexpected message: its header, and the payload captured so far.
struct Unexpected : Pooled {
  ListHook hook;
  Endpoint* endpoint = nullptr;
  bool tagged = false;
  Incoming header;
  std::uint64_t header_data = 0;
  bool has_header_data = false;
  std::uint64_t buffer_offset = 0;
  std::uint32_t length = 0;    ///< of the message
  std::uint32_t captured = 0;  ///< bytes that arrived
  Block* first = nullptr;
  Block* last = nullptr;
  std::size_t cost = 0;          ///< of all its blocks, reserved when it was admitted
  RxMessage* message = nullptr;  ///< while packets are still expected
  bool claimed = false;
  std::uint64_t claim_context = 0;
  ReturnCode failure =
      ReturnCode::kOk;  ///< claimed, then its rest never came: what the claim will be told
  // With delivery complete the answer waits until the data is in a user's buffer. [SES 14.1]
  bool owes_answer = false;
  pds::RxHandle answer_handle;
  std::uint16_t answer_message_id = 0;
};

using UnexpectedList =
    boost::intrusive::list<Unexpected,
                           boost::intrusive::member_hook<Unexpected, ListHook, &Unexpected::hook>,
                           boost::intrusive::constant_time_size<false>>;

/// How much one endpoint uses of the store.
struct OverflowUse {
  std::size_t bytes = 0;
  std::uint32_t messages = 0;
};

/// Room for unexpected messages of all endpoints, each within its own budget.
class UnexpectedStore {
 public:
  UnexpectedStore(const SesConfig& config, std::uint32_t payload_mtu);

  /// Reserves room for a whole message of `length` bytes that comes in pieces of `piece` bytes, 0 when
  /// that is not known yet. Null when the endpoint's budget or the store is used up.
  Unexpected* admit(OverflowUse& use, std::uint32_t length, std::uint32_t piece);
  /// Keeps bytes at `offset` of the message; false when no memory can be had.
  bool capture(Unexpected& message, std::uint32_t offset, std::span<const std::uint8_t> bytes);
  /// Copies what was captured and lies below `limit` to `to`, beginning at `to_offset`, and gives
  /// the blocks back. Returns the bytes copied.
  std::size_t move_to(Unexpected& message, OverflowUse& use, const IovList& to,
                      std::size_t to_offset, std::size_t limit);
  /// Gives back the payload and its reservation; the header stays.
  void drop_payload(Unexpected& message, OverflowUse& use);
  /// Forgets the message; its payload must be gone.
  void release(Unexpected& message, OverflowUse& use);

  /// The scarcest of what such an endpoint draws from, in thousandths; what has no room at all counts as empty.
  std::uint32_t fill(const OverflowUse& use) const;

  std::size_t messages() const { return pool_.in_use(); }
  std::size_t bytes() const { return slab_.reserved(); }

 private:
  std::size_t cost_of(std::uint32_t length, std::uint32_t piece) const;

  std::uint64_t bytes_per_endpoint_;
  std::uint32_t messages_per_endpoint_;
  std::uint32_t payload_mtu_;
  Slab slab_;
  ChunkedPool<Unexpected> pool_;
};

}  // namespace uet::ses
