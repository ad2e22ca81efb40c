/// From settings to the configurations of the layers below.

#include <algorithm>

#include "fep/log_file.h"
#include "fep/security.h"
#include "fep/settings.h"
#include "keys/file_keys.h"
#include "lib/base/check.h"
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
  const std::string log = s.key_log.empty() ? "" : with_process_id(s.key_log);
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

base::Result<FepConfig, std::string> Settings::fep_config(const net::PortFacts& facts) const {
  FepConfig out;
  constexpr std::size_t kSmallestMtu = 1280;  // of IPv6; a packet with the smallest payload fits
  if (mtu != 0 && mtu < kSmallestMtu)
    return "FI_UET_MTU: " + std::to_string(mtu) + " is less than the smallest MTU, " +
           std::to_string(kSmallestMtu);
  out.protection = protect == Protection::kNone ? DataProtection::kNone : DataProtection::kCrc;
  if (!keys.empty()) {
    auto opened = open_keys(*this, facts);
    if (!opened) return opened.error();
    out.protection = DataProtection::kTss;
    out.security = std::move(*opened);
    out.pds.new_pdc_time = out.security->domain().config().new_pdc_time;
  }
  // A CRC behind each packet, or a security header in front and an ICV behind.
  const std::uint32_t protection =
      out.security ? static_cast<std::uint32_t>(out.security->domain().overhead())
      : out.protection == DataProtection::kCrc ? 4
                                               : 0;
  const std::size_t largest = net::largest_ip_packet(facts);
  out.payload_mtu =
      max_payload != 0 ? static_cast<std::uint32_t>(max_payload) : payload_mtu_for(largest);

  // The forms in use: a standard header in a plain request. [WIRE 7.2]
  const std::size_t overhead =
      (facts.address.is_v4() ? 20 : 40) + (facts.udp_encapsulation ? 8 : 4) + 12 + 44 + protection;
  if (out.payload_mtu + overhead > largest) {
    return "FI_UET_MAX_PAYLOAD: packets with " + std::to_string(out.payload_mtu) +
           " bytes of payload need an IP MTU of " + std::to_string(out.payload_mtu + overhead) +
           ", and port " + facts.name + " has " + std::to_string(largest) +
           "; raise the MTU of the device or lower FI_UET_MAX_PAYLOAD";
  }

  out.pds.security_overhead = protection;
  out.pds.rto_init_time = rto_init;
  out.pds.rto_max = rto_max;
  // A program that computes, or waits for its core, answers late and has lost nothing: ask before sending again.
  out.pds.tail_loss_time = tail_loss_time;
  out.pds.tail_loss_asks = true;
  out.pds.rod_reorder = rod_reorder;
  out.pds.use_trimming = trimming;
  out.cc.trimming = trimming;
  out.pds.peer_timeout = peer_timeout;
  // A peer whose program computes answers nothing for long; only its silence, not a count of
  // timeouts, declares it dead.
  out.pds.max_rto_retx_cnt = 15;
  // The same for a peer that is short of something: libfabric's resource management waits.
  out.pds.max_nack_retx_cnt = 31;
  // Without trimming switches a loss shows in what was overtaken, long before the RTO.
  out.pds.reorder_window = Duration::from_us(50);
  out.pds.local_mp_range = static_cast<std::uint16_t>(mpr);
  out.pds.max_pdc = static_cast<std::uint32_t>(max_pdc);
  out.pds.pdc_idle_time = pdc_idle;

  std::string wrong = pds::set_parameters(out.pds, pds_parameters);
  if (wrong.empty()) wrong = pds::check_parameters(out.pds);
  if (!wrong.empty()) return "FI_UET_PDS: " + wrong;
  // The longest headers that may stand before read data in an ACK: PDS ACK_CCX, SES response with data.
  const std::size_t ack_overhead =
      (facts.address.is_v4() ? 20 : 40) + (facts.udp_encapsulation ? 8 : 4) + 40 + 20 + protection;
  if (ack_overhead + std::min<std::size_t>(out.pds.max_ack_data_size, out.payload_mtu) >
      facts.ip_mtu) {
    return "FI_UET_PDS: Max_ACK_Data_Size: an ACK on port " + facts.name + " has room for " +
           std::to_string(facts.ip_mtu - ack_overhead) + " bytes of data";
  }

  constexpr std::uint64_t kUnknownLinkGbps = 25;
  out.cc.algorithm = cc;
  // A plane that has a link and delivers nothing is left only by ways that judge paths. Of these, bitmap goes on using all
  // that are well; mixed keeps to paths that answered first, and they may all be on one plane.
  out.cc.load_balancing =
      lb.value_or(facts.planes > 1 ? cc::LoadBalancing::kBitmap : cc::LoadBalancing::kOblivious);
  out.cc.paths = static_cast<std::uint16_t>(paths);
  out.cc.config_base_rtt = base_rtt;
  // Processes that share cores: a late answer is scheduling more often than a queue.
  out.cc.timing_noise = base_rtt / 2;
  constexpr std::uint64_t kMega = 1'000'000;
  if (link_mbps != 0)
    out.cc.link_rate = base::BitRate::from_bps(link_mbps * kMega);
  else if (link_gbps != 0)
    out.cc.link_rate = base::BitRate::from_gbps(link_gbps);
  else if (facts.link_rate.bps() != 0)
    out.cc.link_rate = facts.link_rate;
  else
    out.cc.link_rate = base::BitRate::from_gbps(kUnknownLinkGbps);

  out.ses.inject_size = static_cast<std::uint32_t>(inject_size);
  out.ses.overflow_bytes = overflow_bytes;
  out.ses.overflow_msgs = static_cast<std::uint32_t>(overflow_msgs);
  out.ses.flow_control = flow_control;
  out.ses.rendezvous = rendezvous;
  if (rendezvous_from != 0) out.ses.rendezvous_from = rendezvous_from;
  out.ses.rendezvous_eager = static_cast<std::uint32_t>(rendezvous_eager);
  out.ses.sends_deferrable = deferrable;
  out.ses.small_headers = small_headers;
  out.ses.defers = true;
  out.ses.overflow_max = overflow_max;
  out.ses.restart_limit = restart_limit;
  out.ses.reject_long = reject_long;
  out.ses.spray_ordered = spray_ordered;
  out.ses.retry_limit = static_cast<std::uint32_t>(retry);
  out.ses.max_sends = std::max(out.ses.max_sends, static_cast<std::uint32_t>(2 * tx_size));
  out.ses.max_receives = std::max(out.ses.max_receives, static_cast<std::uint32_t>(4 * rx_size));
  return out;
}

}  // namespace uet::fep
