// Two endpoints on one thread, by the library alone: a message, its answer to a sender that was never added, and a write into memory.
//
//   g++ -std=c++20 -Iinclude -o /tmp/two_endpoints examples/two_endpoints.cc -Lbuild/embed -luet -Wl,-rpath,$PWD/build/embed
//   /tmp/two_endpoints
//
// Installed: g++ -std=c++20 two_endpoints.cc $(pkg-config --cflags --libs uet)
#include <poll.h>
#include <uet/endpoint.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

namespace {

using namespace std::chrono_literals;

std::unique_ptr<uet::Endpoint> open_at(const char* address) {
  std::string error;
  auto endpoint = uet::Endpoint::open({{"port", "udp"}, {"addr", address}}, error);
  if (endpoint == nullptr) std::fprintf(stderr, "%s\n", error.c_str());
  return endpoint;
}

int fail(const char* what, const char* why) {
  std::fprintf(stderr, "%s: %s\n", what, why);
  return 1;
}

/// Repeats a call that finds no room. False when it is refused, as it would be each time.
template <typename Call>
bool post(uet::Endpoint& at, const char* what, Call call) {
  uet::Post post;
  while ((post = call()) == uet::Post::kTryAgain) at.turn();
  if (post == uet::Post::kRefused) fail(what, at.why_not());
  return post == uet::Post::kAccepted;
}

/// The next good completion of `at`. The thread sleeps while neither endpoint has anything to do; nothing when none comes in ten seconds, or
/// a bad one.
std::optional<uet::Completion> next(uet::Endpoint& at, uet::Endpoint& other) {
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (std::chrono::steady_clock::now() < end) {
    at.turn();
    other.turn();
    if (const auto completion = at.poll()) {
      if (!completion->ok) std::fprintf(stderr, "failed: %s\n", completion->reason);
      return completion->ok ? completion : std::nullopt;
    }
    pollfd fds[] = {{at.wakeup_fd(), POLLIN, 0}, {other.wakeup_fd(), POLLIN, 0}};
    const std::chrono::nanoseconds limit =
        std::min<std::chrono::nanoseconds>({at.may_sleep_for(), other.may_sleep_for(), 1s});
    const timespec time{limit / 1s, (limit % 1s).count()};
    ppoll(fds, 2, &time, nullptr);
  }
  std::fprintf(stderr, "nothing came\n");
  return std::nullopt;
}

}  // namespace

int main() {
  const auto client = open_at("127.0.0.2"), server = open_at("127.0.0.3");
  if (client == nullptr || server == nullptr) return 1;
  // Addresses travel by whatever means a program has; here they are in the same process.
  const auto to_server = client->add_peer(server->address());
  if (!to_server) return fail("add_peer", client->why_not());
  char inbox[64] = "", answer[64] = "", memory[64] = "";
  const auto window = server->open_window(memory, sizeof memory);
  if (!window) return fail("open_window", server->why_not());

  // A request, and an answer to its sender.
  const char request[] = "a message", reply[] = "an answer", data[] = "written";
  if (!post(*server, "receive",
            [&] { return server->receive(7, 0, inbox, sizeof inbox, nullptr); }) ||
      !post(*client, "receive",
            [&] { return client->receive(8, 0, answer, sizeof answer, answer); }) ||
      !post(*client, "send",
            [&] { return client->send(*to_server, 7, request, sizeof request, nullptr); }))
    return 1;
  const auto received = next(*server, *client);
  if (!received) return 1;
  const auto sender = server->add_peer(received->sender);
  if (!sender) return fail("add_peer", server->why_not());
  if (!post(*server, "send",
            [&] { return server->send(*sender, 8, reply, sizeof reply, nullptr); }))
    return 1;
  server->remove_peer(*sender);
  // The send and the receive of the client, in any order, and the send of the server.
  if (!next(*client, *server) || !next(*client, *server) || !next(*server, *client)) return 1;

  // A write. The server hears nothing of it: a message would tell, sent now that the write is complete.
  if (!post(*client, "write",
            [&] { return client->write(*to_server, *window, 0, data, sizeof data, nullptr); }))
    return 1;
  if (!next(*client, *server)) return 1;
  std::printf("%s got \"%s\" and answered \"%s\"; its memory: \"%s\"\n",
              server->address_text().c_str(), inbox, answer, memory);
  const bool is_right = std::strcmp(inbox, request) == 0 && std::strcmp(answer, reply) == 0 &&
                        std::strcmp(memory, data) == 0;
  return is_right ? 0 : 1;
}
