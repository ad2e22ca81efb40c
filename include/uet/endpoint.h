/// An Ultra Ethernet Transport endpoint for programs that do not want libfabric: link with -luet.
///
/// One Endpoint is one fabric endpoint with one address. It belongs to one thread, which may have several; wake() alone is for others. It sends
/// and receives nothing unless turn() or wait() is called. With keys it has threads that look at their files, and DPDK ports have theirs.
///
/// Buffers stay the caller's and must stay valid until their completion has been polled; that of a receive which no message takes until
/// cancel() or until the endpoint has gone. Calls may throw std::bad_alloc, but open() and the destructor.
///
/// Order. Messages from one Endpoint to one Peer meet the receives there in the order of their send() calls, over whatever paths they take. Nothing
/// else is ordered: a short message may complete before a longer one that was sent first, and a message may be received before what was
/// written or read in calls before it. Who announces a write with a message sends that when the write is complete.
///
/// A child made by fork() has no endpoint: there, each call does nothing (posts are refused), and so does the destructor (not in one made by clone() or _Fork(), which must not touch it). A program that
/// becomes a daemon opens its endpoints afterwards.
///
/// Needs C++20 (-std=c++20). examples/two_endpoints.cc is a whole program.
#pragma once

#if defined(_MSVC_LANG) ? _MSVC_LANG < 202002L : __cplusplus < 202002L
#error "uet/endpoint.h needs C++20: compile with -std=c++20"
#endif

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#if defined(__GNUC__)
#define UET_API __attribute__((visibility("default")))
#else
#define UET_API
#endif

namespace uet {

enum class Operation : std::uint8_t { kSend, kReceive, kWrite, kRead };

/// What became of a call that begins an operation. Unless it was accepted, it has done nothing.
enum class Post : std::uint8_t {
  kAccepted,  ///< one Completion will tell of its end
  /// As many sends, writes and reads are under way as an endpoint may have (4,096, or 2 * FI_UET_TX_SIZE where that is more): the same call again after turn(). Each of
  /// them ends when its target has answered, or after FI_UET_PEER_TIMEOUT of silence; a target that answers, but has no room for the
  /// message, may keep it waiting for ever.
  kTryAgain,
  kRefused,  ///< the same call is refused until something else changes; Endpoint::why_not() says what
};

/// The address of an endpoint, to be carried to its peers by whatever means. The same bytes as those of libfabric's fi_getname().
using Address = std::array<std::uint8_t, 32>;

/// Another endpoint, as the Endpoint knows it that it came from: others refuse it. A value to copy, compare and put into maps.
class Peer {
 public:
  constexpr Peer() = default;  ///< none: refused everywhere
  friend constexpr auto operator<=>(const Peer&, const Peer&) = default;

 private:
  friend class Endpoint;
  friend struct std::hash<Peer>;
  constexpr Peer(std::uint32_t endpoint, std::uint32_t place, std::uint64_t number)
      : number_(number), endpoint_(endpoint), place_(place) {}

  std::uint64_t number_ = 0;    ///< of its endpoint, never twice
  std::uint32_t endpoint_ = 0;  ///< numbered in the process
  std::uint32_t place_ = 0;     ///< another's after remove_peer()
};

/// The end of one operation. Exactly one for each that was accepted.
struct Completion {
  Operation operation{};
  /// Sends: the target has acknowledged the whole message, and keeps it for a receive that is posted later where there is none. It does not say
  /// that a receive took it, or that it fitted there. Writes: the data is in the target's memory. Reads, receives: it is in ours.
  bool ok = false;
  const char* reason = "";  ///< when not ok
  void* context = nullptr;  ///< as given with the operation
  std::size_t length = 0;   ///< bytes transferred
  std::uint64_t tag = 0;    ///< receives: of the message
  /// Receives: who sent the message, where add_peer() was given its address. Without keys (FI_UET_KEYS) this and `sender` are what the packets claim.
  std::optional<Peer> from;
  /// Receives: the address of the sender, for add_peer(): a server answers whom it has never heard of, and forgets it, with
  ///
  ///     if (const auto peer = endpoint->add_peer(completion.sender)) {
  ///       endpoint->send(*peer, ...);
  ///       endpoint->remove_peer(*peer);
  ///     }
  ///
  /// All zero where packets do not tell it: of a sender with FI_UET_INITIATOR_ID, which has to be added by its own address. Such a setting below 2^24
  /// cannot be told from a usual one, and leads to an endpoint that is not there.
  Address sender{};
};

/// A piece of memory that peers may write and read, as told to them by whatever means.
struct Window {
  std::uint64_t key = 0;
};

class UET_API Endpoint {
 public:
  /// Keys and values as in uet.toml(5), keys in lower case: {"port", "udp"}, {"addr", "127.0.0.2"}. Those that are for libfabric programs only
  /// (progress, completion, jobs, mr_endpoint, allow_all_mr) are refused; in a file or the environment they change nothing. Of several ports or
  /// addresses (a|b) it takes the first that can be opened; without an address a kernel UDP port has
  /// that of the host, which processes without keys share. Settings that are not given come from the
  /// environment (FI_UET_*) and then from the defaults. Null, and a sentence in `error`, when the
  /// endpoint cannot be opened.
  static std::unique_ptr<Endpoint> open(const std::map<std::string, std::string>& settings,
                                        std::string& error);
  /// Tells peers goodbye, which may take 1.5 s where acknowledgements get lost; operations that are not complete are dropped without
  /// completion.
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  Address address() const;
  std::string address_text() const;

