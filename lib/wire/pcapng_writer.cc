#include "lib/wire/pcapng_writer.h"

#include "lib/base/byte_cursor.h"

namespace uet::wire {
namespace {

/// Writes one block in network byte order; the length fields are filled in at the end.
class Block {
 public:
  Block(std::vector<std::uint8_t>& out, std::uint32_t type) : out_(out), start_(out.size()) {
    u32(type);
    u32(0);
  }
  ~Block() {
    const auto total = static_cast<std::uint32_t>(out_.size() - start_ + 4);
    u32(total);
    base::store_be(out_.data() + start_ + 4, total);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void u16(std::uint16_t v) { put(v); }
  void u32(std::uint32_t v) { put(v); }
  void u64(std::uint64_t v) { put(v); }
  void bytes(std::span<const std::uint8_t> v) {
    out_.insert(out_.end(), v.begin(), v.end());
    out_.resize(out_.size() + (4 - v.size() % 4) % 4);
  }
  void option(std::uint16_t code, std::span<const std::uint8_t> value) {
    u16(code);
    u16(static_cast<std::uint16_t>(value.size()));
    bytes(value);
  }
  void option(std::uint16_t code, std::string_view text) {
    text = text.substr(0, kTextMax);
    option(code, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  }
  void end_of_options() { u32(0); }

 private:
  static constexpr std::size_t kTextMax = 60000;  // an option length has 16 bits

  template <typename T>
  void put(T v) {
    const std::size_t at = out_.size();
    out_.resize(at + sizeof v);
    base::store_be(out_.data() + at, v);
  }
  std::vector<std::uint8_t>& out_;
  std::size_t start_;
};

}  // namespace

void append_file_start(std::vector<std::uint8_t>& out, const FileStart& start) {
  {
    Block section(out, 0x0a0d0d0a);
    section.u32(0x1a2b3c4d);
    section.u16(1);  // version 1.0
    section.u16(0);
    section.u64(~std::uint64_t{0});  // section length not given
    constexpr std::uint16_t kSectionComment = 1, kUserApplication = 4;
    if (!start.comment.empty()) section.option(kSectionComment, start.comment);
    section.option(kUserApplication, start.application);
    section.end_of_options();
  }
  Block interface(out, 1);
  interface.u16(static_cast<std::uint16_t>(start.link));
  interface.u16(0);
  interface.u32(start.snap_length);
  constexpr std::uint16_t kName = 2, kTimeResolution = 9;
  interface.option(kName, start.interface_name);
  constexpr std::uint8_t kNanoseconds[] = {9};
  interface.option(kTimeResolution, kNanoseconds);
  interface.end_of_options();
}

void append_packet(std::vector<std::uint8_t>& out, const PacketRecord& record) {
  Block block(out, 6);
  block.u32(0);
  block.u64(record.time_ns);
  block.u32(static_cast<std::uint32_t>(record.data.size()));
  block.u32(static_cast<std::uint32_t>(record.wire_length == 0 ? record.data.size()
                                                               : record.wire_length));
  block.bytes(record.data);
  constexpr std::uint16_t kComment = 1, kFlags = 2, kDropCount = 4;
  if (!record.comment.empty()) block.option(kComment, record.comment);
  if (record.direction != PacketDirection::kUnknown) {
    std::uint8_t flags[4];
    base::store_be(flags, static_cast<std::uint32_t>(record.direction));
    block.option(kFlags, flags);
  }
  if (record.lost_before != 0) {
    std::uint8_t count[8];
    base::store_be(count, record.lost_before);
    block.option(kDropCount, count);
  }
  block.end_of_options();
}

}  // namespace uet::wire
