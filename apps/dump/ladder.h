/// Both ends of a conversation side by side: what one sent, and when or whether it came.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/dump/line.h"

namespace uet::dump {

/// Takes the packets of two captures, each made at one end, and pairs them: equal headers between the same addresses are the same packet.
/// Times are as the captures have them; the two clocks have to agree.
class Ladder {
 public:
  enum Side : std::size_t { kLeft = 0, kRight = 1 };

  /// False when it is full.
  bool add(Side side, const DecodedPacket& packet, const std::string& summary);
  /// One row for each packet, in the order of sending.
  std::string to_text(bool colour);
  /// The same as data, for pictures. One of the two may be called, once.
  struct Rung {
    Side from = kLeft;
    std::uint64_t sent_ns = 0, arrived_ns = 0;  ///< 0: not known
    std::string fate;  ///< empty: it went through, or the other end made no capture
    std::string summary;
  };
  std::vector<Rung> rungs();
  const std::array<std::string, 2>& names() const { return names_; }
  /// Rows whose packet was sent while the other end captured and was never seen there.
  std::size_t lost() const { return lost_; }

  static constexpr std::size_t kPacketsMax = 1'000'000;

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct Seen {
    std::uint64_t time_ns = 0;
    std::string key;  ///< addresses and the bytes of all UET headers
    std::string summary;
    std::string drop;             ///< why this end dropped it
    std::size_t partner = kNone;  ///< at the other side
  };
  struct Row {
    std::uint64_t time_ns;
    std::string text;
  };

  void pair_up(Side from);
  void add_sent(std::vector<Row>& rows, Side side, bool colour);
  void add_unsent(std::vector<Row>& rows, Side side) const;

  std::array<std::vector<Seen>, 2> sent_, received_;
  std::array<std::string, 2> names_;  ///< addresses
  std::array<std::uint64_t, 2> first_ns_{~std::uint64_t{0},
                                         ~std::uint64_t{0}};  ///< of each capture
  std::size_t lost_ = 0;
};

}  // namespace uet::dump
