#include <algorithm>

#include "lib/base/check.h"
#include "lib/wire/capture_reader.h"
#include "tests/fuzz/targets.h"

namespace uet::fuzz {
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
    check_frame(packet.link, packet.data, packet.wire_length);
  }
  UET_CHECK(!reader.next(packet));  // the end is the end
}

}  // namespace uet::fuzz
