/// The packets of an attacker: well-formed UET whose fields are chosen to do harm.
///
/// Knows the formats and what one conversation has taught; knows nothing of ports, time or plans.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/serial.h"
#include "lib/net/fabric_address.h"
#include "lib/wire/headers.h"
#include "sim/frame.h"

namespace uet::sim {

/// One UET packet from its PDS header on, without trailer.
using AttackBytes = std::vector<std::uint8_t>;

/// What an attacker knows of one PDC between a victim and the address under which it speaks.
struct Conversation {
  HostId victim = 0;
  net::FabricAddress as;  ///< the address under which the attacker speaks
  bool is_rod = false;
  bool is_target = false;  ///< the victim opened it
  std::uint16_t own_id = 0;
  std::uint16_t peer_id = 0;          ///< 0: not learned yet
  base::Psn start;                    ///< of both directions
  base::Psn next;                     ///< the next that has not been sent
  base::Psn newest;                   ///< the newest PSN that the victim used
  bool has_heard = false;             ///< `newest` is known
  std::array<base::Psn, 4> recent{};  ///< PSNs that the victim used, the last ones
  std::uint32_t recents = 0;
  bool knows_psns = true;  ///< false: all PSNs are guesses over the whole space

  void note_peer_psn(base::Psn psn);
};

/// One packet of a message.
struct MessagePiece {
  wire::SesOpcode opcode = wire::SesOpcode::kTaggedSend;
  bool som = true, eom = true, dc = false, hd = false;
  std::uint16_t message_id = 1;
  std::uint32_t total = 0;    ///< request_length
  std::uint32_t offset = 0;   ///< message_offset; with som: 0
  std::uint32_t bytes = 0;    ///< that this packet says it covers
  std::uint32_t carried = 0;  ///< payload bytes that are really there
  std::uint64_t key_or_tag = 0;
  std::uint64_t buffer_offset = 0;
  std::uint32_t job = 2;
  std::uint16_t index = 7;
};

class AttackPackets {
 public:
  /// `rng` must outlive it.
  /// With `numbers` half of the sends are numbered, as ordered ones that take all paths are.
  /// With `rendezvous` a third of the others leave their rest at their source.
  AttackPackets(base::Rng& rng, std::uint32_t payload_mtu, base::Rng* numbers = nullptr,
                base::Rng* rendezvous = nullptr)
      : rng_(rng), mtu_(payload_mtu), numbers_(numbers), rendezvous_(rendezvous) {}

  /// Opens the PDC: a Noop or a first request of `body`; the conversation's next PSN moves on.
  AttackBytes opening(Conversation& c, const MessagePiece* body);
  /// A request with the next PSN, or with `psn`.
  AttackBytes request(Conversation& c, const MessagePiece* body);
  AttackBytes request_at(const Conversation& c, base::Psn psn, const MessagePiece* body);
  /// What a peer would answer to the victim's packet `psn`.
  AttackBytes honest_ack(const Conversation& c, base::Psn psn);
  AttackBytes control(const Conversation& c, wire::ControlType type, base::Psn psn,
                      std::uint32_t payload);
  AttackBytes nack(const Conversation& c, wire::NackCode code, base::Psn psn,
                   std::uint32_t payload);

  /// Any packet at all.
  AttackBytes any(Conversation& c);
  AttackBytes any_control(Conversation& c);
  AttackBytes any_nack(const Conversation& c);
  AttackBytes any_ack(const Conversation& c);
  AttackBytes any_request(Conversation& c);
  /// RUDI and UUD, which need no PDC.
  AttackBytes any_single();
  wire::NackCode any_nack_code();
  /// Of a packet that the victim sent, and of one that it receives.
  base::Psn any_peer_psn(const Conversation& c);
  base::Psn any_own_psn(const Conversation& c);
  MessagePiece any_piece();
  /// A READ that the victim may serve.
  MessagePiece good_read(std::uint32_t bytes);
  /// Damages a packet; the CRC that is put on it later is right.
  void garble(AttackBytes& packet);

 private:
  template <typename T, std::size_t N>
  T one_of(const std::array<T, N>& choices) {
    return choices[rng_.below(N)];
  }
  void append_message(AttackBytes& out, MessagePiece piece);
  bool append_rendezvous(AttackBytes& out, MessagePiece piece);
  std::uint16_t any_id(std::uint16_t right);
  std::uint32_t any_length();
  std::uint16_t any_offset(std::uint16_t right);

  base::Rng& rng_;
  std::uint32_t mtu_;
  base::Rng* numbers_;
  base::Rng* rendezvous_;
};

void append_piece(AttackBytes& out, const MessagePiece& piece);

}  // namespace uet::sim