  /// Of address() there. Nothing, and a reason in why_not(), when the bytes are no address, or one of the IP family that the endpoint does not have, or
  /// when 131,072 peers are known. The same address is the same Peer; two addresses of one sender are two, and completions name one of them.
  std::optional<Peer> add_peer(std::span<const std::uint8_t> address);
  /// Takes back one add_peer(). After the last one the Peer is refused for good; what was begun with it goes on, and knows no order with what is sent to a Peer
  /// that is added for the same address later. False when it is none of this endpoint.
  bool remove_peer(Peer peer);

  // Each begins an operation, or has done nothing. `data` may be null where `size` is 0. `context` is the caller's, for the Completion.

  /// More than one packet (1 to 8 KiB, by the route) is refused where the peer's address names the AI Base or AI Full profile without HPC, or messages
  /// of one packet: it takes longer sends without an order alone. No endpoint of this implementation is one of those.
  Post send(Peer to, std::uint64_t tag, const void* data, std::size_t size, void* context);
  /// Takes a message whose tag equals `tag` in the bits that are 0 in `ignore`. Refused while 65,536 receives wait, or 4 * FI_UET_RX_SIZE where that is more: messages
  /// and cancel() make room.
  Post receive(std::uint64_t tag, std::uint64_t ignore, void* data, std::size_t size,
               void* context);
  Post write(Peer to, Window window, std::uint64_t offset, const void* data, std::size_t size,
             void* context);
  Post read(Peer from, Window window, std::uint64_t offset, void* data, std::size_t size,
            void* context);
  /// Takes back one receive that no message has taken yet, or one other operation of which not all has left, posted with `context`; of several any. Its
  /// completion, not ok, follows. False when there is none.
  bool cancel(const void* context);

  /// A sentence about the latest call of those above and of open_window(); empty when it did what it was asked for.
  const char* why_not() const;

  /// Lets every peer write and read `size` bytes at `data` until close_window(). Their accesses are not announced: the memory changes without a word.
  /// Nothing, and a reason in why_not(), when there is no room for another window, or no memory.
  std::optional<Window> open_window(void* data, std::size_t size);
  void close_window(Window window);

  /// Receives, sends, looks at timers. True when something happened.
  bool turn();
  std::optional<Completion> poll();
  /// Turns until a completion is there, the time is over or wake() is called, sleeping when idle; once where `limit` is 0 or less. Signals
  /// do not end it.
  std::optional<Completion> wait(std::chrono::milliseconds limit);

  // For programs that sleep in a loop of their own, on several endpoints or on other descriptors too:
  //
  //     endpoint->turn();
  //     look at what other threads wrote before wake();
  //     while (const auto completion = endpoint->poll()) ...
  //     ppoll(descriptors with endpoint->wakeup_fd(), at most endpoint->may_sleep_for());

  /// Becomes readable when turn() has work that may_sleep_for() did not know of. To be polled for reading (epoll, poll, io_uring) and for nothing
  /// else. The same for the life of the endpoint.
  int wakeup_fd() const;
  /// How long the thread may sleep before it calls turn(), unless wakeup_fd() becomes readable; 0 when there is something to turn() or to poll() now. To be
  /// called before each sleep, with no other call of this endpoint between: it arms wakeup_fd(). Over ports that wake no sleeper it is a millisecond at most.
  std::chrono::nanoseconds may_sleep_for();
  /// From any thread, and from signal handlers: ends wait(), or the next one, or makes wakeup_fd() readable until turn() has taken the call. What was
  /// written before it is to be looked at behind that wait() or turn(), not in front: several calls may be taken as one.
  void wake();

 private:
  struct Impl;
  explicit Endpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace uet

template <>
struct std::hash<uet::Peer> {
  std::size_t operator()(const uet::Peer& peer) const noexcept {
    return std::hash<std::uint64_t>()(std::uint64_t{peer.endpoint_} << 40 ^ peer.number_);
  }
};
