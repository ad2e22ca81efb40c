/// A program with an endpoint of the C++ library, without any setting, led by lines on its standard input; each is answered by one line.
///
///   open      the address it has, as text and as bytes, or why it has none
///   send B    a message to the endpoint whose bytes these are: "sent", or why not
///   receive   "received" once one is there
///   quit
#include <uet/endpoint.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace {

std::unique_ptr<uet::Endpoint> endpoint;

std::string open() {
  std::string error;
  endpoint = uet::Endpoint::open({}, error);
  if (endpoint == nullptr) return error;
  std::string bytes;
  char digits[3];
  for (const std::uint8_t byte : endpoint->address()) {
    std::snprintf(digits, sizeof digits, "%02x", byte);
    bytes += digits;
  }
  return endpoint->address_text() + " " + bytes;
}

std::string wait_for(const char* success) {
  const auto completion = endpoint->wait(std::chrono::seconds(10));
  if (!completion) return "nothing in ten seconds";
  return completion->ok ? success : completion->reason;
}

std::string send(const std::string& digits) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t at = 0; at + 1 < digits.size(); at += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(digits.substr(at, 2), nullptr, 16)));
  const auto peer = endpoint->add_peer(bytes);
  if (!peer) return "these bytes are no address";
  static const char message[] = "a message";
  while (endpoint->send(*peer, 1, message, sizeof message, nullptr) == uet::Post::kTryAgain)
    endpoint->turn();
  return wait_for("sent");
}

std::string receive() {
  static char message[64];
  while (endpoint->receive(1, 0, message, sizeof message, nullptr) == uet::Post::kTryAgain)
    endpoint->turn();
  return wait_for("received");
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line) && line != "quit";) {
    const std::string answer = line == "open"              ? open()
                               : line.starts_with("send ") ? send(line.substr(5))
                                                           : receive();
    std::cout << answer << std::endl;
  }
  return 0;
}
