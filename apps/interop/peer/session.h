/// A server and a client that play one exercise. Each side runs the same function; where they differ it asks `is_server`.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "apps/interop/peer/control.h"
#include "apps/interop/peer/endpoint.h"
#include "apps/interop/peer/pattern.h"

namespace uet::interop {

struct Session {
  Endpoint& endpoint;
  Control& control;
  bool is_server = false;
  unsigned rounds = 1;
  fi_addr_t peer = FI_ADDR_UNSPEC;

  /// What a peer may reach here, and what we may reach at the peer.
  struct Memory {
    Bytes bytes;
    std::uint64_t their_key = 0, their_base = 0;
  };
  /// Registers `size` bytes at both sides.
  Memory& share(std::size_t size, std::uint64_t flags = 0);
};

using Exercise = void (*)(Session&);

struct ExerciseEntry {
  std::string_view name, title;
  Wanted wanted;
  Exercise play;
};

/// In exercises_messages.cc and exercises_memory.cc.
void play_sends(Session& session);
void play_tagged(Session& session);
void play_ordered(Session& session);
void play_datagrams(Session& session);
void play_writes(Session& session);
void play_write_data(Session& session);
void play_reads(Session& session);
void play_atomics(Session& session);
void play_idempotent(Session& session);
void play_mixed(Session& session);

constexpr unsigned kManyMessages = 5;  ///< of each client

/// Many clients and one server, each with a connection of its own: messages that the server sends back.
void serve_many(Endpoint& endpoint, std::vector<Control>& clients);
void play_one_of_many(Session& session);

std::span<const ExerciseEntry> exercises();
const ExerciseEntry* find_exercise(std::string_view name);

}  // namespace uet::interop
