/// Messages that arrived before their receive. [SES 7.2, 7.3]
#pragma once

#include <array>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set_hook.hpp>

#include "ses/match_list.h"
#include "ses/payload_sizes.h"
#include "ses/rendezvous.h"
#include "ses/slab.h"

namespace uet::ses {

struct RxMessage;
struct Sender;

/// How much of the store an endpoint, or a sender, uses.
struct OverflowUse {
  std::size_t bytes = 0;
  std::uint32_t messages = 0;
};

/// One unexpected message: its header, and the payload captured so far.
struct UnexpectedMessage : Pooled {
  /// Bytes of a message that need no block of the store.
  static constexpr std::size_t kShort = 64;

  ListHook hook;
  ListHook bucket_hook;  ///< among the unexpected messages with the same hash
  Endpoint* endpoint = nullptr;
  Sender* sender = nullptr;  ///< whose share it comes from
  bool tagged = false;
  Incoming header;
  bool som_seen = false;  ///< its first packet has come, which alone brings what follows
  std::uint64_t header_data = 0;
  bool has_header_data = false;
  std::uint64_t buffer_offset = 0;
  std::uint32_t length = 0;    ///< of the message
  std::uint32_t captured = 0;  ///< bytes that arrived
  Block* first = nullptr;      ///< of the store, or `short_block`
  Block* last = nullptr;
  std::size_t cost = 0;          ///< of all its blocks, reserved when it was admitted
  std::size_t taken = 0;         ///< of that, in use
  RxMessage* message = nullptr;  ///< while packets are still expected
  bool claimed = false;
  std::uint64_t claim_context = 0;
  ReturnCode failure =
      ReturnCode::kOk;  ///< claimed, then its rest never came: what the claim will be told
  // There was no room for it: only its header is known, and its sender comes again. [decision 107]
  bool is_header_only = false;
  ListHook header_hook;           ///< of its sender
  ListHook header_age_hook;       ///< by last attempt
  std::int64_t active_at_ns = 0;  ///< last attempt, in loop time
  Receive* receive = nullptr;     ///< claimed: where its data goes when it comes again
  // A rendezvous: only a part of it came with its header. It leaves the unexpected messages, or never joins them, when `receive`
  // takes it, and stays until the rest is there. [SES 9]
  bool is_rendezvous = false;
  bool waits_for_fetch = false;  ///< in Sender::to_fetch
  RestOfMessage rest;
  Fetch* fetch = nullptr;
  bool is_unwanted = false;  ///< discarded by the user: so is all that comes again
  // Put off: its initiator sends all of it again when it is asked to. Takes the way of a rendezvous, with a restart in the place of a
  // READ. [SES 8.3]
  bool is_deferred = false;
  std::uint32_t initiator_token = 0;
  // With delivery complete its sender may ask when a receive has taken it. [SES 14.1]
  UnexpectedMessage* next_awaited = nullptr;  ///< in DeliveryIndex
  bool is_awaitable = false;                  ///< in DeliveryIndex
  bool is_asked = false;
  std::uint16_t message_id = 0;
  pds::RxHandle asker;  ///< the question: its PDC carries the report
  ReturnCode verdict = ReturnCode::kOk;
  // Came before its turn: in a Stream, and unknown to receives and peeks. [decision 141]
  bool is_held = false;
  boost::intrusive::set_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>
      held_hook;        ///< of its stream
  bool is_gap = false;  ///< will not come, or not whole
  std::uint32_t number = 0;

  alignas(Block) std::array<std::uint8_t, sizeof(Block) + kShort> short_block;

  /// What is not known yet comes with a packet that is on its way, or will be sent again. A message that is whole without a first
  /// packet has no more to say.
  bool is_header_known() const { return som_seen || (message == nullptr && !is_header_only); }
};

using UnexpectedList = boost::intrusive::list<
    UnexpectedMessage,
    boost::intrusive::member_hook<UnexpectedMessage, ListHook, &UnexpectedMessage::hook>,
    boost::intrusive::constant_time_size<false>>;

using HeaderList = boost::intrusive::list<
    UnexpectedMessage,
    boost::intrusive::member_hook<UnexpectedMessage, ListHook, &UnexpectedMessage::header_hook>>;
using HeaderAgeList =
    boost::intrusive::list<UnexpectedMessage,
                           boost::intrusive::member_hook<UnexpectedMessage, ListHook,
                                                         &UnexpectedMessage::header_age_hook>>;

/// Room for unexpected messages of all endpoints, each within its own budget.
class UnexpectedStore {
 public:
  explicit UnexpectedStore(const SesConfig& config);

