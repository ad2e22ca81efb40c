#include "pds/parameters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <type_traits>
#include <vector>

#include "lib/base/near_name.h"
#include "lib/base/quantity.h"

namespace uet::pds {

namespace {

using Unit = Parameter::Unit;

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kSecond = 1000 * kMs;
constexpr std::int64_t kDay = 86'400 * kSecond;

template <auto Member>
std::int64_t get(const PdsConfig& c) {
  using T = std::remove_cvref_t<decltype(c.*Member)>;
  if constexpr (std::is_same_v<T, base::Duration>)
    return (c.*Member).ns();
  else
    return static_cast<std::int64_t>(c.*Member);
}
template <auto Member>
void set(PdsConfig& c, std::int64_t value) {
  using T = std::remove_cvref_t<decltype(c.*Member)>;
  if constexpr (std::is_same_v<T, base::Duration>)
    c.*Member = base::Duration::from_ns(value);
  else
    c.*Member = static_cast<T>(value);
}
template <auto Member>
constexpr Parameter row(std::string_view name, Unit unit, std::int64_t min, std::int64_t max,
                        std::string_view help, std::int64_t step = 1) {
  return {name, unit, min, max, step, help, get<Member>, set<Member>};
}

using C = PdsConfig;
constexpr std::array kParameters = {
    // [PDS 2.1]
    row<&C::limit_psn_range>("Limit_PSN_Range", Unit::kFlag, 0, 1,
                             "with TSS, a PDC is closed before it has used 2^31 PSNs"),
    row<&C::default_mpr>(
        "Default_MPR", Unit::kCount, 1, 255,
        "window assumed of a peer that has not told its own, in units of 128 packets"),
    row<&C::override_mpr_zero_value>("Override_MPR_Zero_Value", Unit::kPackets, 0, 127,
                                     "window that a peer means by 0, in packets; 0: no override"),
    row<&C::max_ack_data_size>("Max_ACK_Data_Size", Unit::kBytes, 0, 8192,
                               "most read data that rides on an ACK"),
    row<&C::trimmable_ack_size>("Trimmable_ACK_Size", Unit::kBytes, 0, 10240,
                                "ACKs of this size have a DSCP that lets switches trim them", 16),
    row<&C::ack_on_ecn>("ACK_On_ECN", Unit::kFlag, 0, 1,
                        "a packet with a congestion mark is acknowledged at once"),
    row<&C::enb_ack_per_pkt>("Enb_ACK_Per_Pkt", Unit::kFlag, 0, 1, "each packet asks for an ACK"),
    row<&C::ack_gen_trigger>("ACK_Gen_Trigger", Unit::kBytes, 0, 32768,
                             "bytes that are acknowledged together"),
    row<&C::ack_gen_min_pkt_add>("ACK_Gen_Min_Pkt_Add", Unit::kBytes, 0, 2048,
                                 "what a packet counts for at least in that sum"),
    row<&C::rto_init_time>("RTO_Init_Time", Unit::kTime, 0, 8 * kSecond,
                           "first retransmission timeout (FI_UET_RTO_INIT)"),
    row<&C::max_rto_retx_cnt>("Max_RTO_Retx_Cnt", Unit::kCount, 0, 15,
                              "timeouts of a packet that end its PDC; 15: any number"),
    row<&C::nack_retx_time>(
        "NACK_Retx_Time", Unit::kTime, 0, 8 * kSecond,
        "pause before a packet that was refused for lack of room is sent again"),
    row<&C::max_nack_retx_cnt>("Max_NACK_Retx_Cnt", Unit::kCount, 0, 31,
                               "refusals of a packet that end its PDC; 31: any number"),
    row<&C::new_pdc_time>("New_PDC_Time", Unit::kTime, 0, 100 * kMs,
                          "TSS: life of a PDC whose opening is not complete; 0: no limit"),
    row<&C::new_pdc_timeout_thresh>("New_PDC_Timeout_Thresh", Unit::kCount, 1, 0xffff'ffff,
                                    "so many of these that ended are reported as an attack"),
    row<&C::pds_clear_time>("PDS_Clear_Time", Unit::kTime, 0, 100 * kMs,
                            "wait for a packet that can carry a CLEAR before it goes alone"),
    row<&C::close_req_time>("Close_REQ_Time", Unit::kTime, 0, 10 * kMs,
                            "a target's wait for the Close Command that it asked for"),
    row<&C::tail_loss_time>(
        "Tail_Loss_Time", Unit::kTime, 0, 10 * kMs,
        "silence after which a peer is asked what has arrived; 0: never (FI_UET_TAIL_LOSS_TIME)"),
    row<&C::max_tail_loss_retx>("Max_Tail_Loss_Retx", Unit::kCount, 0, 15, "how often it is asked"),
    row<&C::syn_retx_safety_time>(
        "Syn_Retx_Safety_Time", Unit::kTime, 0, 8 * kSecond,
        "after a packet that opens a PDC was sent twice, how long its close waits"),
    // Ours. [PDS 2.2]
    row<&C::local_mp_range>("Local_MP_RANGE", Unit::kPackets, 128, 32640,
                            "window granted to a peer (FI_UET_MPR)", 128),
    row<&C::pdc_idle_time>("PDC_Idle_Time", Unit::kTime, 0, kDay,
                           "an idle PDC is closed after this; 0: never (FI_UET_PDC_IDLE)"),
    row<&C::pdcid_quarantine>("PDCID_Quarantine", Unit::kTime, 0, kDay,
                              "a freed identifier is not given out again for so long"),
    row<&C::tombstone_time>("Tombstone_Time", Unit::kTime, 0, kDay,
                            "how long a target remembers a closed PDC"),
    row<&C::max_pdc>("Max_PDC", Unit::kCount, 2, 65535,
                     "PDCs at a time, of both roles (FI_UET_MAX_PDC)"),
    row<&C::max_pdc_per_key>("Max_PDC_Per_Key", Unit::kCount, 1, 255, "unordered PDCs to one peer"),
    row<&C::gtd_store_max>("GTD_Store_Max", Unit::kCount, 1, 1 << 24,
                           "stored responses of all PDCs"),
    row<&C::rudi_max_outstanding>("RUDI_Max_Outstanding", Unit::kPackets, 1, 32768,
                                  "idempotent packets under way to one peer"),
    row<&C::ses_procg_limit>(
        "SES_Procg_Limit", Unit::kTime, 0, kDay,
        "a packet that is received and not processed for so long ends its PDC"),
    row<&C::nack_rate_limit>("NACK_Rate_Limit", Unit::kCount, 1, 1'000'000'000,
                             "NACKs a second to one source that has no PDC"),
    row<&C::sack_loss_thresh>("Sack_Loss_Thresh", Unit::kCount, 0, 1024,
                              "later packets acknowledged that make one count as lost; 0: off"),
    row<&C::reorder_window>("Reorder_Window", Unit::kTime, 0, kSecond,
                            "how much longer than a round trip an overtaken packet is waited for; "
                            "0: until the timeout"),
    row<&C::rod_reorder>("ROD_Reorder", Unit::kFlag, 0, 1,
                         "ordered packets behind a gap are held (FI_UET_ROD_REORDER)"),
    row<&C::rto_max>("RTO_Max", Unit::kTime, 0, 60 * kSecond,
                     "longest retransmission timeout (FI_UET_RTO_MAX)"),
    row<&C::peer_timeout>("Peer_Timeout", Unit::kTime, 0, kDay,
                          "silence that makes a peer dead; 0: never (FI_UET_PEER_TIMEOUT)"),
    // Of tables, tests and captures.
    row<&C::use_trimming>("Use_Trimming", Unit::kFlag, 0, 1,
                          "requests carry a DSCP that lets switches trim them (FI_UET_TRIMMING)"),
    row<&C::max_rx_trackers>("Max_RX_Trackers", Unit::kCount, 0, 65535,
                             "bitmaps for PDCs with gaps; 0: derived from Max_PDC"),
    row<&C::max_tombstones>("Max_Tombstones", Unit::kCount, 0, 1 << 24,
                            "closed PDCs that are remembered, besides one for each place; 0: none"),
    row<&C::forced_start_psn>("Start_PSN", Unit::kCount, 0, 0xffff'ffff,
                              "for tests and captures: the first PSN of each PDC; 0: random"),
    row<&C::psn_range>("PSN_Range", Unit::kPackets, 2, std::int64_t{1} << 31,
                       "for tests: PSNs of one direction of a PDC under Limit_PSN_Range"),
    row<&C::psn_range_reserve>("PSN_Range_Reserve", Unit::kPackets, 1, 1 << 30,
                               "for tests: how many before the end of that range the close begins"),
};

std::string in_range(const Parameter& p, std::int64_t value) {
  if (value < p.min || value > p.max)
    return std::string(p.name) + " is " + value_text(p.unit, value) + ", and must be from " +
           value_text(p.unit, p.min) + " to " + value_text(p.unit, p.max);
  if (value % p.step != 0)
    return std::string(p.name) + " is " + std::to_string(value) + ", and must be a multiple of " +
           std::to_string(p.step);
  return {};
}

std::string unknown(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Parameter& p : kParameters) names.push_back(p.name);
  const std::string_view near = base::near_name(name, names);
  return "there is no parameter " + std::string(name) +
         (near.empty() ? "; fi_uet(7) lists them" : "; did you mean " + std::string(near) + "?");
}

}  // namespace

