/// Which PDCs a script has opened or accepted, as far as the wire told; and the packets that end them afterwards, so that the next
/// script finds an endpoint at rest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace uet::drill {

class PdcLedger {
 public:
  using Bytes = std::vector<std::uint8_t>;

  /// A new script begins: what the one before knew is over.
  void begin(std::set<std::uint16_t> own_ids);

  /// What was sent since begin() opens nothing.
  void forget() { pdcs_.clear(); }

  void on_sent(std::span<const std::uint8_t> packet);
  void on_received(std::span<const std::uint8_t> packet);

  /// Not meant for this script: about a PDC of an earlier one, of this process or of one before it; or the copy of a SYN from then.
  bool is_of_the_past(std::span<const std::uint8_t> packet) const;
  /// What an endpoint at rest answers to such a packet. Empty: nothing. Operations that the peer has not finished are
  /// acknowledged: it would begin them anew with the next script if they failed.
  Bytes answer_to_the_past(std::span<const std::uint8_t> packet);

  /// What ends the PDCs of the script that are still open. Those that the peer has opened, answered or not, it must
  /// close by itself: it is asked.
  std::vector<Bytes> farewells();
  /// What such a PDC is told when its packets go on coming, up to the ACK of the close; empty for any other packet.
  Bytes answer_at_the_end(std::span<const std::uint8_t> packet);
  bool is_anything_open() const;

 private:
  struct Pdc {
    bool is_theirs = false;  ///< the peer is the initiator
    bool is_rod = false;
    bool is_closed = false;
    std::optional<std::uint16_t> peer_id;
    std::uint32_t newest = 0;  ///< PSN of the forward direction
    std::optional<std::uint32_t> close_psn;
  };

  using Pdcs = std::map<std::uint16_t, Pdc>;  ///< by our id

  static Bytes answer_as_target(Pdcs& pdcs, std::span<const std::uint8_t> packet);

  Pdcs pdcs_;
  Pdcs theirs_of_the_past_;  ///< that were not closed when their script ended
  std::set<std::uint16_t> own_, retired_;
  void adopt_unanswered();

  std::set<std::pair<std::uint16_t, std::uint32_t>> past_syns_, syns_;  ///< peer's id, start
};

}  // namespace uet::drill
