#include <algorithm>

#include "lib/base/check.h"
#include "lib/wire/capture_reader.h"
#include "lib/wire/packet_runs.h"
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

template <typename Reader>
void read_all(Reader& reader, std::size_t most_packets) {
  wire::CapturedPacket packet;
  std::size_t packets = 0;
  while (reader.next(packet)) {
    UET_CHECK(packet.wire_length >= packet.data.size());
    UET_CHECK(++packets <= most_packets);
    check_frame(packet.link, packet.data, packet.wire_length);
  }
  UET_CHECK(!reader.next(packet));  // the end is the end
}

}  // namespace

void capture(Bytes input) {
  MemorySource frames(input), packets(input);
  wire::CaptureReader frame_reader(frames);
  read_all(frame_reader, input.size());
  wire::PacketReader packet_reader(packets, {});
  constexpr std::size_t kRunPackets = 129;
  read_all(packet_reader, input.size() * kRunPackets);
}

}  // namespace uet::fuzz
