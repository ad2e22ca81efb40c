/// Exercises about memory that a peer reaches, and the mix of all operations that plays while the network has faults.

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include <array>
#include <cstring>
#include <deque>
#include <sstream>

#include "apps/interop/peer/session.h"

namespace uet::interop {
namespace {

constexpr std::size_t kRmaSizes[] = {1, 8, 255, 1024, 1025, 4096, 8193, 65536, 262144, 1 << 20};
constexpr std::size_t kRoom = std::size_t{1} << 21;
/// Of this provider: fi_uet(7).
constexpr std::uint64_t kIdempotent = std::uint64_t{1} << 60;

void write(Session& s, const Session::Memory& m, Operation& operation, const Bytes& from,
           std::uint64_t offset) {
  s.endpoint.post(operation, "fi_write", [&](void* context) {
    return fi_write(s.endpoint.ep(), from.data(), from.size(), nullptr, s.peer,
                    m.their_base + offset, m.their_key, context);
  });
}

void read(Session& s, const Session::Memory& m, Operation& operation, Bytes& into,
          std::uint64_t offset) {
  s.endpoint.post(operation, "fi_read", [&](void* context) {
    return fi_read(s.endpoint.ep(), into.data(), into.size(), nullptr, s.peer,
                   m.their_base + offset, m.their_key, context);
  });
}

std::uint64_t word(const Bytes& bytes, std::size_t index) {
  std::uint64_t out = 0;
  std::memcpy(&out, bytes.data() + index * sizeof out, sizeof out);
  return out;
}

void expect_word(const Bytes& bytes, std::size_t index, std::uint64_t wanted, const char* what) {
  if (const std::uint64_t got = word(bytes, index); got != wanted)
    throw std::runtime_error(std::string(what) + " left " + std::to_string(got) + ", should be " +
                             std::to_string(wanted));
}

void add(Session& s, const Session::Memory& m, Operation& operation, const std::uint64_t& amount,
         std::size_t index) {
  s.endpoint.post(operation, "fi_atomic", [&](void* context) {
    return fi_atomic(s.endpoint.ep(), &amount, 1, nullptr, s.peer,
                     m.their_base + index * sizeof amount, m.their_key, FI_UINT64, FI_SUM, context);
  });
}

struct Fetching {
  Operation operation;
  std::uint64_t before = 0, value = 0, expected = 0;
};

/// Adds and says what was there before.
std::uint64_t fetch_add(Session& s, const Session::Memory& m, std::uint64_t amount,
                        std::size_t index) {
  Fetching& f = s.endpoint.keep<Fetching>();
  f.value = amount;
  s.endpoint.post(f.operation, "fi_fetch_atomic", [&](void* context) {
    return fi_fetch_atomic(s.endpoint.ep(), &f.value, 1, nullptr, &f.before, nullptr, s.peer,
                           m.their_base + index * sizeof amount, m.their_key, FI_UINT64, FI_SUM,
                           context);
  });
  s.endpoint.wait_for(f.operation, "a fetching atomic");
  return f.before;
}

/// Swaps when the word is `expected`; says what was there before.
std::uint64_t swap_if(Session& s, const Session::Memory& m, std::uint64_t expected,
                      std::uint64_t value, std::size_t index) {
  Fetching& f = s.endpoint.keep<Fetching>();
  f.value = value;
  f.expected = expected;
  s.endpoint.post(f.operation, "fi_compare_atomic", [&](void* context) {
    return fi_compare_atomic(s.endpoint.ep(), &f.value, 1, nullptr, &f.expected, nullptr, &f.before,
                             nullptr, s.peer, m.their_base + index * sizeof value, m.their_key,
                             FI_UINT64, FI_CSWAP, context);
  });
  s.endpoint.wait_for(f.operation, "a compare-and-swap");
  return f.before;
}

void expect_before(std::uint64_t got, std::uint64_t wanted, const char* what) {
  if (got != wanted)
    throw std::runtime_error(std::string(what) + " found " + std::to_string(got) + ", should be " +
                             std::to_string(wanted));
}

// --- The mix: both sides at once do what the other side verifies ---

constexpr std::size_t kBlock = 20000, kBlocks = 4;
constexpr std::size_t kCounter = kBlock * kBlocks;  // behind the blocks
static_assert(kCounter % sizeof(std::uint64_t) == 0);

struct Round {
  std::uint64_t first = 0;  ///< of its messages; writes have the ones behind
  std::array<Operation, 3 * kBlocks> operations;
  std::array<Bytes, kBlocks> sent, received, written;
  Bytes back = Bytes(kBlock);
  std::uint64_t one = 1;
};

void post_receives(Session& s, Round& round) {
  for (std::size_t i = 0; i < kBlocks; ++i) {
    round.received[i].assign(kBlock, 0);
    s.endpoint.post(round.operations[i], "fi_recv", [&](void* context) {
      return fi_recv(s.endpoint.ep(), round.received[i].data(), kBlock, nullptr, FI_ADDR_UNSPEC,
                     context);
    });
  }
}

void post_sends_and_writes(Session& s, const Session::Memory& m, Round& round) {
  for (std::size_t i = 0; i < kBlocks; ++i) {
    round.sent[i] = message_of(kBlock, round.first + i);
    s.endpoint.post(round.operations[kBlocks + i], "fi_send", [&](void* context) {
      return fi_send(s.endpoint.ep(), round.sent[i].data(), kBlock, nullptr, s.peer, context);
    });
    round.written[i] = message_of(kBlock, round.first + i + 1);
    write(s, m, round.operations[2 * kBlocks + i], round.written[i], i * kBlock);
  }
}

/// Order is not asked for: each message of the round once, in any receive.
void verify_messages(const Round& round) {
  for (std::size_t i = 0; i < kBlocks; ++i) {
    const std::uint8_t* const bytes = round.received[i].data();
    std::size_t which = 0;
    while (which < kBlocks && first_difference(bytes, kBlock, round.first + which)) ++which;
    if (which == kBlocks) verify(bytes, kBlock, round.first + i, "a message");
    for (std::size_t j = 0; j < i; ++j)
      if (round.received[j] == round.received[i])
        throw std::runtime_error("message " + std::to_string(round.first + which) +
                                 " came twice, and another not at all");
  }
}

void verify_round(Session& s, const Session::Memory& m, Round& round, std::uint64_t number) {
  verify_messages(round);
  for (std::size_t i = 0; i < kBlocks; ++i)
    verify(m.bytes.data() + i * kBlock, kBlock, round.first + i + 1, "a write that was complete");
  expect_word(m.bytes, kCounter / sizeof round.one, number + 1, "adding one");
  read(s, m, round.operations[0], round.back, kBlock);
  s.endpoint.wait_for(round.operations[0], "a read");
  verify(round.back.data(), kBlock, round.first + 2, "a read");
}

}  // namespace

Session::Memory& Session::share(std::size_t size, std::uint64_t flags) {
  Memory& out = endpoint.keep<Memory>();
  out.bytes.assign(size, 0);
  fid_mr* const mr = endpoint.open_memory(out.bytes, flags);
  std::ostringstream ours;
  ours << fi_mr_key(mr) << ' ' << endpoint.base_of(out.bytes);
  control.say(ours.str());
  std::istringstream(control.hear()) >> out.their_key >> out.their_base;
  return out;
}

void play_writes(Session& s) {
  Session::Memory& m = s.share(kRoom);
  std::uint64_t number = 0;
  for (const bool to_server : {true, false}) {
    for (const std::size_t size : kRmaSizes) {
      ++number;
      const std::size_t offset = number % 64;  // also where nothing is aligned
      if (s.is_server != to_server) {
        Operation& operation = s.endpoint.keep<Operation>();
        const Bytes& bytes = s.endpoint.keep<Bytes>(message_of(size, number));
        write(s, m, operation, bytes, offset);
        s.endpoint.wait_for(operation, "a write");
        s.control.meet("written");
        s.control.meet("verified");
      } else {
        s.control.meet("written");
        verify(m.bytes.data() + offset, size, number, "a write that was complete");
        s.control.meet("verified");
      }
    }
  }
}

void play_write_data(Session& s) {
  constexpr std::size_t kSlot = 5000;
  constexpr unsigned kCount = 32;
  Session::Memory& m = s.share(kSlot * kCount);
  for (const bool to_server : {true, false}) {
    s.control.meet("data");
    if (s.is_server != to_server) {
      auto& operations = s.endpoint.keep<std::deque<Operation>>(kCount);
      auto& bytes = s.endpoint.keep<std::deque<Bytes>>();
      for (unsigned i = 0; i < kCount; ++i) {
        bytes.push_back(message_of(i % 2 == 0 ? 100 : kSlot, i + 1));
        s.endpoint.post(operations[i], "fi_writedata", [&](void* context) {
          return fi_writedata(s.endpoint.ep(), bytes[i].data(), bytes[i].size(), nullptr, i, s.peer,
                              m.their_base + i * kSlot, m.their_key, context);
        });
      }
      for (Operation& operation : operations)
        s.endpoint.wait_for(operation, "a write with immediate data");
    } else {
      std::vector<bool> was_there(kCount, false);
      for (unsigned taken = 0; taken < kCount; ++taken) {
        s.endpoint.wait_until([&] { return s.endpoint.remote_data.size() > taken; },
                              "immediate data does not come");
        const std::uint64_t data = s.endpoint.remote_data[taken];
        if (data >= kCount || was_there[data])
          throw std::runtime_error("immediate data " + std::to_string(data) +
                                   " was not sent, or comes twice");
        was_there[data] = true;
        verify(m.bytes.data() + data * kSlot, data % 2 == 0 ? 100 : kSlot, data + 1,
               "the write that its immediate data announced");
      }
      s.endpoint.remote_data.clear();
    }
    s.control.meet("done");
  }
}

void play_reads(Session& s) {
  Session::Memory& m = s.share(kRoom);
  fill(m.bytes.data(), m.bytes.size(), s.is_server ? 1 : 2);
  s.control.meet("filled");
  for (const bool from_server : {true, false}) {
    if (s.is_server != from_server) {
      auto& operations = s.endpoint.keep<std::deque<Operation>>(std::size(kRmaSizes));
      auto& bytes = s.endpoint.keep<std::deque<Bytes>>();
      for (std::size_t i = 0; i < std::size(kRmaSizes); ++i) {
        bytes.emplace_back(kRmaSizes[i]);
        read(s, m, operations[i], bytes[i], 0);
      }
      for (std::size_t i = 0; i < std::size(kRmaSizes); ++i) {
        s.endpoint.wait_for(operations[i], "a read");
        verify(bytes[i].data(), kRmaSizes[i], s.is_server ? 2 : 1, "a read");
      }
    }
    s.control.meet("read");
  }
}

void play_atomics(Session& s) {
  constexpr unsigned kCount = 100;
  constexpr std::size_t kAdded = 0, kFetched = 1, kSwapped = 2;
  Session::Memory& m = s.share(4096);
  if (!s.is_server) {
    auto& operations = s.endpoint.keep<std::deque<Operation>>(kCount);
    auto& amounts = s.endpoint.keep<std::deque<std::uint64_t>>();
    for (unsigned i = 0; i < kCount; ++i) {
      amounts.push_back(i + 1);
      add(s, m, operations[i], amounts.back(), kAdded);
    }
    for (Operation& operation : operations) s.endpoint.wait_for(operation, "an atomic");
    for (unsigned i = 0; i < kCount; ++i) {
      expect_before(fetch_add(s, m, 3, kFetched), std::uint64_t{3} * i, "a fetching atomic");
      expect_before(swap_if(s, m, i, i + 1, kSwapped), i, "a compare-and-swap");
    }
    expect_before(swap_if(s, m, 7, 8, kSwapped), kCount, "a compare-and-swap that must not swap");
  }
  s.control.meet("atomics");
  if (s.is_server) {
    expect_word(m.bytes, kAdded, std::uint64_t{kCount} * (kCount + 1) / 2, "adding");
    expect_word(m.bytes, kFetched, std::uint64_t{3} * kCount, "fetching and adding");
    expect_word(m.bytes, kSwapped, kCount, "comparing and swapping");
  }
  s.control.meet("verified");
}

void play_idempotent(Session& s) {
  constexpr std::size_t kSlot = 1024;
  constexpr unsigned kCount = 32;
  Session::Memory& m = s.share(kSlot * kCount, kIdempotent);
  if (!s.is_server) {
    for (unsigned i = 0; i < kCount; ++i) {
      Operation& operation = s.endpoint.keep<Operation>();
      Bytes& bytes = s.endpoint.keep<Bytes>(message_of(kSlot, i + 1));
      iovec iov{bytes.data(), bytes.size()};
      fi_rma_iov there{m.their_base + i * kSlot, kSlot, m.their_key};
      fi_msg_rma message{&iov, nullptr, 1, s.peer, &there, 1, nullptr, 0};
      for (const bool is_read : {false, true}) {
        s.endpoint.post(operation, "an idempotent operation", [&](void* context) {
          message.context = context;
          const std::uint64_t flags = kIdempotent | FI_COMPLETION;
          return is_read ? fi_readmsg(s.endpoint.ep(), &message, flags)
                         : fi_writemsg(s.endpoint.ep(), &message, flags);
        });
        s.endpoint.wait_for(operation, "an idempotent operation");
        if (!is_read) std::fill(bytes.begin(), bytes.end(), std::uint8_t{0});
      }
      verify(bytes.data(), kSlot, i + 1, "an idempotent read of what was written");
    }
  }
  s.control.meet("idempotent");
  for (unsigned i = 0; s.is_server && i < kCount; ++i)
    verify(m.bytes.data() + i * kSlot, kSlot, i + 1, "an idempotent write");
  s.control.meet("verified");
}

void play_mixed(Session& s) {
  Session::Memory& m = s.share(kCounter + sizeof(std::uint64_t));
  Round& round = s.endpoint.keep<Round>();
  for (unsigned number = 0; number < s.rounds; ++number) {
    round.first = std::uint64_t{number} * kBlocks;
    post_receives(s, round);
    s.control.meet("round " + std::to_string(number));
    post_sends_and_writes(s, m, round);
    for (Operation& operation : round.operations) s.endpoint.wait_for(operation, "an operation");
    add(s, m, round.operations[0], round.one, kCounter / sizeof round.one);
    s.endpoint.wait_for(round.operations[0], "an atomic");
    s.control.meet("end " + std::to_string(number));
    verify_round(s, m, round, number);
  }
  s.control.meet("mixed");
}

}  // namespace uet::interop
