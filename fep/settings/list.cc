/// The declared list of settings: one row each, in the order of documentation. A row is only here
/// when something honours it.

#include <array>

#include "fep/settings/settings.h"

namespace uet::fep {
namespace {

using Kind = Setting::Kind;

constexpr std::uint64_t kSecond = 1'000'000'000;

/// What a setting offers of Algorithm or LoadBalancing: the values and, separated by spaces, their words.
template <typename Choice>
struct Offer {
  constexpr explicit Offer(std::string_view word_in_front = {}) {
    add(word_in_front);
    for (const Choice value : cc::all_choices<Choice>()) {
      if (cc::is_for_simulation(value)) continue;
      values[count++] = value;
      add(cc::name_of(value));
    }
  }
  constexpr void add(std::string_view word) {
    if (size != 0) text[size++] = ' ';
    for (const char c : word) text[size++] = c;
  }
  constexpr std::string_view words() const { return {text.data(), size}; }

  std::array<Choice, cc::all_choices<Choice>().size()> values{};
  std::size_t count = 0, size = 0;
  std::array<char, 128> text{};
};
constexpr Offer<cc::Algorithm> kAlgorithms;
constexpr Offer<cc::LoadBalancing> kBalancers("auto");

constexpr std::array kSettings = {
    // --- Port and address ---
    Setting{
        .key = "PORT",
        .group = "Port and address",
        .kind = Kind::kTextList,
        .fallback = "udp",
        .target = &Settings::ports,
        .help =
            "port to use: udp[:interface or address][,sockets=n][,merge=0] or dpdk:<vdev or PCI "
            "address>[,key=value...]; several of one kind joined by + are the planes of one "
            "endpoint; a list separated by | gives each process its own (entry n goes with "
            "entry n of FI_UET_ADDR); %r is the local rank"},
    Setting{.key = "ADDR",
            .group = "Port and address",
            .kind = Kind::kTextList,
            .fallback = "",
            .target = &Settings::addresses,
            .help = "IP address of this endpoint; a list separated by | gives each process the "
                    "first address that is free; "
                    "%r is the local rank; empty: the port's own address, which processes "
                    "without FI_UET_KEYS share over kernel UDP"},
    Setting{
        .key = "IFNAME",
        .group = "Port and address",
        .kind = Kind::kText,
        .fallback = "",
        .target = &Settings::ifname,
        .help =
            "network interface whose address the udp port uses; empty: the first one that is up"},
    Setting{.key = "GATEWAY",
            .group = "Port and address",
            .kind = Kind::kAddress,
            .fallback = "",
            .target = &Settings::gateway,
            .help =
                "next hop of a dpdk port for addresses outside FI_UET_PREFIX; empty: only hosts "
                "within it are reached"},
    Setting{.key = "PREFIX",
            .group = "Port and address",
            .kind = Kind::kInteger,
            .fallback = "0",
            .target = &Settings::prefix,
            .help = "prefix length of a dpdk port; 0: 24 for IPv4, 64 for IPv6",
            .max = 128},
    Setting{.key = "VLAN",
            .group = "Port and address",
            .kind = Kind::kInteger,
            .fallback = "0",
            .target = &Settings::vlan,
            .help = "802.1Q VLAN of a dpdk port; 0: untagged",
            .max = 4094},
    Setting{.key = "ENCAP",
            .group = "Port and address",
            .kind = Kind::kChoice,
            .fallback = "udp",
            .target = [](Settings& s, std::size_t i) { s.encap = static_cast<Encapsulation>(i); },
            .help = "UET in UDP, or directly in IP with an entropy header (dpdk ports only)",
            .choices = "udp ip"},
    Setting{.key = "UDP_PORT",
            .group = "Port and address",
            .kind = Kind::kInteger,
            .fallback = "4793",
            .target = &Settings::udp_port,
            .help = "UDP destination port, the same at all peers",
            .min = 1,
            .max = 65535},
    Setting{.key = "IP_PROTOCOL",
            .group = "Port and address",
            .kind = Kind::kInteger,
            .fallback = "253",
            .target = &Settings::ip_protocol,
            .help = "IP protocol number with FI_UET_ENCAP=ip, the same at all peers",
            .min = 1,
            .max = 254},
    Setting{.key = "MTU",
            .group = "Port and address",
            .kind = Kind::kInteger,
            .fallback = "0",
            .target = &Settings::mtu,
            .help = "largest IP packet that is sent, 1280 at least; 0: what the device, or with "
                    "the udp port "
                    "the route to each destination, carries",
            .max = 65535},
    Setting{.key = "POOL",
            .group = "Port and address",
            .kind = Kind::kInteger,
            .fallback = "8192",
            .target = &Settings::pool,
            .help = "packet buffers of the port, of each plane where there are several",
            .min = 1024,
            .max = 1u << 20},
    Setting{.key = "DPDK_ARGS",
            .group = "Port and address",
            .kind = Kind::kText,
            .fallback = "",
            .target = &Settings::dpdk_args,
            .help = "arguments for DPDK's environment, as on a command line: --log-level, --vdev, "
                    "--allow, --block, -m, --socket-mem, --iova-mode, --no-huge and others; what a "
                    "guest must not do is refused, and so is all where the application started "
                    "DPDK itself"},
    Setting{.key = "DPDK_RXD",
            .group = "Port and address",
            .kind = Kind::kInteger,
            .fallback = "0",
            .target = &Settings::dpdk_rxd,
            .help = "receive descriptors of a dpdk port, cut to what its driver has; 0: 1024",
            .max = 32768},
    Setting{.key = "DPDK_TXD",
            .group = "Port and address",
            .kind = Kind::kInteger,
            .fallback = "0",
            .target = &Settings::dpdk_txd,
            .help = "transmit descriptors of a dpdk port, cut to what its driver has; 0: 1024",
            .max = 32768},
    Setting{
        .key = "DPDK_BURST",
        .group = "Port and address",
        .kind = Kind::kInteger,
        .fallback = "0",
        .target = &Settings::dpdk_burst,
        .help = "frames that the driver of a dpdk port is asked for, or given, at a time; 0: 32",
        .max = 128},
    Setting{.key = "MAX_PAYLOAD",
            .group = "Port and address",
            .kind = Kind::kInteger,
            .fallback = "0",
            .target = &Settings::max_payload,
            .help =
                "most payload bytes of a packet; 0: as many as the port's MTU allows. Messages are "
                "cut to what the way to their destination carries, and peers may use other sizes",
            .choices = "0 1024 1280 2048 4096 8192"},
    Setting{
        .key = "PROTECT",
        .group = "Port and address",
        .kind = Kind::kChoice,
        .fallback = "auto",
        .target = [](Settings& s, std::size_t i) { s.protect = static_cast<Protection>(i); },
        .help =
            "integrity of each packet, the same at all peers: a CRC-32C at its end, nothing, or "
            "encryption and authentication (tss); auto is tss with FI_UET_KEYS, and crc without",
        .choices = "auto crc none tss"},
    Setting{.key = "KEYS",
            .group = "Security",
            .kind = Kind::kText,
            .fallback = "",
            .target = &Settings::keys,
            .help = "key file, as uet-keys makes it: every packet is encrypted and authenticated, "
                    "and none in clear is taken; empty: no security"},
    Setting{
        .key = "KEYS_SIGNAL",
        .group = "Security",
        .kind = Kind::kChoice,
        .fallback = "none",
        .target = [](Settings& s, std::size_t i) { s.keys_signal = static_cast<KeysSignal>(i); },
        .help = "signal that makes every endpoint of the process read its key file again within a "
                "second and say so on "
                "standard error; a replaced file is noticed without. The program must have no use "
                "of its own for it",
        .choices = "none hup usr1 usr2"},
    Setting{.key = "KEY_LOG",
            .group = "Security",
            .kind = Kind::kText,
            .fallback = "",
            .target = &Settings::key_log,
            .help = "file that gets every key in use, for uet-dump --keys: a reader of it can read "
                    "the traffic; %p is the process id"},

    // --- Job and identity ---
    Setting{.key = "JOB",
            .group = "Job and identity",
            .kind = Kind::kInteger,
            .fallback = "1",
            .target = &Settings::job,
            .help = "JobID of endpoints without an authorization key",
            .max = 0xffffff},
    Setting{.key = "JOBS",
            .group = "Job and identity",
            .kind = Kind::kNumberList,
            .fallback = "",
            .target = &Settings::jobs,
            .help = "JobIDs that an authorization key may name, separated by |; empty: any",
            .max = 0xffffff,
            .libfabric_only = true},
    Setting{
        .key = "MODE",
        .group = "Job and identity",
        .kind = Kind::kChoice,
        .fallback = "rel",
        .target = [](Settings& s, std::size_t i) { s.mode = static_cast<AddressMode>(i); },
        .help = "relative addressing (parallel jobs) or absolute addressing (client and server)",
        .choices = "rel abs"},
    Setting{.key = "PIDONFEP",
            .group = "Job and identity",
            .kind = Kind::kInteger,
            .fallback = "0",
            .target = &Settings::pid_on_fep,
            .help = "process number on this endpoint's address",
            .max = 4095},
    Setting{.key = "RI",
            .group = "Job and identity",
            .kind = Kind::kInteger,
            .fallback = "0",
            .target = &Settings::ri,
            .help = "resource index of the first libfabric endpoint; 0: 1 where FI_UET_ADDR is one "
                    "address, else "
                    "another one in each process, so that old addresses lead to none",
            .max = 4094},
    Setting{.key = "INITIATOR_ID",
            .group = "Job and identity",
            .kind = Kind::kInteger,
            .fallback = "",
            .target = &Settings::initiator_id,
            .help = "identity of this process as a sender (an MPI rank); empty: made of PIDonFEP "
                    "and resource index",
            .max = 0xffff'ffff},

    // --- Transport ---
    Setting{.key = "CC",
            .group = "Transport",
            .kind = Kind::kChoice,
            .fallback = "nscc",
            .target = [](Settings& s, std::size_t i) { s.cc = kAlgorithms.values[i]; },
            .help =
                "congestion control of what this endpoint sends, whatever its peers run: the "
                "sender's window (nscc), the receiver's credit (rccc) or both; or a fixed window "
                "(none), then at all peers",
            .choices = kAlgorithms.words()},
    Setting{.key = "LB",
            .group = "Transport",
            .kind = Kind::kChoice,
            .fallback = "auto",
            .target =
                [](Settings& s, std::size_t i) {
                  s.lb = i == 0 ? std::nullopt : std::optional(kBalancers.values[i - 1]);
                },
            .help = "how traffic that is spread chooses among FI_UET_PATHS paths: all in turn "
                    "(oblivious), skipping marked ones (bitmap), recycling good ones (reps), both "
                    "(mixed), or only one path (single); auto is bitmap with several planes, and "
                    "oblivious with one",
            .choices = kBalancers.words()},
    Setting{.key = "PATHS",
            .group = "Transport",
            .kind = Kind::kInteger,
            .fallback = "16",
            .target = &Settings::paths,
            .help = "entropy values for spraying. A udp port has a source port for each of its "
                    "sockets (8; udp,sockets=n): more paths share these",
            .choices = "1 2 4 8 16 32 64 128 256"},
    Setting{.key = "TRIMMING",
            .group = "Transport",
            .kind = Kind::kBool,
            .fallback = "0",
            .target = &Settings::trimming,
            .help = "the switches trim: requests carry a DSCP that lets them, and losses are "
                    "expected to be told"},
    Setting{.key = "ROD_REORDER",
            .group = "Transport",
            .kind = Kind::kBool,
            .fallback = "1",
            .target = &Settings::rod_reorder,
            .help =
                "ordered packets behind a gap are held until it is filled; 0: they are dropped, "
                "and the sender goes back"},
    Setting{.key = "SPRAY_ORDERED",
            .group = "Transport",
            .kind = Kind::kBool,
            .fallback = "1",
            .target = &Settings::spray_ordered,
            .help = "ordered sends between endpoints of this provider that both have this take all "
                    "paths, and the receiver restores their order; 0: they keep to one path, as "
                    "towards other endpoints"},
    Setting{.key = "LINK_GBPS",
            .group = "Transport",
            .kind = Kind::kInteger,
            .fallback = "0",
            .target = &Settings::link_gbps,
            .help =
                "link rate that congestion control reckons with, all planes together, in Gb/s; 0: "
                "what the port says, else 25",
            .max = 1600},
    Setting{.key = "LINK_MBPS",
            .group = "Transport",
            .kind = Kind::kInteger,
            .fallback = "0",
            .target = &Settings::link_mbps,
            .help = "the same in Mb/s, for links slower than 1 Gb/s; 0: FI_UET_LINK_GBPS counts",
            .max = 1'600'000},
    Setting{.key = "BASE_RTT",
            .group = "Transport",
            .kind = Kind::kDuration,
            .fallback = "100us",
            .target = &Settings::base_rtt,
            .help = "round trip of one full packet over the longest path of the idle fabric, hosts "
                    "included",
            .min = 1000,
            .max = kSecond,
            .unit = "us"},
    Setting{
        .key = "RTO_INIT",
        .group = "Transport",
        .kind = Kind::kDuration,
        .fallback = "20ms",
        .target = &Settings::rto_init,
        .help = "first retransmission timeout, four measured round trips at least; doubles up to "
                "FI_UET_RTO_MAX",
        .min = 10'000,
        .max = 8 * kSecond,
        .unit = "ms"},
    Setting{
        .key = "TAIL_LOSS_TIME",
        .group = "Transport",
        .kind = Kind::kDuration,
        .fallback = "1ms",
        .target = &Settings::tail_loss_time,
        .help = "a peer that has not answered for so long, or for four measured round trips, is "
                "asked what has arrived; 0: never",
        .min = 0,
        .max = 10'000'000,
        .unit = "ms"},
    Setting{.key = "RTO_MAX",
            .group = "Transport",
            .kind = Kind::kDuration,
            .fallback = "100ms",
            .target = &Settings::rto_max,
            .help = "longest retransmission timeout",
            .min = 10'000,
            .max = 60 * kSecond,
            .unit = "ms"},
    Setting{.key = "PEER_TIMEOUT",
            .group = "Transport",
            .kind = Kind::kDuration,
            .fallback = "60s",
            .target = &Settings::peer_timeout,
            .help = "a peer that is silent for so long while work is outstanding is dead, and its "
                    "operations fail; 0: never. One that has not answered yet: after 60 s at most",
            .max = 86'400 * kSecond,
            .unit = "s"},
    Setting{
        .key = "RETRY",
        .group = "Transport",
        .kind = Kind::kInteger,
        .fallback = "0",
        .target = &Settings::retry,
        .help = "how often a message is sent again that the target had no room for; 0: for ever",
        .max = 1'000'000},
    Setting{.key = "MPR",
            .group = "Transport",
            .kind = Kind::kInteger,
            .fallback = "1024",
            .target = &Settings::mpr,
            .help = "packets that a peer may have outstanding towards us, per context",
            .choices = "128 256 384 512 640 768 896 1024 2048 4096 8192"},
    Setting{.key = "MAX_PDC",
            .group = "Transport",
            .kind = Kind::kInteger,
            .fallback = "1024",
            .target = &Settings::max_pdc,
            .help = "packet delivery contexts at a time, opened by us and by peers",
            .min = 4,
            .max = 65000},
    Setting{.key = "PDS",
            .group = "Transport",
            .kind = Kind::kText,
            .fallback = "",
            .target = &Settings::pds_parameters,
            .help = "any parameter of packet delivery by its name (fi_uet(7) lists them), as "
                    "Name=value,Name=value with times as 10us or 5ms (RTO_Init_Time=5ms,"
                    "Default_MPR=1); wins over every other setting that says the same parameter"},
    Setting{.key = "PDC_IDLE",
            .group = "Transport",
            .kind = Kind::kDuration,
            .fallback = "1s",
            .target = &Settings::pdc_idle,
            .help = "an idle delivery context is closed after this; 0: never",
            .max = 86'400 * kSecond,
            .unit = "s"},

    // --- Provider ---
    Setting{.key = "PROGRESS",
            .group = "libfabric objects",
            .kind = Kind::kChoice,
            .fallback = "auto",
            .target = [](Settings& s, std::size_t i) { s.progress = static_cast<Progress>(i); },
            .help = "who turns the loop: auto as the application asks, manual never a thread, "
                    "thread always one",
            .choices = "auto manual thread",
            .libfabric_only = true},
    Setting{.key = "COMPLETION",
            .group = "libfabric objects",
            .kind = Kind::kChoice,
            .fallback = "transmit",
            .target = [](Settings& s,
                         std::size_t i) { s.completion = static_cast<CompletionLevel>(i); },
            .help = "what the completion of a send or write says where neither the hints nor the "
                    "flags of the call (fi_sendmsg) name a level: transmit, its peer has "
                    "acknowledged it; inject, its buffer may be used again, at once up to "
                    "FI_UET_INJECT_SIZE",
            .choices = "transmit inject",
            .libfabric_only = true},
    Setting{.key = "INJECT_SIZE",
            .group = "libfabric objects",
            .kind = Kind::kSize,
            .fallback = "16384",
            .target = &Settings::inject_size,
            .help = "largest injected message",
            .min = 16,
            .max = 65536},
    Setting{.key = "TX_SIZE",
            .group = "libfabric objects",
            .kind = Kind::kInteger,
            .fallback = "1024",
            .target = &Settings::tx_size,
            .help = "operations an endpoint may have in flight",
            .min = 1,
            .max = 65536},
    Setting{
        .key = "RX_SIZE",
        .group = "libfabric objects",
        .kind = Kind::kInteger,
        .fallback = "1024",
        .target = &Settings::rx_size,
        .help =
            "posted receives an endpoint offers to programs; more are taken while the FEP has room",
        .min = 1,
        .max = 65536},
    Setting{.key = "OVERFLOW_BYTES",
            .group = "libfabric objects",
            .kind = Kind::kSize,
            .fallback = "64M",
            .target = &Settings::overflow_bytes,
            .help = "memory for messages that arrive before their receive, per endpoint",
            .max = 1ull << 40},
    Setting{.key = "OVERFLOW_MSGS",
            .group = "libfabric objects",
            .kind = Kind::kInteger,
            .fallback = "131072",
            .target = &Settings::overflow_msgs,
            .help = "messages kept that arrive before their receive, per endpoint; each takes 0.5 "
                    "KB, and memory of OVERFLOW_BYTES if it is longer than 64 bytes",
            .max = 1u << 20},
    Setting{.key = "FLOW_CONTROL",
            .group = "libfabric objects",
            .kind = Kind::kBool,
            .fallback = "1",
            .target = &Settings::flow_control,
            .help = "peers whose messages arrive before their receive are slowed down when half of "
                    "the room for them is taken; 0: they are refused when all is"},
    Setting{
        .key = "RENDEZVOUS",
        .group = "libfabric objects",
        .kind = Kind::kBool,
        .fallback = "1",
        .target = &Settings::rendezvous,
        .help = "1: messages for which a peer has no room are announced, and read by the peer when "
                "it has a receive for them, where both sides have this; 0: they are sent again "
                "until there is room, and a later ordered message waits behind them"},
    Setting{
        .key = "RENDEZVOUS_FROM",
        .group = "libfabric objects",
        .kind = Kind::kSize,
        .fallback = "0",
        .target = &Settings::rendezvous_from,
        .help = "with RENDEZVOUS, messages of so many bytes are announced at once; 0: only those "
                "that were refused",
        .max = 1ull << 32},
    Setting{.key = "RENDEZVOUS_EAGER",
            .group = "libfabric objects",
            .kind = Kind::kSize,
            .fallback = "0",
            .target = &Settings::rendezvous_eager,
            .help = "with RENDEZVOUS_FROM, bytes that are sent with the announcement",
            .max = 1ull << 31},
    Setting{.key = "SMALL_HEADERS",
            .group = "libfabric objects",
            .kind = Kind::kBool,
            .fallback = "1",
            .target = &Settings::small_headers,
            .help = "writes and reads of one packet by an optimized key go with the small header, "
                    "to peers whose address says that they take it"},
    Setting{.key = "DEFERRABLE",
            .group = "libfabric objects",
            .kind = Kind::kBool,
            .fallback = "0",
            .target = &Settings::deferrable,
            .help = "1: unordered sends of more than one packet are such that a peer without a "
                    "receive may put them off, and asks for them when it has one, as the AI "
                    "profiles have it; all peers must know that"},
    Setting{.key = "RESTART_LIMIT",
            .group = "libfabric objects",
            .kind = Kind::kDuration,
            .fallback = "0",
            .target = &Settings::restart_limit,
            .help = "with DEFERRABLE, a send that was put off for so long fails; 0: never",
            .max = 86'400 * kSecond,
            .unit = "s"},
    Setting{.key = "OVERFLOW_MAX",
            .group = "libfabric objects",
            .kind = Kind::kSize,
            .fallback = "1M",
            .target = &Settings::overflow_max,
            .help = "messages longer than this that arrive before their receive are put off, where "
                    "their sender allows it, and not kept",
            .max = 1ull << 40},
    Setting{.key = "REJECT_LONG",
            .group = "libfabric objects",
            .kind = Kind::kBool,
            .fallback = "0",
            .target = &Settings::reject_long,
            .help = "refuse a message longer than its receive instead of truncating it"},
    Setting{.key = "MR_ENDPOINT",
            .group = "libfabric objects",
            .kind = Kind::kBool,
            .fallback = "0",
            .target = &Settings::mr_endpoint,
            .help = "report FI_MR_ENDPOINT",
            .libfabric_only = true},
    Setting{.key = "ALLOW_ALL_MR",
            .group = "libfabric objects",
            .kind = Kind::kBool,
            .fallback = "0",
            .target = &Settings::allow_all_mr,
            .help = "let a memory region cover the whole address space, as MPI does for dynamic "
                    "windows: a peer that knows its key reads and writes all memory of the "
                    "process",
            .libfabric_only = true},

    // --- Seeing inside ---
    Setting{.key = "TRACE",
            .group = "Seeing inside",
            .kind = Kind::kText,
            .fallback = "",
            .target = &Settings::trace,
            .help = "file that gets every event as one JSON object per line; %p is the process id"},
    Setting{
        .key = "PATH_LOG",
        .group = "Seeing inside",
        .kind = Kind::kText,
        .fallback = "",
        .target = &Settings::path_log,
        .help =
            "file that gets the state of every path as JSON, once a second; %p is the process id"},
    Setting{.key = "PCAP",
            .group = "Seeing inside",
            .kind = Kind::kText,
            .fallback = "",
            .target = &Settings::pcap,
            .help = "file that gets the packets sent and received (pcapng); %p is the process id. "
                    "A ring: the newest of "
                    "files=4 files of size=64M is PATH, older ones PATH.1, PATH.2. "
                    "PATH[,size=BYTES][,files=N]"
                    "[,snap=BYTES], snap being what is kept of a packet"},
    Setting{.key = "IMPAIR",
            .group = "Seeing inside",
            .kind = Kind::kText,
            .fallback = "",
            .target = &Settings::impair,
            .help = "a test tool: faults put on received and sent packets, e.g. "
                    "loss=0.01,reorder=0.05,duplicate=0.01,seed=7"},
    Setting{.key = "SEED",
            .group = "Seeing inside",
            .kind = Kind::kInteger,
            .fallback = "0",
            .target = &Settings::seed,
            .help = "seed of every random choice of the endpoint; 0: from the system",
            .max = UINT64_MAX},
    Setting{.key = "CONFIG",
            .group = "Seeing inside",
            .kind = Kind::kText,
            .fallback = "",
            .target = &Settings::config,
            .help = "TOML file with the same settings in lower case (port = \"udp\"), or "
                    "profile:NAME, a set that comes with the endpoint (reference, specification); "
                    "variables win over both"},
};

}  // namespace

std::span<const Setting> settings() {
  return kSettings;
}

}  // namespace uet::fep
