#include "tests/fuzz/targets.h"

#include <algorithm>
#include <vector>

#include "lib/base/check.h"
#include "lib/wire/capture_reader.h"
#include "lib/wire/dissect_frame.h"

namespace uet::fuzz {
namespace {

using wire::BytesKind;
using wire::Problem;

/// Checks what every visitor may rely on: pieces lie inside the frame, each byte is given away
/// exactly once, and every header encodes to the bytes it came from.
class CheckingVisitor {
 public:
  explicit CheckingVisitor(Bytes frame) : frame_(frame), given_(frame.size()) {}

  template <typename H>
  void on_header(const H& h, std::string_view name, std::size_t offset, Bytes raw) {
    UET_CHECK(!name.empty());
    UET_CHECK(raw.size() == H::kSize);
    mark(offset, raw);
    UET_CHECK(wire::fits(h));
    std::array<std::uint8_t, H::kSize> out;
    wire::emit(h, out.data());
    for (std::size_t i = 0; i < H::kSize; ++i)
      UET_CHECK(out[i] == (raw[i] & wire::kDefinedMask<H>[i]));
    ++pieces_;
  }
  void on_bytes(BytesKind, std::size_t offset, Bytes bytes) {
    mark(offset, bytes);
    ++pieces_;
  }
  void on_problem(Problem p, std::size_t offset, std::uint64_t, std::uint64_t) {
    UET_CHECK(p < Problem::kCount);
    UET_CHECK(offset <= frame_.size());
    ++pieces_;
  }

  /// No byte may be passed over in silence.
  void finish() const {
    UET_CHECK(pieces_ > 0);
    UET_CHECK(std::all_of(given_.begin(), given_.end(), [](bool g) { return g; }));
  }

 private:
  void mark(std::size_t offset, Bytes bytes) {
    UET_CHECK(offset <= frame_.size());
    UET_CHECK(bytes.size() <= frame_.size() - offset);
    UET_CHECK(bytes.data() == frame_.data() + offset);
    for (std::size_t i = offset; i < offset + bytes.size(); ++i) {
      UET_CHECK(!given_[i]);
      given_[i] = true;
    }
  }

  Bytes frame_;
  std::vector<bool> given_;
  std::size_t pieces_ = 0;
};

void check_frame(wire::LinkType link, Bytes bytes, std::size_t wire_length,
                 const wire::DissectOptions& options) {
  CheckingVisitor visitor(bytes);
  wire::dissect_frame(link, bytes, wire_length, options, visitor);
  visitor.finish();
}

}  // namespace

void frame(Bytes input) {
  if (input.size() < 3) return;
  constexpr wire::LinkType kLinks[] = {wire::LinkType::kEthernet,  wire::LinkType::kLinuxSll,
                                       wire::LinkType::kLinuxSll2, wire::LinkType::kRaw,
                                       wire::LinkType::kUet,       wire::LinkType{9999}};
  const unsigned choice = input[0];
  wire::DissectOptions options;
  options.crc = static_cast<wire::CrcPolicy>(choice / std::size(kLinks) % 3);
  options.payload_mtu = choice >= 128 ? 1024 : 0;
  const std::size_t extra = static_cast<std::size_t>(input[1] << 8 | input[2]);
  // A copy of exactly this size: reading past the end is seen.
  const std::vector<std::uint8_t> bytes(input.begin() + 3, input.end());
  check_frame(kLinks[choice % std::size(kLinks)], bytes, bytes.size() + extra, options);
}

void uet(Bytes input) {
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  CheckingVisitor visitor(bytes);
  const wire::UetContext context{.wire_length = bytes.size()};
  wire::dissect_uet(bytes, context, visitor);
  visitor.finish();
}

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

namespace {

class MemorySource : public wire::ByteSource {
 public:
  explicit MemorySource(Bytes bytes) : bytes_(bytes) {}
  std::size_t read(std::span<std::uint8_t> out) override {
    const std::size_t n = std::min(out.size(), bytes_.size());
    std::copy_n(bytes_.begin(), n, out.begin());
    bytes_ = bytes_.subspan(n);
    return n;
  }

 private:
  Bytes bytes_;
};

}  // namespace

void capture(Bytes input) {
  MemorySource source(input);
  wire::CaptureReader reader(source);
  wire::CapturedPacket packet;
  std::size_t packets = 0;
  while (reader.next(packet)) {
    UET_CHECK(packet.wire_length >= packet.data.size());
    UET_CHECK(++packets <= input.size());
    check_frame(packet.link, packet.data, packet.wire_length, wire::DissectOptions{});
  }
  UET_CHECK(!reader.next(packet));  // the end is the end
}

}  // namespace uet::fuzz
