/// An Ultra Ethernet Transport endpoint for programs that do not want libfabric: link with -luet.
///
/// One Endpoint is one fabric endpoint with one address. It belongs to one thread, and sends and receives nothing
/// unless turn() or wait() is called. With keys it has threads that look at their files, and DPDK ports have theirs. Buffers stay the
/// caller's and must stay valid until their completion has been polled; that of a receive which no message takes until the endpoint
/// has gone. Calls may throw std::bad_alloc, but open() and the destructor.
/// A child made by fork() has no endpoint: there, each call does nothing (posts are refused), and so does the destructor (not in one made by clone() or _Fork(), which must not touch it). A program that
/// becomes a daemon opens its endpoints afterwards.
/// Needs C++20 (-std=c++20). examples/two_endpoints.cc is a whole program.
#pragma once

#if defined(_MSVC_LANG) ? _MSVC_LANG < 202002L : __cplusplus < 202002L
#error "uet/endpoint.h needs C++20: compile with -std=c++20"
#endif

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#if defined(__GNUC__)
#define UET_API __attribute__((visibility("default")))
#else
#define UET_API
#endif

namespace uet {

enum class Operation : std::uint8_t { kSend, kReceive, kWrite, kRead };

/// What became of a call that begins an operation.
enum class Post : std::uint8_t {
  kAccepted,  ///< one Completion will tell of its end
  kTryAgain,  ///< no room now: the same call again after turn()
  kRefused,   ///< it would be refused each time; Endpoint::why_not() says why
};

/// The end of one operation. Exactly one for each that was accepted.
struct Completion {
  Operation operation{};
  bool ok = false;
  const char* reason = "";  ///< when not ok
  void* context = nullptr;  ///< as given with the operation
  std::size_t length = 0;   ///< bytes transferred
  std::uint64_t tag = 0;    ///< receives: of the message
};

/// Another endpoint, after add_peer().
using Peer = std::uint32_t;

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

  /// What peers need to know, to be carried by whatever means: 32 bytes.
  std::vector<std::uint8_t> address() const;
  std::string address_text() const;
  /// Nothing when the bytes are no address, or one of the IP family that the endpoint does not have.
  std::optional<Peer> add_peer(std::span<const std::uint8_t> address);

  // Each begins an operation, or has done nothing.
  Post send(Peer to, std::uint64_t tag, const void* data, std::size_t size, void* context);
  /// Takes a message whose tag equals `tag` in the bits that are 0 in `ignore`.
  Post receive(std::uint64_t tag, std::uint64_t ignore, void* data, std::size_t size,
               void* context);
  Post write(Peer to, Window window, std::uint64_t offset, const void* data, std::size_t size,
             void* context);
  Post read(Peer from, Window window, std::uint64_t offset, void* data, std::size_t size,
            void* context);

  /// A sentence about the latest of these calls; empty when it was accepted.
  const char* why_not() const;

  /// Lets every peer write and read `size` bytes at `data` until close_window(). Nothing when there
  /// is no room.
  std::optional<Window> open_window(void* data, std::size_t size);
  void close_window(Window window);

  /// Receives, sends, looks at timers. True when something happened.
  bool turn();
  std::optional<Completion> poll();
  /// Turns until a completion is there or the time is over, sleeping when idle; once where `milliseconds` is 0 or less. Signals do not
  /// end it.
  std::optional<Completion> wait(int milliseconds);

 private:
  struct Impl;
  explicit Endpoint(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace uet
