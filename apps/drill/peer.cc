#include "apps/drill/peer.h"

#include <fmt/format.h>

namespace uet::drill {

namespace {

constexpr Capability kCapabilities[] = {
    {"memory", "16 KiB that we may write and read, by a key", "name it: --key"},
    {"receives", "32 untagged receives of 4 KiB wait at the resource index",
     "post them and say --with receives"},
    {"atomic", "atomic operations on that memory", "say --with atomic"},
    {"rudi", "requests without a PDC (RUDI)", "--without rudi was said"},
    {"trimming", "knows trimmed packets by the DSCPs 26 and 28; with --keys only if --with says so",
     "--keys or --without trimming was said"},
    {"relative", "relative addressing", "--absolute or --without relative was said"},
    {"initiator", "it can be made to initiate operations", "give --initiate or --by-hand"},
    {"rod", "ordered delivery (ROD)", "--without rod was said"},
    {"go-back", "drops what comes after a gap of an ordered PDC (others keep it)",
     "--without go-back was said"},
    {"noop", "NOOP control packets", "--without noop was said"},
    {"probe", "PROBE control packets", "--without probe was said"},
    {"remote-data", "takes WRITEs with completion data", "--without remote-data was said"},
    {"ack-data", "puts read data of 8 bytes on the ACK", "--without ack-data was said"},
    {"return-data", "sends read data of 64 bytes as packets of its own",
     "--without return-data was said"},
    {"rations-reads",
     "holds read data back beyond 2000 READs of one reader, and keeps a PDC that acknowledges none "
     "of it for a second",
     "say --with rations-reads"},
    {"crc", "protects packets by the UET CRC", "--protect none, --keys or --without crc was said"},
    {"large-writes", "WRITEs of 1.6 MB, when it initiates", "--without large-writes was said"},
    {"standard-reads", "READs of 100 bytes with the standard header, when it initiates",
     "--without standard-reads was said"},
    {"overlaps", "notices bytes of a message that two of its packets bring (others count bytes)",
     "say --with overlaps"},
    {"unexpected", "keeps the first packet of a message of 900000 bytes that no receive waits for",
     "say --with unexpected"},
    {"numbered", "restores the order of numbered sends, an extension of ours",
     "say --with numbered"},
    {"any-start", "takes PDCs that start at any PSN; with --keys only if --with says so",
     "--keys or --without any-start was said"},
    {"openings", "takes openings that it has not challenged", "it challenges every one"},
    {"secured", "seals packets under the keys of --keys", "give --keys"},
    {"two-keys", "secured, and the key file has a second key",
     "the key file has none: uet-keys rotate"},
    {"replay-window", "secured, and tells packets apart that were seen lately",
     "the key file says that it does not"},
    {"tsc-floor", "secured, and refuses packets that are far older than the newest",
     "the key file says that it does not"},
    {"no-trim-hints", "secured, and drops what was trimmed",
     "the key file says that trimmed packets are hints"},
    {"epoch", "secured, under an epoch other than 0", "the epoch of the key file is 0"},
    {"ssi-keys", "secured, each sender under a key derived from its SSI",
     "the key file has another mode"},
    {"idle-close", "closes a PDC within 10 s when its initiator says nothing any more",
     "say --with idle-close"},
};

}  // namespace

const Capability* find_capability(const std::string& name) {
  for (const Capability& c : kCapabilities)
    if (c.name == name) return &c;
  return nullptr;
}

std::string list_capabilities() {
  std::string text;
  for (const Capability& c : kCapabilities) text += fmt::format("  {:<14} {}\n", c.name, c.meaning);
  return text;
}

}  // namespace uet::drill
