// Two endpoints in one program, by the library alone: a message from one to the other, and a write into its memory.
//
//   g++ -std=c++20 -Iinclude -o /tmp/two_endpoints examples/two_endpoints.cc -Lbuild/embed -luet -Wl,-rpath,$PWD/build/embed
//   /tmp/two_endpoints
//
// Installed: g++ -std=c++20 two_endpoints.cc $(pkg-config --cflags --libs uet)
#include <uet/endpoint.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

namespace {

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

/// Turns both loops until `at` has a completion. False when none comes in ten seconds, or a bad one.
bool wait(uet::Endpoint& at, uet::Endpoint& other) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < end) {
    at.turn();
    other.turn();
    if (const auto completion = at.poll()) {
      if (!completion->ok) std::fprintf(stderr, "failed: %s\n", completion->reason);
      return completion->ok;
    }
  }
  std::fprintf(stderr, "nothing came\n");
  return false;
}

}  // namespace

int main() {
  const auto a = open_at("127.0.0.2"), b = open_at("127.0.0.3");
  if (a == nullptr || b == nullptr) return 1;
  // Addresses travel by whatever means a program has; here they are in the same process.
  const auto to_b = a->add_peer(b->address());
  if (!to_b) return fail("add_peer", "this is no address, or there is no room for another peer");
  char inbox[64] = "", memory[64] = "";
  const auto window = b->open_window(memory, sizeof memory);
  if (!window) return fail("open_window", "there is no room for another window");

  const char message[] = "a message", data[] = "written";
  // A call that is refused is refused each time; one that finds no room goes on after a turn.
  if (b->receive(7, 0, inbox, sizeof inbox, nullptr) != uet::Post::kAccepted)
    return fail("receive", b->why_not());
  uet::Post post;
  while ((post = a->send(*to_b, 7, message, sizeof message, nullptr)) == uet::Post::kTryAgain)
    a->turn();
  if (post == uet::Post::kRefused) return fail("send", a->why_not());
  if (!wait(*b, *a) || !wait(*a, *b)) return 1;
  while ((post = a->write(*to_b, *window, 0, data, sizeof data, nullptr)) == uet::Post::kTryAgain)
    a->turn();
  if (post == uet::Post::kRefused) return fail("write", a->why_not());
  if (!wait(*a, *b)) return 1;
  std::printf("%s from %s: \"%s\"; its memory: \"%s\"\n", b->address_text().c_str(),
              a->address_text().c_str(), inbox, memory);
  return std::strcmp(inbox, message) == 0 && std::strcmp(memory, data) == 0 ? 0 : 1;
}
