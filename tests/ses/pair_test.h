/// Two FEPs A and B with one endpoint each, and shorthand for what tests do with them.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "tests/ses/fabric.h"

namespace uet::ses::testing {

using Bytes = std::vector<std::uint8_t>;

inline Bytes pattern(std::size_t n, std::uint32_t seed = 1) {
  Bytes bytes(n);
  base::Rng rng(seed);
  for (auto& b : bytes) b = static_cast<std::uint8_t>(rng.next_u32());
  return bytes;
}

inline iovec piece(Bytes& bytes) {
  return {bytes.data(), bytes.size()};
}

constexpr std::uint32_t kM = 1024;  ///< payload MTU of these tests

/// A request as an independent sender would build it.
struct RawRequest {
  SesOpcode opcode = SesOpcode::kSend;
  std::uint8_t version = 0;
  bool dc = false, ie = false, rel = true, hd = false, som = true, eom = true;
  std::uint16_t message_id = 77;
  std::uint8_t generation = 0;
  std::uint32_t job = 7;
  std::uint16_t pid = 0;
  std::uint16_t ri = 5;
  std::uint64_t buffer_offset = 0;
  std::uint32_t initiator = 3;
  std::uint64_t key = 0;  ///< or match bits
  std::uint64_t header_data = 0;
  std::uint32_t length = 0;
  std::uint32_t offset = 0;
  Bytes payload{};
  std::optional<std::uint16_t> covered{};  ///< when not the payload's size (READ)
  std::optional<wire::ExtRendezvous> rendezvous{};
};

Bytes encode(const RawRequest& r);
Bytes encode_medium(const RawRequest& r);
Bytes encode_small(const RawRequest& r);

inline SesConfig with_medium_headers() {
  SesConfig c;
  c.medium_headers = true;
  return c;
}

class PairTest : public ::testing::Test {
 protected:
  explicit PairTest(const SesConfig& config = {}, std::uint64_t seed = 1);

  /// Endpoints with job 7, RI 5; A's Initiator ID is 3, B's is 4. Peers know each other.
  void open(EndpointConfig config = {});
  static EndpointConfig standard_endpoint();

  /// The next packet of an independent sender with address 10.0.0.99.
  pds::Answer inject(const RawRequest& r, pds::Mode mode = pds::Mode::kRud);
  pds::Answer inject_bytes(const Bytes& bytes, wire::NextHdr form,
                           pds::Mode mode = pds::Mode::kRud);
  static ResponseView view(const pds::Answer& answer);
  ReturnCode code_of(const RawRequest& r, pds::Mode mode = pds::Mode::kRud) {
    return view(inject(r, mode)).code;
  }

  void send(const Bytes& bytes, std::uint64_t context = 1, std::optional<std::uint64_t> data = {});
  void tsend(const Bytes& bytes, std::uint64_t tag, std::uint64_t context = 1,
             std::optional<std::uint64_t> data = {});
  void post(Bytes& bytes, std::uint64_t context = 100);
  void tpost(Bytes& bytes, std::uint64_t tag, std::uint64_t ignore = 0,
             std::uint64_t context = 100);
  std::uint64_t expose(Bytes& bytes, bool read = true, bool write = true);
  void rma(bool read, Bytes& bytes, std::uint64_t key, std::uint64_t offset,
           std::uint64_t context = 1);

  Ses& sa() { return a.ses; }
  Ses& sb() { return b.ses; }
  /// Neither side has anything under way, kept or registered.
  void expect_nothing_left();

  Fabric fabric;
  Node& a;
  Node& b;
  Recorder at_a, at_b;
  EndpointId ea = 0, eb = 0;
  PeerId b_of_a = 0, a_of_b = 0;
  std::uint32_t next_raw_psn = 1;
  pds::PdcRef raw_pdc{9999};                 ///< of the independent sender
  bool raw_is_proven = true;                 ///< it hears what goes to its address
  std::vector<std::unique_ptr<Bytes>> kept;  ///< send buffers
};

}  // namespace uet::ses::testing
