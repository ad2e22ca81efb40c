/// Atomics from A to B, and as an independent sender builds them.
#pragma once

#include <algorithm>
#include <cstring>

#include "ses/amo.h"
#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
inline Bytes bytes_of(std::uint64_t value, std::size_t n = 8) {
  Bytes b(n);
  std::memcpy(b.data(), &value, n);
  return b;
}

inline std::uint64_t value_of(const Bytes& b, std::size_t at = 0) {
  std::uint64_t v = 0;
  std::memcpy(&v, b.data() + at, 8);
  return v;
}

/// The extension of an atomic, as an independent sender would build it.
inline Bytes extension(AmoOpcode op, AmoDatatype type, const Bytes& operand = {}) {
  Bytes b(4 + operand.size());
  b[0] = static_cast<std::uint8_t>(op);
  b[1] = static_cast<std::uint8_t>(type);
  std::ranges::copy(operand, b.begin() + 4);
  return b;
}

inline Bytes compare_extension(AmoOpcode op, AmoDatatype type, std::uint64_t compare,
                               std::uint64_t swap) {
  Bytes b = extension(op, type, Bytes(32));
  for (std::size_t i = 0; i < 8; ++i) {
    b[4 + 15 - i] = static_cast<std::uint8_t>(compare >> (8 * i));
    b[4 + 31 - i] = static_cast<std::uint8_t>(swap >> (8 * i));
  }
  return b;
}

struct AtomicTest : PairTest {
  using PairTest::PairTest;

  /// Memory that is aligned to more than any element.
  std::uint64_t expose_aligned(std::size_t n = 64, bool read = true, bool write = true) {
    memory.assign(n + 64, 0x5a);
    const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
    pad = (64 - at % 64) % 64;
    const iovec iov{memory.data() + pad, n};
    MemoryRequest m;
    m.iov = {&iov, 1};
    m.remote_read = read;
    m.remote_write = write;
    m.virtual_addressing = false;
    return *sb().register_memory(m);
  }
  std::uint64_t word(std::size_t at = 0) const { return value_of(memory, pad + at); }
  void set_word(std::uint64_t value, std::size_t at = 0) {
    std::memcpy(memory.data() + pad + at, &value, 8);
  }

  static RawRequest raw(std::uint64_t key, SesOpcode opcode, Bytes payload, std::uint32_t length) {
    RawRequest r;
    r.opcode = opcode;
    r.key = key;
    r.length = length;
    r.payload = std::move(payload);
    return r;
  }
  static RawRequest raw_sum(std::uint64_t key, std::uint64_t value = 5) {
    return raw(key, SesOpcode::kAtomic,
               extension(AmoOpcode::kSum, AmoDatatype::kUint64, bytes_of(value)), 8);
  }

  /// One element of uint64 from A to B.
  struct Call {
    AmoOpcode op = AmoOpcode::kSum;
    bool fetching = false;
    std::uint64_t value = 0, compare = 0;
    std::uint64_t offset = 0;
    std::uint64_t context = 1;
    bool tagged = false;
  };
  PostResult<Posted> post_atomic(const Call& call, std::uint64_t key, Bytes* result = nullptr) {
    Bytes value = bytes_of(call.value), compare = bytes_of(call.compare);
    const iovec v = piece(value), c = piece(compare);
    iovec r{};
    AtomicRequest request;
    request.peer = b_of_a;
    request.op = call.op;
    request.type = AmoDatatype::kUint64;
    request.fetching = call.fetching;
    request.tagged = call.tagged;
    if (has_operand(call.op)) request.operand = {&v, 1};
    if (has_compare_operands(call.op)) request.compare = {&c, 1};
    if (call.fetching) {
      r = piece(*result);
      request.result = {&r, 1};
    } else {
      request.inject = true;
    }
    request.key = key;
    request.remote_offset = call.offset;
    request.context = call.context;
    return sa().atomic(fabric.now, ea, request);
  }
  /// Fetching WRITE of one element of any type.
  PostResult<Posted> exchange(AmoDatatype type, std::uint64_t key, Bytes& operand, Bytes& old) {
    const iovec v = piece(operand), o = piece(old);
    AtomicRequest r;
    r.peer = b_of_a;
    r.fetching = true;
    r.op = AmoOpcode::kWrite;
    r.type = type;
    r.operand = {&v, 1};
    r.result = {&o, 1};
    r.key = key;
    return sa().atomic(fabric.now, ea, r);
  }
  std::uint64_t refusals() { return b.trace.drops(base::DropReason::kAtomicRefused); }

  Bytes memory;
  std::size_t pad = 0;
};

}  // namespace uet::ses::testing