  /// Reserves room for a whole message of `length` bytes. Null when the sender's share, the endpoint's budget or the store is
  /// used up.
  UnexpectedMessage* admit(OverflowUse& use, Sender& sender, std::uint32_t length);
  bool has_room_for(const OverflowUse& use, const Sender& sender, std::uint32_t length) const;
  /// The same for a message that came before its turn. Its room is not that of messages in their turn, so these are never
  /// kept out by what waits for them: an eighth of the endpoint's, and what it lacks of nine eighths.
  UnexpectedMessage* admit_held(const OverflowUse& use, OverflowUse& held, Sender& sender,
                                std::uint32_t length);
  /// The turn of a held message has come: its room is counted as every other's.
  void end_hold(UnexpectedMessage& message, OverflowUse& held, OverflowUse& use);
  /// Whether there are descriptors for messages that have no receive.
  bool has_descriptor() const { return pool_.in_use() < most_without_receive(); }
  /// Reports of delivery are made of descriptors, until their sender acknowledges them. One that does not leaves as many to others as
  /// its reports have.
  bool may_ask_for_more(const Sender& sender) const;
  /// A descriptor for a header without payload, counted by the caller; null when none is left.
  UnexpectedMessage* note_header(Sender& sender, std::uint32_t length);
  /// Keeps bytes at `offset` of the message; false when no memory can be had.
  bool capture(UnexpectedMessage& message, std::uint32_t offset,
               std::span<const std::uint8_t> bytes);
  /// Copies what was captured and lies below `limit` to `to`, beginning at `to_offset`, and gives
  /// the blocks back. Returns the bytes copied.
  std::size_t move_to(UnexpectedMessage& message, OverflowUse& use, const IovList& to,
                      std::size_t to_offset, std::size_t limit);
  /// Gives back the payload and its reservation; the header stays.
  void drop_payload(UnexpectedMessage& message, OverflowUse& use);
  /// The endpoint forgets the message; its payload must be gone. recycle() must follow.
  void release(UnexpectedMessage& message, OverflowUse& use);
  /// A header is counted as a message from now on.
  void count_header(UnexpectedMessage& message, OverflowUse& use);
  void recycle(UnexpectedMessage& message) { pool_.release(&message); }
  UnexpectedMessage* at(std::uint32_t index) { return pool_.at(index); }

  /// The scarcest of what such an endpoint draws from, in thousandths; what has no room at all counts as empty.
  std::uint32_t fill(const OverflowUse& use) const;

  std::size_t messages() const { return pool_.in_use(); }
  std::size_t bytes() const { return slab_.reserved(); }

 private:
  std::size_t cost_of(std::uint32_t length) const;
  bool capture_short(UnexpectedMessage& message, std::uint32_t offset,
                     std::span<const std::uint8_t> bytes);
  std::uint32_t most_without_receive() const { return pool_.max() - pool_.max() / kForReceives; }
  bool has_descriptor_for(const Sender& sender) const;
  bool has_room(const OverflowUse& use, const OverflowUse& of_sender, std::size_t cost) const;
  bool may_hold(const OverflowUse& use, const OverflowUse& held, const OverflowUse& of_sender,
                std::size_t cost) const;
  static OverflowUse& use_of_sender(UnexpectedMessage& message);

  /// Part of the descriptors that messages without a receive leave to those that one takes, and whose rest is to be fetched.
  static constexpr std::uint32_t kForReceives = 16;

  std::uint64_t bytes_per_endpoint_;
  std::uint32_t messages_per_endpoint_;
  Slab slab_;
  ChunkedPool<UnexpectedMessage> pool_;
};

}  // namespace uet::ses
