/// From settings to the configurations of the layers below.

#include <algorithm>

#include "fep/integrity.h"
#include "fep/security.h"
#include "fep/settings/settings.h"
#include "keys/file_keys.h"
#include "lib/base/check.h"
#include "lib/base/quantity.h"
#include "lib/net/impair_port.h"
#include "lib/net/output_file.h"
#include "pds/parameters.h"

namespace uet::fep {

net::PortRequest Settings::port_request(std::string spec, net::FabricAddress address,
                                        const base::Rng& rng) const {
  return net::PortRequest{.spec = std::move(spec),
                          .address = address,
                          .prefix_length = static_cast<unsigned>(prefix),
                          .gateway = gateway,
                          .vlan = static_cast<std::uint16_t>(vlan),
                          .native_ip = encap == Encapsulation::kIp,
                          .udp_port = static_cast<std::uint16_t>(udp_port),
                          .may_share = keys.empty(),
                          .ip_protocol = static_cast<std::uint8_t>(ip_protocol),
                          .packets = pool,
                          .mtu = mtu,
                          .hash_key = base::HashKey(rng),
                          .dpdk = {.arguments = dpdk_args,
                                   .rx_descriptors = static_cast<std::uint16_t>(dpdk_rxd),
                                   .tx_descriptors = static_cast<std::uint16_t>(dpdk_txd),
                                   .burst = static_cast<std::uint16_t>(dpdk_burst)}};
}

namespace {

base::Result<std::shared_ptr<Security>, std::string> open_keys(const Settings& s,
                                                               const net::PortFacts& facts) {
  switch (s.keys_signal) {
    case KeysSignal::kNone:
      break;
    case KeysSignal::kHup:
      keys::reload_on_signal(keys::ReloadSignal::kHup);
      break;
    case KeysSignal::kUsr1:
      keys::reload_on_signal(keys::ReloadSignal::kUsr1);
      break;
    case KeysSignal::kUsr2:
      keys::reload_on_signal(keys::ReloadSignal::kUsr2);
      break;
  }
  std::string error;
  const std::string log = s.key_log.empty() ? "" : net::with_process_id(s.key_log);
  std::shared_ptr<tss::KeyManager> keys =
      keys::FileKeys::open(s.keys, static_cast<std::uint32_t>(s.job), log, error);
  if (keys == nullptr) return "FI_UET_KEYS: " + error;
  auto security = Security::open(std::move(keys), facts);
  if (!security) return "FI_UET_KEYS: " + s.keys + ": " + security.error();
  return security;
}

}  // namespace

FepConfig Settings::default_config(const net::PortFacts& facts) {
  const auto settings = load([](std::string_view) { return std::nullopt; });
  UET_CHECK(settings.has_value());
  const auto config = settings->fep_config(facts);
  UET_CHECK(config.has_value());
  return *config;
}

namespace {

constexpr std::uint64_t kMega = 1'000'000;

/// Of IP and UDP, or of IP and the entropy header, and what a shared address adds.
std::size_t network_header_bytes(const net::PortFacts& facts) {
  return (facts.address.is_v4() ? 20 : 40) + (facts.udp_encapsulation ? 8 : 4) +
         address_bytes(facts.address);
}

/// How packets are protected, and the payload that fits the port. What is wrong, or nothing.
std::string apply_sizes(const Settings& s, const net::PortFacts& facts, FepConfig& out) {
  out.protection = s.protect == Protection::kNone ? DataProtection::kNone : DataProtection::kCrc;
  if (!s.keys.empty()) {
    if (facts.address.udp_port() != 0)
      return "FI_UET_KEYS: secured endpoints are told apart by their IP address, and this one "
             "shares " +
             facts.address.host().to_string() +
             " with other processes; give it an address of its own by FI_UET_ADDR";
    auto opened = open_keys(s, facts);
    if (!opened) return opened.error();
    out.protection = DataProtection::kTss;
    out.security = std::move(*opened);
    out.pds.new_pdc_time = out.security->domain().config().new_pdc_time;
  }
  out.pds.security_overhead =
      seal_bytes(out.protection, out.security ? &out.security->domain() : nullptr);

  const std::size_t largest = net::largest_ip_packet(facts);
  out.payload_mtu =
      s.max_payload != 0 ? static_cast<std::uint32_t>(s.max_payload) : payload_mtu_for(largest);
  const std::size_t needed = out.payload_mtu + network_header_bytes(facts) + kRequestHeaderBytes +
                             out.pds.security_overhead;
  if (needed <= largest) return {};
  return "FI_UET_MAX_PAYLOAD: packets with " + std::to_string(out.payload_mtu) +
         " bytes of payload need an IP MTU of " + std::to_string(needed) + ", and port " +
         facts.name + " has " + std::to_string(largest) +
         "; raise the MTU of the device or lower FI_UET_MAX_PAYLOAD";
}

/// Packet delivery, whatever the port. What is wrong, or nothing.
std::string apply_delivery(const Settings& s, pds::PdsConfig& pds) {
  pds.rto_init_time = s.rto_init;
  pds.rto_max = s.rto_max;
  // A program that computes, or waits for its core, answers late and has lost nothing: ask before sending again.
  pds.tail_loss_time = s.tail_loss_time;
  pds.tail_loss_asks = true;
  pds.rod_reorder = s.rod_reorder;
  pds.use_trimming = s.trimming;
  pds.peer_timeout = s.peer_timeout;
  // A peer whose program computes answers nothing for long; only its silence, not a count of
  // timeouts, declares it dead.
  pds.max_rto_retx_cnt = pds::PdsConfig::kNoTimeoutLimit;
  // The same for a peer that is short of something: libfabric's resource management waits.
  pds.max_nack_retx_cnt = pds::PdsConfig::kNoNackLimit;
  // Without trimming switches a loss shows in what was overtaken, long before the RTO.
  pds.reorder_window = Duration::from_us(50);
  pds.local_mp_range = static_cast<std::uint16_t>(s.mpr);
  pds.max_pdc = static_cast<std::uint32_t>(s.max_pdc);
  pds.pdc_idle_time = s.pdc_idle;

  std::string wrong = pds::set_parameters(pds, s.pds_parameters);
  if (wrong.empty()) wrong = pds::check_parameters(pds);
  // No wait is longer than RTO_Max: the first one would be cut to it in silence.
  if (wrong.empty() && pds.rto_init_time > pds.rto_max)
    wrong = "RTO_Init_Time is " + base::duration_text(pds.rto_init_time) +
            ", and must not be longer than RTO_Max, which is " + base::duration_text(pds.rto_max);
  return wrong.empty() ? wrong : "FI_UET_PDS: " + wrong;
}

/// The longest headers that may stand before read data in an ACK: PDS ACK_CCX, SES response with data.
std::string check_ack_size(const net::PortFacts& facts, const FepConfig& config) {
  const pds::PdsConfig& pds = config.pds;
  const std::size_t ack_overhead = network_header_bytes(facts) + 40 + 20 + pds.security_overhead;
  const std::size_t data = std::min<std::size_t>(pds.max_ack_data_size, config.payload_mtu);
  if (ack_overhead + data <= facts.ip_mtu) return {};
  return "FI_UET_PDS: Max_ACK_Data_Size: an ACK on port " + facts.name + " has room for " +
         std::to_string(facts.ip_mtu - ack_overhead) + " bytes of data";
}

/// Congestion control; a link rate that stays zero is that of the port.
void apply_congestion(const Settings& s, const net::PortFacts& facts, cc::CcConfig& cc) {
  cc.algorithm = s.cc;
  // A plane that has a link and delivers nothing is left only by ways that judge paths. Of these, bitmap goes on using all
  // that are well; mixed keeps to paths that answered first, and they may all be on one plane.
  cc.load_balancing =
      s.lb.value_or(facts.planes > 1 ? cc::LoadBalancing::kBitmap : cc::LoadBalancing::kOblivious);
  cc.paths = static_cast<std::uint16_t>(s.paths);
  cc.trimming = s.trimming;
  cc.config_base_rtt = s.base_rtt;
  // Processes that share cores: a late answer is scheduling more often than a queue.
  cc.timing_noise = s.base_rtt / 2;
  cc.link_rate = s.link_mbps != 0 ? base::BitRate::from_bps(s.link_mbps * kMega)
                                  : base::BitRate::from_gbps(s.link_gbps);
}

/// A target does not give up what an initiator still tries to send. Where that is for ever, an initiator that is gone holds what it
/// began for an hour.
base::Duration message_idle(const pds::PdsConfig& pds) {
  constexpr auto kAtLeast = base::Duration::from_seconds(60);
  return std::max(kAtLeast, pds.limits_timeouts() ? pds.peer_timeout : pds.longest_silence());
}

void apply_messages(const Settings& s, ses::SesConfig& ses) {
  ses.inject_size = static_cast<std::uint32_t>(s.inject_size);
  ses.overflow_bytes = s.overflow_bytes;
  ses.overflow_msgs = static_cast<std::uint32_t>(s.overflow_msgs);
  // One endpoint gets all that is set, and has an eighth besides for messages before their turn.
  ses.overflow_bytes_total =
      std::max(ses.overflow_bytes_total, ses.overflow_bytes + ses.overflow_bytes / 4);
  ses.overflow_msgs_total =
      std::max(ses.overflow_msgs_total, ses.overflow_msgs + ses.overflow_msgs / 4);
  ses.flow_control = s.flow_control;
  ses.rendezvous = s.rendezvous;
  if (s.rendezvous_from != 0) ses.rendezvous_from = s.rendezvous_from;
  ses.rendezvous_eager = static_cast<std::uint32_t>(s.rendezvous_eager);
  ses.sends_deferrable = s.deferrable;
  ses.small_headers = s.small_headers;
  ses.defers = true;
  ses.overflow_max = s.overflow_max;
  ses.restart_limit = s.restart_limit;
  ses.reject_long = s.reject_long;
  ses.spray_ordered = s.spray_ordered;
  ses.retry_limit = static_cast<std::uint32_t>(s.retry);
  ses.max_sends = std::max(ses.max_sends, static_cast<std::uint32_t>(2 * s.tx_size));
  ses.max_receives = std::max(ses.max_receives, static_cast<std::uint32_t>(4 * s.rx_size));
}

}  // namespace

std::string Settings::why_no_port_suits() const {
  constexpr std::size_t kSmallestMtu = 1280;  // of IPv6; a packet with the smallest payload fits
  if (mtu != 0 && mtu < kSmallestMtu)
    return "FI_UET_MTU: " + std::to_string(mtu) + " is less than the smallest MTU, " +
           std::to_string(kSmallestMtu);
  pds::PdsConfig delivery;
  if (std::string wrong = apply_delivery(*this, delivery); !wrong.empty()) return wrong;
  net::ImpairConfig impairment;
  std::string wrong;
  net::ImpairConfig::parse(impair, impairment, wrong);
  return wrong;
}

base::Result<FepConfig, std::string> Settings::fep_config(const net::PortFacts& facts,
                                                          std::uint32_t process_number) const {
  FepConfig out;
  std::string wrong = apply_sizes(*this, facts, out);
  if (wrong.empty()) wrong = apply_delivery(*this, out.pds);
  if (wrong.empty()) wrong = check_ack_size(facts, out);
  if (!wrong.empty()) return with_origins(wrong);
  apply_congestion(*this, facts, out.cc);
  apply_messages(*this, out.ses);
  // An address that each process takes if it is free goes to another one when its process ends; what its user gave to one stays that one's.
  if (addresses.size() != 1)
    out.ses.first_index = static_cast<std::uint16_t>(1 + process_number % ses::kMaxIndex);
  out.ses.message_idle = message_idle(out.pds);
  return out;
}

}  // namespace uet::fep
