/// A program that uses libfabric in any order and with odd arguments, as the fuzzer's bytes say, and a model of what the calls
/// must answer:
///
///  - an object that another one uses says -FI_EBUSY to fi_close(), any other one closes;
///  - an accepted operation completes once, sends and remote accesses within a bounded time; nothing else completes, and nothing
///    once its endpoint is closed;
///  - a message arrives at most once, as it was sent, and only at an endpoint of its sender's type;
///  - what datagrams and idempotent operations cannot promise is refused.
///
/// Buffers live exactly as long as the interface says, so that the address sanitizer sees a later access.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tests/fuzz/choices.h"

namespace uet::fuzz {

/// FI_UET_IDEMPOTENT, and what the keys of its regions have. [fi_uet(7), decision 55]
inline constexpr std::uint64_t kIdempotent = std::uint64_t{1} << 60;
inline constexpr std::uint64_t kIdempotentKey = std::uint64_t{1} << 63;

enum class Kind : std::uint8_t { kFabric, kEq, kDomain, kAv, kCq, kCntr, kEp, kMr, kSet };
inline constexpr std::size_t kKinds = 9;

/// One libfabric object and what the model knows of it.
struct Thing {
  Kind kind{};
  fid* f = nullptr;  ///< null while closed
  int users = 0;
  std::vector<Thing*> uses;  ///< each holds it back from closing
  Thing* domain = nullptr;

  fi_cq_format format = FI_CQ_FORMAT_TAGGED;        // cq
  bool spins = false;                               // cq, cntr: FI_WAIT_YIELD
  std::vector<fi_addr_t> addresses;                 // av
  std::vector<std::uint8_t> bytes;                  // ep: its name; mr: its memory
  Thing *tx_cq = nullptr, *rx_cq = nullptr;         // ep
  bool tx_selective = false, rx_selective = false;  // ep
  bool is_enabled = false;                          // ep
  bool is_datagram = false;                         // ep
  std::uint64_t tx_flags = 0, rx_flags = 0;         // ep: of calls that have none
  bool is_fenced = false;  // ep: operations may stand behind one that never ends
};

/// An operation that was accepted, by its context.
struct Operation {
  Thing* ep = nullptr;
  Thing* cq = nullptr;
  std::uint64_t flags = 0;  ///< that its entry has
  bool tells_success = true;
  bool must_end = false;  ///< with or without a receive
  bool is_multi = false, is_open = true, is_claimed = false, is_receive = false, is_peek = false;
  std::unique_ptr<std::vector<std::uint8_t>> buffer;
};

struct Sent {
  std::size_t length = 0;
  bool is_tagged = false, is_datagram = false, has_arrived = false;
};

template <typename T>
T* as(Thing& t) {
  return reinterpret_cast<T*>(t.f);
}

class Calls {
 public:
  struct Setup {
    /// A message that its target has no room for waits for a receive; without, it is given up.
    bool has_rendezvous = false;
    /// Each address also has a datagram endpoint, and a region for idempotent operations.
    bool has_datagrams = false;
  };
  explicit Calls(const Setup& setup);
  ~Calls();
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  void step(Choices& in);
  /// Closes everything in the right order: all operations have completed, all closes work.
  void finish();

 private:
  static constexpr std::array<std::size_t, kKinds> kSlots = {1, 2, 3, 3, 5, 3, 5, 3, 2};
  using Do = void (Calls::*)(Choices&);

  std::vector<Thing>& all(Kind kind) { return things_[static_cast<std::size_t>(kind)]; }
  Thing* pick(Kind kind, std::uint8_t choice);
  Thing* pick_free(Kind kind);
  void opened(Thing& t, fid* f, std::initializer_list<Thing*> uses);
  void use(Thing& user, Thing& used);

  // Objects: calls_objects.cc
  void open(Choices& in);
  void open_domain(std::uint8_t address, bool is_odd);
  void open_queue(Thing& domain, std::uint8_t how);
  void open_endpoint(Thing& domain, std::uint8_t how);
  void start_endpoint(std::size_t address, std::uint8_t how);
  void open_memory(Thing& domain, Choices& in);
  void open_memory(Thing& domain, std::uint8_t how, std::uint64_t access);
  void open_other(Thing& domain, Kind kind, std::uint8_t how);
  void close(Choices& in);
  void close_one(Thing& t);
  void settle();
  void look(Choices& in);

  // What they are told and asked: calls_control.cc
  void bind(Choices& in);
  void enable(Choices& in);
  void enabled(Thing& ep);
  void insert(Choices& in);
  void ask(Choices& in);
  void ask_endpoint(Thing& ep, Choices& in);

  // Data: calls_data.cc
  void send(Choices& in);
  void receive(Choices& in);
  void remote(Choices& in);
  static void check_promises(const Thing& ep, std::uint64_t flags, std::size_t length);
  void peek(Choices& in);
  void claim(Choices& in);
  void cancel(Choices& in);

  // Completions: calls_completions.cc
  void read(Choices& in);
  void wait(Choices& in);
  void count(Choices& in);
  void pass_time(Choices& in);
  void turn_all();
  void drain(Thing& cq);
  void drain_all();
  ssize_t take(Thing& cq, std::size_t count, int timeout_ms);
  void take_error(Thing& cq);
  void completed(Thing& cq, std::uint64_t context, std::uint64_t flags, std::size_t length,
                 std::uint64_t tag, std::uint64_t data, int error);
  void arrived(Operation& op, std::uint64_t id, bool is_tagged, std::size_t length, int error);
  fi_addr_t destination(Thing& ep, std::uint8_t choice);
  std::uint64_t add(Thing& ep, bool transmits, std::uint64_t flags, bool has_completion,
                    std::unique_ptr<std::vector<std::uint8_t>> buffer);
  void posted(ssize_t ret, std::uint64_t context);

  std::array<std::vector<Thing>, kKinds> things_;
  std::map<std::uint64_t, Operation> operations_;  ///< by context
  const bool has_rendezvous_;
  std::uint64_t last_context_ = 0;
  std::map<std::uint64_t, Sent> sent_;  ///< by what the tag or the data of the message says
  std::uint64_t last_sent_ = 0;
  std::vector<std::uint64_t> claims_;  ///< contexts of messages that were peeked at and claimed
};

}  // namespace uet::fuzz
