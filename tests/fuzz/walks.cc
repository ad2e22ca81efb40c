#include "lib/wire/dissect_frame.h"
#include "tests/fuzz/checking_visitor.h"

namespace uet::fuzz {

void check_frame(wire::LinkType link, Bytes bytes, std::size_t wire_length, unsigned choice) {
  wire::DissectOptions options;
  options.crc = static_cast<wire::CrcPolicy>(choice % 3);
  options.payload_mtu = choice / 3 % 2 != 0 ? 1024 : 0;
  CheckingVisitor visitor(bytes);
  wire::dissect_frame(link, bytes, wire_length, options, visitor);
  visitor.finish();
}

void frame(Bytes input) {
  if (input.size() < 3) return;
  constexpr wire::LinkType kLinks[] = {wire::LinkType::kEthernet,  wire::LinkType::kLinuxSll,
                                       wire::LinkType::kLinuxSll2, wire::LinkType::kRaw,
                                       wire::LinkType::kUet,       wire::LinkType{9999}};
  const unsigned choice = input[0];
  const std::size_t extra = static_cast<std::size_t>(input[1] << 8 | input[2]);
  // A copy of exactly this size: reading past the end is seen.
  const std::vector<std::uint8_t> bytes(input.begin() + 3, input.end());
  check_frame(kLinks[choice % std::size(kLinks)], bytes, bytes.size() + extra,
              static_cast<unsigned>(choice / std::size(kLinks)));
}

void uet(Bytes input) {
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  CheckingVisitor visitor(bytes);
  const wire::UetContext context{.wire_length = bytes.size()};
  wire::dissect_uet(bytes, context, visitor);
  visitor.finish();
}

}  // namespace uet::fuzz
