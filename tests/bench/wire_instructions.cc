/// Two functions to count instructions of: decode and encode of RUD_REQ + standard SES header, size check included.
///
///     objdump -d --no-show-raw-insn --disassemble=uet_wire_decode build/tests/bench/wire_instructions
///     valgrind --tool=callgrind --toggle-collect=uet_wire_decode build/tests/bench/wire_instructions
#include <array>
#include <cstdio>
#include <span>

#include "lib/wire/headers.h"

using uet::wire::PdsRequest;
using uet::wire::SesStandardFirst;

constexpr std::size_t kBytes = PdsRequest::kSize + SesStandardFirst::kSize;

/// Every field of both headers ends in memory: the most that a decode can cost.
extern "C" [[gnu::noinline]] bool uet_wire_decode(const std::uint8_t* bytes, std::size_t size,
                                                  PdsRequest* pds, SesStandardFirst* ses) {
  if (size < kBytes) return false;
  uet::wire::decode_into(*pds, bytes);
  uet::wire::decode_into(*ses, bytes + PdsRequest::kSize);
  return true;
}

extern "C" [[gnu::noinline]] bool uet_wire_encode(const PdsRequest* pds,
                                                  const SesStandardFirst* ses, std::uint8_t* bytes,
                                                  std::size_t size) {
  if (size < kBytes) return false;
  uet::wire::emit(*pds, bytes);
  uet::wire::emit(*ses, bytes + PdsRequest::kSize);
  return true;
}

/// What a receiver needs to find a PDC, a message and the place of its bytes: decoded fields that are not looked at cost
/// nothing.
extern "C" [[gnu::noinline]] std::uint64_t uet_wire_decode_used(const std::uint8_t* bytes,
                                                                std::size_t size) {
  if (size < kBytes) return 0;
  const auto pds = uet::wire::decode<PdsRequest>(bytes);
  const auto ses = uet::wire::decode<SesStandardFirst>(bytes + PdsRequest::kSize);
  return pds.psn.value() ^ pds.dpdcid ^ static_cast<unsigned>(ses.opcode) ^ ses.message_id ^
         ses.job_id ^ ses.pid_on_fep ^ ses.resource_index ^ ses.buffer_offset ^ ses.mkey_match ^
         ses.request_length ^ (ses.som ? 1U : 0U) ^ (ses.eom ? 2U : 0U);
}

int main() {
  std::array<std::uint8_t, kBytes> bytes{};
  PdsRequest pds;
  SesStandardFirst ses;
  uet_wire_encode(&pds, &ses, bytes.data(), bytes.size());
  const bool ok = uet_wire_decode(bytes.data(), bytes.size(), &pds, &ses);
  std::printf("%d %llu\n", ok ? 1 : 0,
              static_cast<unsigned long long>(uet_wire_decode_used(bytes.data(), bytes.size())));
}
