#include "tools/wire_gen/wireshark_names.h"

#include <algorithm>
#include <array>

namespace uet::gen {
namespace {

struct Rename {
  std::string_view field, name;
};

/// A group of headers that share a prefix, and the fields whose upstream name is not prefix + spec
/// name.
struct Group {
  std::string_view prefix;
  std::array<Rename, 20> renames;
};

constexpr Group kTss = {"uet.tss.", {}};

constexpr Group kPds = {"uet.pds.",
                        {{{"next_hdr", "nh"},
                          {"m", "flags.m"},
                          {"retx", "flags.retx"},
                          {"ar", "flags.ar"},
                          {"syn", "flags.syn"},
                          {"p", "flags.p"},
                          {"nt", "flags.nt"},
                          {"req", "flags.req"},
                          {"isrod", "flags.isrod"},
                          {"flag_epsn", "flags.epsn"},
                          {"nack_code", "nack.code"},
                          {"vendor_code", "nack.vendor_code"},
                          {"nack_psn", "nack.psn"},
                          {"use_rsv_pdc", "pdc_mode_use_rsv"},
                          {"ccc_id", "cc_state.ccc_id"},
                          {"credit_target", "cc_state.credit_target"},
                          {"probe_opaque", "ctrl_probe_opaque"},
                          {"pkt_id", "rudi.pkt_id"}}}};

/// The congestion part of ACK_CC and ACK_CCX; other fields are looked up in kPds.
constexpr Group kAckCc = {"uet.pds.ack.",
                          {{{"cc_type", "cc_type"},
                            {"ccx_type", "cc_type"},
                            {"mpr", "mpr"},
                            {"sack_psn_offset", "sack_offset"},
                            {"sack_bitmap", "sack_bitmap"},
                            {"service_time", "cc_state.service_time"},
                            {"restore_cwnd", "cc_state.rc"},
                            {"rcv_cwnd_pend", "cc_state.rcv_cwnd_pend"},
                            {"rcvd_bytes", "cc_state.rcvd_bytes"},
                            {"ooo_count", "cc_state.ooo_count"},
                            {"credit", "cc_state.credit"},
                            {"ack_cc_state", "cc_state_raw"},
                            {"ack_ccx_state", "ccx_state"}}}};

constexpr Group kStandard = {"uet.ses.std.",
                             {{{"version", "ver"},
                               {"ri_generation", "index_generation"},
                               {"pid_on_fep", "pidonfep"},
                               {"mkey_match", "mem_key_match_bits"},
                               {"match_bits", "mem_key_match_bits"}}}};

constexpr Group kMedium = {"uet.ses.med_req.",
                           {{{"version", "flags.ver"},
                             {"dc", "flags.dc"},
                             {"ie", "flags.ie"},
                             {"rel", "flags.rel"},
                             {"hd", "flags.hd"},
                             {"request_length", "req_length"},
                             {"ri_generation", "resource_index_generation"},
                             {"pid_on_fep", "pidonfep"},
                             {"mkey_match", "mem_key_match_bits"}}}};

constexpr Group kSmall = {"uet.ses.small_req.",
                          {{{"version", "flags.ver"},
                            {"dc", "flags.dc"},
                            {"ie", "flags.ie"},
                            {"rel", "flags.rel"},
                            {"hd", "flags.rsvd"},
                            {"request_length", "req_length"},
                            {"ri_generation", "index_generation"},
                            {"pid_on_fep", "pidonfep"}}}};

constexpr Group kResponse = {"uet.ses.rsp.",
                             {{{"version", "ver"},
                               {"ri_generation", "resource_index_gen"},
                               {"modified_length", "mod_length"},
                               {"read_request_message_id", "read_req_message_id"}}}};

constexpr Group kAtomic = {"uet.ses.atomic_op_ext_hdr.",
                           {{{"amo_opcode", "atomic_opcode"},
                             {"amo_datatype", "atomic_data_type"},
                             {"sem_vendor", "sem_ctl.vendor"},
                             {"sem_cpu_coherent", "sem_ctl.cpu_coherent"},
                             {"sem_cacheable", "sem_ctl.cacheable"}}}};

constexpr Group kCompareSwap = {"uet.ses.comp_swap_ext_hdr.",
                                {{{"amo_opcode", "atomic_opcode"},
                                  {"amo_datatype", "atomic_data_type"},
                                  {"sem_vendor", "sem_ctl.vendor"},
                                  {"sem_cpu_coherent", "sem_ctl.cpu_coherent"},
                                  {"sem_cacheable", "sem_ctl.cacheable"},
                                  {"compare_value", "comp_value"}}}};

constexpr Group kRendezvous = {"uet.ses.rendv_ext_hdr.",
                               {{{"read_memory_key", "read_match_bits"}}}};

std::string_view find(const Group& group, std::string_view field) {
  const auto it = std::find_if(group.renames.begin(), group.renames.end(),
                               [&](const Rename& r) { return r.field == field; });
  return it == group.renames.end() ? std::string_view() : it->name;
}

std::string in(const Group& group, std::string_view field) {
  const std::string_view renamed = find(group, field);
  return std::string(group.prefix) + std::string(renamed.empty() ? field : renamed);
}

}  // namespace

std::string wireshark_name(std::string_view form, std::string_view field) {
  if (form == "entropy") return "uet.pds.entropy";
  if (form == "return_port") return "uet.return_port." + std::string(field);
  if (form.starts_with("tss")) return in(kTss, field);
  if (form == "medium" || form == "small") {
    if (field == "opcode")
      return "uet.ses.std.opcode";  // upstream shows one opcode field for all requests
    return in(form == "medium" ? kMedium : kSmall, field);
  }
  if (form.starts_with("standard") || form.starts_with("deferrable") ||
      form.starts_with("sequenced") || form == "ready_to_restart")
    return in(kStandard, field);
  if (form.starts_with("response")) return in(kResponse, field);
  if (form == "atomic") return in(kAtomic, field);
  if (form == "compare_swap") return in(kCompareSwap, field);
  if (form == "rendezvous") return in(kRendezvous, field);
  if (field == "payload") {
    return form.starts_with("nack") ? "uet.pds.nack.max_recv_psn_plus_1" : "uet.pds.ctrl_payload";
  }
  if (form.starts_with("ack_cc") && !find(kAckCc, field).empty()) return in(kAckCc, field);
  return in(kPds, field);
}

}  // namespace uet::gen