std::string value_text(Parameter::Unit unit, std::int64_t value) {
  return unit == Unit::kTime ? base::duration_text(base::Duration::from_ns(value))
                             : std::to_string(value);
}

std::span<const Parameter> parameters() {
  return kParameters;
}

const Parameter* find_parameter(std::string_view name) {
  for (const Parameter& p : kParameters)
    if (p.name == name) return &p;
  return nullptr;
}

std::string set_parameter(PdsConfig& config, const Parameter& parameter, std::int64_t value) {
  std::string why = in_range(parameter, value);
  if (why.empty()) parameter.set(config, value);
  return why;
}

namespace {

/// Nothing when `text` is no value of this unit.
std::optional<std::int64_t> value_of(Unit unit, std::string_view text) {
  if (unit == Unit::kTime) {
    const auto time = base::parse_duration(text);
    if (!time) return {};
    return time->ns();
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

}  // namespace

std::string set_parameters(PdsConfig& config, std::string_view list) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view entry = list.substr(0, comma);
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
    if (entry.empty()) continue;
    const std::size_t equals = entry.find('=');
    const Parameter* parameter = find_parameter(entry.substr(0, equals));
    if (parameter == nullptr) return unknown(entry.substr(0, equals));
    const auto value = equals == std::string_view::npos
                           ? std::nullopt
                           : value_of(parameter->unit, entry.substr(equals + 1));
    if (!value)
      return std::string(entry) + ": " +
             (parameter->unit == Unit::kTime
                  ? "a time of at most a day is needed, such as 10us or 5ms"
                  : "a number is needed");
    std::string why = set_parameter(config, *parameter, *value);
    if (!why.empty()) return why;
  }
  return {};
}

std::string check_parameters(const PdsConfig& config) {
  for (const Parameter& p : kParameters) {
    std::string why = in_range(p, p.get(config));
    if (!why.empty()) return why;
  }
  if (config.psn_range_reserve >= config.psn_range)
    return "the reserve of the PSN range is larger than the range";
  return {};
}

}  // namespace uet::pds
