/// An enemy of one endpoint, as a process of its own: what it sends is chosen to crash, silence or fool it.
///
///     enemy opening VICTIM OWN SECONDS     one SYN; says what came back
///     enemy openings VICTIM COUNT          SYNs from as many addresses
///     enemy nacks VICTIM OWN               opens, waits to be asked to close, answers with NACKs for out-of-order packets
///     enemy answers VICTIM COUNT           empty first packets, whose answers are kept, from five addresses
///     enemy reads VICTIM COUNT             first packets of long READs with a wrong key
///     enemy acks VICTIM FORGED             ACKs far below any PSN in use to every PDCID, in the name of FORGED
///     enemy learn VICTIM OWN MEGABYTES SEED   packets that use what the answers taught, from OWN and the two next addresses
///     enemy rain VICTIM OWN COUNT RATE SECONDS SEED   the same at COUNT victims from VICTIM on, by turns, each from three addresses of
///                                                     its own; RATE packets a second in all
///
/// Addresses are IPv4.
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <thread>

#include "apps/sim/attack_plan.h"
#include "lib/wire/codec.h"
#include "tests/fuzz/conversations.h"
#include "tests/hostile/enemy_socket.h"

namespace uet::hostile {

namespace {

using base::Psn;
using net::FabricAddress;
using Clock = std::chrono::steady_clock;

/// Forged sources: nothing listens there.
constexpr std::uint32_t kGhosts = 0x7fe0'0000;  // 127.224.0.0

template <typename H>
Packet packet_of(const H& header) {
  Packet out(H::kSize);
  wire::emit(header, out.data());
  return out;
}

FabricAddress address(const char* text) {
  const auto parsed = FabricAddress::parse(text);
  if (!parsed || !parsed->is_v4()) {
    std::fprintf(stderr, "enemy: %s is no IPv4 address\n", text);
    std::exit(2);
  }
  return *parsed;
}

FabricAddress ghost(std::uint32_t number) {
  return FabricAddress::from_v4(kGhosts + 1 + number);
}

wire::PdsControlSyn noop(bool is_rod, std::uint16_t own_id, Psn start) {
  wire::PdsControlSyn h;
  h.ctl_type = wire::ControlType::kNoop;
  h.isrod = is_rod;
  h.ar = true;
  h.psn = start;
  h.spdcid = own_id;
  return h;
}

/// The first packet of a PDC with this PSN, without a message that could be read.
wire::PdsRequestSyn first(std::uint16_t own_id, Psn start, std::uint16_t number) {
  wire::PdsRequestSyn h;
  h.next_hdr = wire::NextHdr::kRequestStd;
  h.ar = true;
  h.clear_psn_offset = static_cast<std::int16_t>(-1 - number);
  h.psn = start + number;
  h.psn_offset = number;
  h.spdcid = own_id;
  return h;
}

int opening(FabricAddress victim, FabricAddress own, int seconds) {
  EnemySocket socket(own, kUetPort);
  socket.send(victim, packet_of(noop(false, 77, Psn(5000))));
  for (const auto end = Clock::now() + std::chrono::seconds(seconds); Clock::now() < end;)
    socket.receive(50);
  std::printf("in %llu packets %llu bytes, out %llu bytes\n",
              static_cast<unsigned long long>(socket.packets_in()),
              static_cast<unsigned long long>(socket.bytes_in()),
              static_cast<unsigned long long>(socket.bytes_out()));
  return 0;
}

int openings(FabricAddress victim, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i)
    EnemySocket(ghost(i), kUetPort)
        .send(victim, packet_of(noop(false, static_cast<std::uint16_t>(i + 1), Psn(i * 7919))));
  return 0;
}

/// Proves by its answers that it hears the victim, so that the PDC is kept and closed in good order.
int nacks(FabricAddress victim, FabricAddress own) {
  EnemySocket socket(own, kUetPort);
  const Psn start(5000);
  socket.send(victim, packet_of(noop(true, 77, start)));
  std::uint16_t peer_id = 0;
  // Names the victim's PDCID, which only who hears it knows.
  const auto prove = [&] {
    wire::PdsControl h;
    h.ctl_type = wire::ControlType::kNoop;
    h.isrod = h.ar = true;
    h.psn = start + 1;
    h.spdcid = 77;
    h.dpdcid = peer_id;
    return packet_of(h);
  };
  for (const auto end = Clock::now() + std::chrono::seconds(20); Clock::now() < end;) {
    const auto in = socket.receive(100);
    if (!in || in->size() < wire::PdsAck::kSize) continue;
    const auto type = static_cast<wire::PdsType>((*in)[0] >> 3);
    if (type == wire::PdsType::kAck || type == wire::PdsType::kAckCc) {
      if (peer_id == 0) {
        peer_id = wire::decode<wire::PdsAck>(in->data()).spdcid;
        socket.send(victim, prove());
      }
    }
    if (type != wire::PdsType::kControl || in->size() < wire::PdsControl::kSize) continue;
    const auto control = wire::decode<wire::PdsControl>(in->data());
    if (control.ctl_type != wire::ControlType::kCloseRequest) continue;
    wire::PdsNack nack;
    nack.nack_code = wire::NackCode::kRodOoo;
    nack.nack_psn = control.psn;
    nack.payload = control.psn.value();
    nack.spdcid = 77;
    nack.dpdcid = peer_id;
    for (int i = 0; i < 5; ++i) socket.send(victim, packet_of(nack));
    std::printf("asked to close; sent NACKs\n");
    return 0;
  }
  std::fprintf(stderr, "enemy: was never asked to close\n");
  return 1;
}

int answers(FabricAddress victim, std::uint32_t count) {
  constexpr std::uint32_t kSources = 5;
  for (std::uint32_t s = 0; s < kSources; ++s) {
    EnemySocket socket(ghost(0x1000 + s), kUetPort);
    for (std::uint32_t i = 0; i < count / kSources; ++i)
      socket.send(victim, packet_of(first(77, Psn(9000), static_cast<std::uint16_t>(i))));
  }
  return 0;
}

int reads(FabricAddress victim, std::uint32_t count) {
  constexpr std::uint32_t kForPdc = 1000;
  for (std::uint32_t i = 0; i < count;) {
    EnemySocket socket(ghost(0x2000 + i / kForPdc), kUetPort);
    for (std::uint32_t n = 0; n < kForPdc && i < count; ++n, ++i) {
      Packet p = packet_of(first(78, Psn(9000), static_cast<std::uint16_t>(n)));
      sim::MessagePiece read;
      read.opcode = wire::SesOpcode::kRead;
      read.eom = false;
      read.message_id = static_cast<std::uint16_t>(1 + n);
      read.total = 100'000;
      read.bytes = 1024;
      read.key_or_tag = 0xbad;
      sim::append_piece(p, read);
      socket.send(victim, p);
    }
  }
  return 0;
}

/// Sees nothing: tries every PDCID with two PSNs, of which one lies below whatever the victim has in use.
int acks(FabricAddress victim, FabricAddress forged) {
  EnemySocket socket(forged, 0);
  wire::PdsAckCcNscc h;
  h.spdcid = 999;
  for (const std::uint32_t psn : {0u, 0x8000'0000u}) {
    h.cack_psn = Psn(psn);
    for (std::uint32_t id = 1; id < 0x10000; ++id) {
      h.dpdcid = static_cast<std::uint16_t>(id);
      socket.send(victim, packet_of(h));
      if (id % 256 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  std::printf("sent %u ACKs\n", 2 * 0xffff);
  return 0;
}

/// Bytes that wait in the victim's socket, as this kernel says: what it has no room for would be lost unseen.
std::size_t waiting_at(FabricAddress victim) {
  std::FILE* const table = std::fopen("/proc/net/udp", "r");
  if (table == nullptr) return 0;
  char line[256];
  std::size_t waiting = 0;
  while (std::fgets(line, sizeof line, table) != nullptr) {
    unsigned address = 0, port = 0, queued = 0;
    if (std::sscanf(line, " %*d: %8x:%4x %*8x:%*4x %*x %*8x:%8x", &address, &port, &queued) == 3 &&
        ntohl(address) == victim.v4() && port == kUetPort)
      waiting = queued;
  }
  std::fclose(table);
  return waiting;
}

/// Speaks with one victim as hosts of three addresses, and learns from its answers.
class Learner {
 public:
  Learner(FabricAddress victim, FabricAddress own, std::uint64_t seed)
      : victim_(victim), rng_(seed) {
    for (std::uint32_t i = 0; i < kHosts; ++i)
      sockets_.emplace_back(FabricAddress::from_v4(own.v4() + i), kUetPort);
  }

  void say() {
    std::array<std::uint8_t, 64> choice;
    for (auto& b : choice) b = static_cast<std::uint8_t>(rng_.next_u32());
    fuzz::Choices in(choice);
    const auto p = talks_.packet(in);
    sockets_[p.peer].send(victim_, p.bytes);
    ++packets_;
  }
  void hear() {
    for (std::size_t host = 0; host < kHosts; ++host)
      while (const auto heard = sockets_[host].receive(0)) talks_.learn(host, *heard);
  }
  base::Rng& rng() { return rng_; }

  std::uint64_t packets() const { return packets_; }
  std::uint64_t bytes_out() const { return sum(&EnemySocket::bytes_out); }
  std::uint64_t packets_in() const { return sum(&EnemySocket::packets_in); }

 private:
  static constexpr std::uint32_t kHosts = 3;
  static constexpr std::uint32_t kPayload = 1024;
  std::uint64_t sum(std::uint64_t (EnemySocket::*count)() const) const {
    std::uint64_t sum = 0;
    for (const EnemySocket& s : sockets_) sum += (s.*count)();
    return sum;
  }

  FabricAddress victim_;
  std::deque<EnemySocket> sockets_;
  base::Rng rng_;
  fuzz::Conversations talks_{kHosts, kPayload};
  std::uint64_t packets_ = 0;
};

void say_what_was_sent(const std::deque<Learner>& learners) {
  std::uint64_t packets = 0, bytes = 0, heard = 0;
  for (const Learner& l : learners)
    packets += l.packets(), bytes += l.bytes_out(), heard += l.packets_in();
  std::printf("sent %llu packets, %llu bytes; heard %llu packets\n",
              static_cast<unsigned long long>(packets), static_cast<unsigned long long>(bytes),
              static_cast<unsigned long long>(heard));
}

int learn(FabricAddress victim, FabricAddress own, std::uint64_t megabytes, std::uint64_t seed) {
  std::deque<Learner> one;
  Learner& learner = one.emplace_back(victim, own, seed);
  constexpr std::size_t kMostWaiting = 256 * 1024;
  constexpr auto kMoment = std::chrono::milliseconds(1);
  while (learner.bytes_out() < megabytes << 20) {
    while (waiting_at(victim) > kMostWaiting) std::this_thread::sleep_for(kMoment);
    for (int i = 0; i < 64; ++i) {
      learner.say();
      if (i % 8 == 7) learner.hear();
    }
    // Now and then a silence, so that answers arrive in time, or PDCs idle and are asked to close.
    if (learner.rng().chance(0.3)) std::this_thread::sleep_for(kMoment);
    if (learner.rng().chance(0.0003)) std::this_thread::sleep_for(std::chrono::seconds(3));
  }
  say_what_was_sent(one);
  return 0;
}

int rain(FabricAddress first, FabricAddress own, std::uint32_t count, double rate, double seconds,
         std::uint64_t seed) {
  constexpr std::uint32_t kEach = 3;
  std::deque<Learner> learners;
  for (std::uint32_t i = 0; i < count; ++i)
    learners.emplace_back(FabricAddress::from_v4(first.v4() + i),
                          FabricAddress::from_v4(own.v4() + kEach * i), seed + i);
  const auto begin = Clock::now();
  for (std::uint64_t sent = 0; static_cast<double>(sent) < rate * seconds; ++sent) {
    const std::chrono::duration<double> due(static_cast<double>(sent) / rate);
    std::this_thread::sleep_until(begin + std::chrono::duration_cast<Clock::duration>(due));
    Learner& learner = learners[sent % count];
    learner.hear();
    learner.say();
  }
  say_what_was_sent(learners);
  return 0;
}

int usage() {
  std::fprintf(stderr,
               "usage: enemy opening|openings|nacks|answers|reads|acks|learn|rain VICTIM ...; see "
               "enemy.cc\n");
  return 2;
}

int run(int argc, char** argv) {
  if (argc < 4) return usage();
  const std::string what = argv[1];
  const FabricAddress victim = address(argv[2]);
  const auto number = [&](int at) { return std::strtoul(argv[at], nullptr, 10); };
  if (what == "openings") return openings(victim, static_cast<std::uint32_t>(number(3)));
  if (what == "answers") return answers(victim, static_cast<std::uint32_t>(number(3)));
  if (what == "reads") return reads(victim, static_cast<std::uint32_t>(number(3)));
  if (what == "nacks") return nacks(victim, address(argv[3]));
  if (what == "acks") return acks(victim, address(argv[3]));
  if (what == "opening" && argc == 5)
    return opening(victim, address(argv[3]), static_cast<int>(number(4)));
  if (what == "learn" && argc == 6) return learn(victim, address(argv[3]), number(4), number(5));
  if (what == "rain" && argc == 8 && number(4) > 0 && number(5) > 0)
    return rain(victim, address(argv[3]), static_cast<std::uint32_t>(number(4)),
                static_cast<double>(number(5)), static_cast<double>(number(6)), number(7));
  return usage();
}

}  // namespace

}  // namespace uet::hostile

int main(int argc, char** argv) {
  return uet::hostile::run(argc, argv);
}
