/// Copies between packets and the memory of one device, through pinned buffers of a bounded pool.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace uet::provider {

/// The device's side: copies in the order of the calls, from and to pinned memory, begun here and over at finish().
class DeviceCopier {
 public:
  using Address = std::uint64_t;
  virtual ~DeviceCopier() = default;
  virtual bool start_to_device(Address to, const std::uint8_t* from, std::size_t n) = 0;
  virtual bool start_from_device(std::uint8_t* to, Address from, std::size_t n) = 0;
  virtual bool finish() = 0;
};

/// A copy by the driver costs microseconds however short it is, and packets are short. So what is written is gathered while it is
/// contiguous, of several messages or paths at once, and for a reader that takes packet after packet a buffer is filled ahead.
///
/// Full: without a free buffer to gather in, what was gathered is copied and waited for; with more readers at once than buffers,
/// the one that read longest ago loses its buffer, and then each read copies what it asks for and no more.
class Bounce {
 public:
  static constexpr std::size_t kBytes = 256 * 1024;  ///< one buffer
  static constexpr std::size_t kReaders = 16, kWriters = 16;
  static constexpr std::size_t kPool = (kReaders + kWriters) * kBytes;

  /// `pool`: kPool bytes of pinned memory. Neither is owned.
  Bounce(DeviceCopier& copier, std::uint8_t* pool);

  struct Piece {
    std::uint64_t at = 0;    ///< in the device's memory
    std::size_t n = 0;       ///< at most kBytes
    std::size_t room = 0;    ///< bytes from `at` to the end of the allocation
    bool is_steady = false;  ///< nothing but write() changes it until forget(): may be read ahead
  };
  /// All answer false when the device refused a copy; `out` is undefined then.
  [[nodiscard]] bool read(const Piece& piece, std::uint8_t* out);
  /// In place after the next drain(), and for every read() before.
  [[nodiscard]] bool write(std::uint64_t to, const std::uint8_t* in, std::size_t n);
  [[nodiscard]] bool drain();
  bool is_dirty() const { return is_dirty_; }
  /// The program may have changed these bytes since they were read.
  void forget(std::uint64_t begin, std::uint64_t end);

 private:
  struct Reader {
    std::uint8_t* bytes = nullptr;
    std::uint64_t begin = 0, end = 0;  ///< what it holds; empty: nothing
    std::uint64_t next = 0;            ///< where its reader goes on
    std::uint64_t used = 0;            ///< when it was last asked
  };

  struct Writer {
    std::uint8_t* bytes = nullptr;
    std::uint64_t at = 0;  ///< where its bytes go
    std::size_t n = 0;
    bool is_under_way = false;  ///< its copy has begun

    bool gathers() const { return n > 0 && !is_under_way; }
  };

  Reader* reader_with(std::uint64_t at, std::size_t n);
  Reader& reader_for(std::uint64_t at);
  Writer* writer_for(std::uint64_t to, std::size_t n);
  bool begin(Writer& writer);
  bool begin_all();
  bool finish();

  DeviceCopier& copier_;
  std::array<Reader, kReaders> readers_;
  std::array<Writer, kWriters> writers_;
  std::uint64_t clock_ = 0;
  bool is_dirty_ = false;
};

}  // namespace uet::provider
