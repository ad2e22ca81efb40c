#include "lib/wire/headers.h"

#include "tests/fuzz/checking_visitor.h"

namespace uet::fuzz {

void headers(Bytes input) {
  if (input.empty()) return;
  const std::vector<std::uint8_t> bytes(input.begin() + 1, input.end());
  std::size_t index = 0;
  const auto check = [&]<typename H>() {
    if (index++ != input[0] % (wire::NetHeaders::kCount + wire::UetHeaders::kCount)) return;
    const auto h = wire::parse<H>(bytes);
    UET_CHECK(h.has_value() == (bytes.size() >= H::kSize));
    if (!h) return;
    CheckingVisitor visitor(Bytes(bytes).first(H::kSize));
    visitor.on_header(*h, H::kName, 0, Bytes(bytes).first(H::kSize));
    visitor.finish();
  };
  wire::NetHeaders::for_each(check);
  wire::UetHeaders::for_each(check);
}

}  // namespace uet::fuzz
