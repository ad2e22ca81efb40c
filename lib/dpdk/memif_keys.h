/// The arguments of a memif device, for those who check them and those who tell of them. The driver itself takes any key without a word.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace uet::dpdk {

struct MemifKey {
  std::string_view name;
  std::string_view values;  ///< as a user writes them: words, or what they are in angle brackets
  std::string_view help;
};

inline constexpr std::array kMemifKeys = {
    MemifKey{"role", "server|client", "the server owns the socket; client unless said"},
    MemifKey{"id", "<number>",
             "one of several interfaces on a socket; 0 unless said, alike at both ends"},
    MemifKey{"socket", "<path>", "where the two meet"},
    MemifKey{"socket-abstract", "yes|no", "no: the socket is a file; yes unless said"},
    MemifKey{"bsize", "<bytes>", "of a slot; the client says it for both; a packet unless said"},
    MemifKey{"rsize", "<log2 of slots>",
             "size of a ring; the client says it for both; 9 unless said"},
    MemifKey{"mac", "<address>", "made up unless said"},
    MemifKey{"zero-copy", "yes|no",
             "the peer reads and writes the packets of this client where they lie; no unless said"},
    MemifKey{"secret", "<text>", "the same at both ends, or they do not connect; 24 bytes at most"},
    MemifKey{"owner-uid", "<number>", "user that the file of a server's socket is given to"},
    MemifKey{"owner-gid", "<number>", "group that it is given to"},
};

constexpr bool is_memif_key(std::string_view name) {
  for (const MemifKey& key : kMemifKeys)
    if (key.name == name) return true;
  return false;
}

/// "memif knows role=server|client, id=<number>, ...".
inline std::string memif_keys_sentence() {
  std::string out = "memif knows";
  const char* separator = " ";
  for (const MemifKey& key : kMemifKeys) {
    out.append(separator).append(key.name).append("=").append(key.values);
    separator = ", ";
  }
  return out;
}

}  // namespace uet::dpdk
