/// PDS headers. [WIRE 4]
#pragma once

#include "lib/wire/enums.h"
#include "lib/wire/field.h"

namespace uet::wire {

namespace detail {

template <typename H>
constexpr auto prologue_fields() {
  return list_of(field("type", &H::type, 5, "PDS packet type"),
                 field("next_hdr", &H::next_hdr, 4, "SES header that follows"));
}

template <typename H>
constexpr auto request_fields() {
  return join(
      prologue_fields<H>(),
      list_of(
          reserved("flags_rsvd_a", 2), field("retx", &H::retx, 1, "this PSN has been sent before"),
          field("ar", &H::ar, 1, "receiver is asked to acknowledge promptly"),
          field("syn", &H::syn, 1, "sender does not know the peer's PDC identifier yet"),
          reserved("flags_rsvd_b", 2),
          field("clear_psn_offset", &H::clear_psn_offset, 16, "CLEAR_PSN = psn + clear_psn_offset"),
          field("psn", &H::psn, 32, "packet sequence number"),
          field("spdcid", &H::spdcid, 16, "PDC identifier of the sender")));
}

template <typename H>
constexpr auto dpdcid_fields() {
  return list_of(field("dpdcid", &H::dpdcid, 16, "PDC identifier of the receiver"));
}

template <typename H>
constexpr auto pdc_info_fields() {
  return list_of(
      field("use_rsv_pdc", &H::use_rsv_pdc, 1, "place this PDC in the reserved pool of the target"),
      reserved("pdc_info_rsvd", 3),
      field("psn_offset", &H::psn_offset, 12, "START_PSN = psn - psn_offset"));
}

template <typename H>
constexpr auto req_cc_state_fields() {
  return list_of(field("ccc_id", &H::ccc_id, 8, "congestion control context of the sender"),
                 field("credit_target", &H::credit_target, 24, "total credit wanted, cyclic"));
}

template <typename H>
constexpr auto ack_fields() {
  return join(
      prologue_fields<H>(),
      list_of(field("flag_epsn", &H::flag_epsn, 1, "later extension: Expected_PSN follows"),
              field("m", &H::m, 1, "the packet being acknowledged arrived with CE"),
              field("retx", &H::retx, 1, "copy of retx from the packet that triggered this ACK"),
              field("p", &H::p, 1, "answers a PROBE; second word is probe_opaque"),
              field("req", &H::req, 2, "what the target asks for"), reserved("flags_rsvd", 1),
              field("ack_psn_offset", &H::ack_psn_offset, 16,
                    "p=0: ACK_PSN = cack_psn + ack_psn_offset; p=1: probe_opaque"),
              field("cack_psn", &H::cack_psn, 32, "every PSN up to and including this has arrived"),
              field("spdcid", &H::spdcid, 16, "PDC identifier of the ACK sender"),
              field("dpdcid", &H::dpdcid, 16, "PDC identifier of the ACK receiver")));
}

/// Bytes 12 to 23 of ACK_CC and ACK_CCX; `kind_name` is cc_type or ccx_type.
template <typename H, typename T>
constexpr auto sack_fields(std::string_view kind_name, T H::*kind) {
  return list_of(
      field(kind_name, kind, 4, "which congestion state follows"), reserved("cc_flags", 4),
      field("mpr", &H::mpr, 8, "max PSN range granted, in units of 128 PSNs"),
      field("sack_psn_offset", &H::sack_psn_offset, 16,
            "SACK base PSN = cack_psn + sack_psn_offset"),
      field("sack_bitmap", &H::sack_bitmap, 64, "bit i is 1 when PSN base+i has arrived"));
}

template <typename H>
constexpr auto nack_fields() {
  return join(prologue_fields<H>(),
              list_of(reserved("flags_rsvd_a", 1),
                      field("m", &H::m, 1, "the refused packet arrived with CE"),
                      field("retx", &H::retx, 1, "copy of retx from the refused packet"),
                      field("nt", &H::nt, 1, "0: nack_psn is a PSN, 1: it is a RUDI pkt_id"),
                      reserved("flags_rsvd_b", 3),
                      field("nack_code", &H::nack_code, 8, "why the packet was refused"),
                      field("vendor_code", &H::vendor_code, 8, "free-form detail"),
                      field("nack_psn", &H::nack_psn, 32, "PSN or pkt_id refused"),
                      field("spdcid", &H::spdcid, 16, "PDC identifier of the NACK sender"),
                      field("dpdcid", &H::dpdcid, 16, "PDC identifier of the NACK receiver"),
                      field("payload", &H::payload, 32, "depends on nack_code")));
}

template <typename H>
constexpr auto control_fields() {
  return list_of(field("type", &H::type, 5, "PDS packet type"),
                 field("ctl_type", &H::ctl_type, 4, "what the control packet says"),
                 reserved("flags_rsvd_a", 1), field("isrod", &H::isrod, 1, "1: PDC is ROD, 0: RUD"),
                 field("retx", &H::retx, 1, "retransmission"),
                 field("ar", &H::ar, 1, "acknowledge"),
                 field("syn", &H::syn, 1, "sender does not know the peer's PDC identifier yet"),
                 reserved("flags_rsvd_b", 2),
                 field("probe_opaque", &H::probe_opaque, 16, "PROBE: tag returned in the ACK"),
                 field("psn", &H::psn, 32, "packet sequence number, by ctl_type"),
                 field("spdcid", &H::spdcid, 16, "PDC identifier of the sender"));
}

template <typename H>
constexpr auto control_payload_fields() {
  return list_of(field("payload", &H::payload, 32, "depends on ctl_type"));
}

}  // namespace detail

/// The first word of every PDS header. [WIRE 4.1] For CONTROL, `next_hdr` is the ctl_type.
struct PdsPrologue {
  static constexpr std::size_t kSize = 2;
  static constexpr std::string_view kLayer = "pds", kName = "prologue";

  PdsType type{};
  NextHdr next_hdr{};
  std::uint8_t flags = 0;

  template <typename H = PdsPrologue>
  static constexpr auto fields() {
    return join(detail::prologue_fields<H>(),
                list_of(field("flags", &H::flags, 7, "meaning depends on type")));
  }
};

/// RUD_REQ and ROD_REQ, syn=0. [WIRE 4.5]
struct PdsRequest {
  static constexpr std::size_t kSize = 12;
  static constexpr std::string_view kLayer = "pds", kName = "request";

  PdsType type = PdsType::kRudReq;
  NextHdr next_hdr{};
  bool retx = false, ar = false, syn = false;
  std::int16_t clear_psn_offset = 0;
  base::Psn psn;
  std::uint16_t spdcid = 0;
  std::uint16_t dpdcid = 0;

  template <typename H = PdsRequest>
  static constexpr auto fields() {
    return join(detail::request_fields<H>(), detail::dpdcid_fields<H>());
  }
};

/// RUD_REQ and ROD_REQ, syn=1. [WIRE 4.5]
struct PdsRequestSyn {
  static constexpr std::size_t kSize = 12;
  static constexpr std::string_view kLayer = "pds", kName = "request_syn";

  PdsType type = PdsType::kRudReq;
  NextHdr next_hdr{};
  bool retx = false, ar = false, syn = true;
  std::int16_t clear_psn_offset = 0;
  base::Psn psn;
  std::uint16_t spdcid = 0;
  bool use_rsv_pdc = false;
  std::uint16_t psn_offset = 0;

  template <typename H = PdsRequestSyn>
  static constexpr auto fields() {
    return join(detail::request_fields<H>(), detail::pdc_info_fields<H>());
  }
};

/// RUD_CC_REQ and ROD_CC_REQ, syn=0. [WIRE 4.6]
struct PdsRequestCc {
  static constexpr std::size_t kSize = 16;
  static constexpr std::string_view kLayer = "pds", kName = "request_cc";

  PdsType type = PdsType::kRudCcReq;
  NextHdr next_hdr{};
  bool retx = false, ar = false, syn = false;
  std::int16_t clear_psn_offset = 0;
  base::Psn psn;
  std::uint16_t spdcid = 0;
  std::uint16_t dpdcid = 0;
  std::uint8_t ccc_id = 0;
  std::uint32_t credit_target = 0;

  template <typename H = PdsRequestCc>
  static constexpr auto fields() {
    return join(detail::request_fields<H>(), detail::dpdcid_fields<H>(),
                detail::req_cc_state_fields<H>());
  }
};

/// RUD_CC_REQ and ROD_CC_REQ, syn=1. [WIRE 4.6]
struct PdsRequestCcSyn {
  static constexpr std::size_t kSize = 16;
  static constexpr std::string_view kLayer = "pds", kName = "request_cc_syn";

  PdsType type = PdsType::kRudCcReq;
  NextHdr next_hdr{};
  bool retx = false, ar = false, syn = true;
  std::int16_t clear_psn_offset = 0;
  base::Psn psn;
  std::uint16_t spdcid = 0;
  bool use_rsv_pdc = false;
  std::uint16_t psn_offset = 0;
  std::uint8_t ccc_id = 0;
  std::uint32_t credit_target = 0;

  template <typename H = PdsRequestCcSyn>
  static constexpr auto fields() {
    return join(detail::request_fields<H>(), detail::pdc_info_fields<H>(),
                detail::req_cc_state_fields<H>());
  }
};

/// ACK. [WIRE 4.7] With p=1 the bits of ack_psn_offset are the probe_opaque of the PROBE.
struct PdsAck {
  static constexpr std::size_t kSize = 12;
  static constexpr std::string_view kLayer = "pds", kName = "ack";

  PdsType type = PdsType::kAck;
  NextHdr next_hdr{};
  bool flag_epsn = false, m = false, retx = false, p = false;
  AckReq req = AckReq::kNone;
  std::int16_t ack_psn_offset = 0;
  base::Psn cack_psn;
  std::uint16_t spdcid = 0;
  std::uint16_t dpdcid = 0;

  constexpr std::uint16_t probe_opaque() const {
    return static_cast<std::uint16_t>(ack_psn_offset);
  }
  template <typename H = PdsAck>
  static constexpr auto fields() {
    return detail::ack_fields<H>();
  }
};

/// ACK_CC with cc_type 0, NSCC. [WIRE 4.8]
struct PdsAckCcNscc {
  static constexpr std::size_t kSize = 32;
  static constexpr std::string_view kLayer = "pds", kName = "ack_cc_nscc";

  PdsType type = PdsType::kAckCc;
  NextHdr next_hdr{};
  bool flag_epsn = false, m = false, retx = false, p = false;
  AckReq req = AckReq::kNone;
  std::int16_t ack_psn_offset = 0;
  base::Psn cack_psn;
  std::uint16_t spdcid = 0;
  std::uint16_t dpdcid = 0;
  CcType cc_type = CcType::kNscc;
  std::uint8_t mpr = 0;
  std::int16_t sack_psn_offset = 0;
  std::uint64_t sack_bitmap = 0;
  std::uint16_t service_time = 0;
  bool restore_cwnd = false;
  std::uint8_t rcv_cwnd_pend = 0;
  std::uint32_t rcvd_bytes = 0;
  std::uint16_t ooo_count = 0;

  constexpr std::uint16_t probe_opaque() const {
    return static_cast<std::uint16_t>(ack_psn_offset);
  }
  template <typename H = PdsAckCcNscc>
  static constexpr auto fields() {
    return join(
        detail::ack_fields<H>(), detail::sack_fields("cc_type", &H::cc_type),
        list_of(
            field("service_time", &H::service_time, 16, "arrival to departure, in 128 ns units"),
            field("restore_cwnd", &H::restore_cwnd, 1, "ends the receiver-imposed window penalty"),
            field("rcv_cwnd_pend", &H::rcv_cwnd_pend, 7, "receiver window penalty 0..127"),
            field("rcvd_bytes", &H::rcvd_bytes, 24, "new bytes received, in 256-byte units"),
            field("ooo_count", &H::ooo_count, 16, "momentary out-of-order count")));
  }
};

/// ACK_CC with cc_type 1, CREDIT. [WIRE 4.8]
struct PdsAckCcCredit {
  static constexpr std::size_t kSize = 32;
  static constexpr std::string_view kLayer = "pds", kName = "ack_cc_credit";

  PdsType type = PdsType::kAckCc;
  NextHdr next_hdr{};
  bool flag_epsn = false, m = false, retx = false, p = false;
  AckReq req = AckReq::kNone;
  std::int16_t ack_psn_offset = 0;
  base::Psn cack_psn;
  std::uint16_t spdcid = 0;
  std::uint16_t dpdcid = 0;
  CcType cc_type = CcType::kCredit;
  std::uint8_t mpr = 0;
  std::int16_t sack_psn_offset = 0;
  std::uint64_t sack_bitmap = 0;
  std::uint32_t credit = 0;
  std::uint16_t ooo_count = 0;

  constexpr std::uint16_t probe_opaque() const {
    return static_cast<std::uint16_t>(ack_psn_offset);
  }
  template <typename H = PdsAckCcCredit>
  static constexpr auto fields() {
    return join(detail::ack_fields<H>(), detail::sack_fields("cc_type", &H::cc_type),
                list_of(field("credit", &H::credit, 24, "credit granted so far, cyclic"),
                        reserved("cc_state_rsvd", 24),
                        field("ooo_count", &H::ooo_count, 16, "momentary out-of-order count")));
  }
};

/// ACK_CC with a reserved or proprietary cc_type: the SACK part is good, the state is carried and
/// skipped. [WIRE 4.8]
struct PdsAckCcOther {
  static constexpr std::size_t kSize = 32;
  static constexpr std::string_view kLayer = "pds", kName = "ack_cc_other";

  PdsType type = PdsType::kAckCc;
  NextHdr next_hdr{};
  bool flag_epsn = false, m = false, retx = false, p = false;
  AckReq req = AckReq::kNone;
  std::int16_t ack_psn_offset = 0;
  base::Psn cack_psn;
  std::uint16_t spdcid = 0;
  std::uint16_t dpdcid = 0;
  CcType cc_type{};
  std::uint8_t mpr = 0;
  std::int16_t sack_psn_offset = 0;
  std::uint64_t sack_bitmap = 0;
  std::uint64_t ack_cc_state = 0;

  constexpr std::uint16_t probe_opaque() const {
    return static_cast<std::uint16_t>(ack_psn_offset);
  }
  template <typename H = PdsAckCcOther>
  static constexpr auto fields() {
    return join(detail::ack_fields<H>(), detail::sack_fields("cc_type", &H::cc_type),
                list_of(field("ack_cc_state", &H::ack_cc_state, 64, "defined by cc_type")));
  }
};

/// ACK_CCX. [WIRE 4.9] No ccx_type is defined, so the state is carried and skipped. Also how an
/// ACK_CC with an unknown cc_type is read, as far as its SACK part goes.
struct PdsAckCcx {
  static constexpr std::size_t kSize = 40;
  static constexpr std::string_view kLayer = "pds", kName = "ack_ccx";

  PdsType type = PdsType::kAckCcx;
  NextHdr next_hdr{};
  bool flag_epsn = false, m = false, retx = false, p = false;
  AckReq req = AckReq::kNone;
  std::int16_t ack_psn_offset = 0;
  base::Psn cack_psn;
  std::uint16_t spdcid = 0;
  std::uint16_t dpdcid = 0;
  std::uint8_t ccx_type = 0;
  std::uint8_t mpr = 0;
  std::int16_t sack_psn_offset = 0;
  std::uint64_t sack_bitmap = 0;
  U128 ack_ccx_state;

  constexpr std::uint16_t probe_opaque() const {
    return static_cast<std::uint16_t>(ack_psn_offset);
  }
  template <typename H = PdsAckCcx>
  static constexpr auto fields() {
    return join(detail::ack_fields<H>(), detail::sack_fields("ccx_type", &H::ccx_type),
                list_of(field("ack_ccx_state", &H::ack_ccx_state, 128, "defined by ccx_type")));
  }
};

/// NACK. [WIRE 4.10]
struct PdsNack {
  static constexpr std::size_t kSize = 16;
  static constexpr std::string_view kLayer = "pds", kName = "nack";

  PdsType type = PdsType::kNack;
  NextHdr next_hdr{};
  bool m = false, retx = false, nt = false;
  NackCode nack_code{};
  std::uint8_t vendor_code = 0;
  base::Psn nack_psn;
  std::uint16_t spdcid = 0;
  std::uint16_t dpdcid = 0;
  std::uint32_t payload = 0;

  template <typename H = PdsNack>
  static constexpr auto fields() {
    return detail::nack_fields<H>();
  }
};

/// NACK_CCX. [WIRE 4.10]
struct PdsNackCcx {
  static constexpr std::size_t kSize = 32;
  static constexpr std::string_view kLayer = "pds", kName = "nack_ccx";

  PdsType type = PdsType::kNackCcx;
  NextHdr next_hdr{};
  bool m = false, retx = false, nt = false;
  NackCode nack_code{};
  std::uint8_t vendor_code = 0;
  base::Psn nack_psn;
  std::uint16_t spdcid = 0;
  std::uint16_t dpdcid = 0;
  std::uint32_t payload = 0;
  std::uint8_t nccx_type = 0;
  U128 nack_ccx_state;

  template <typename H = PdsNackCcx>
  static constexpr auto fields() {
    return join(detail::nack_fields<H>(),
                list_of(field("nccx_type", &H::nccx_type, 4, "scheme selector"),
                        field("nack_ccx_state", &H::nack_ccx_state, 124, "defined by nccx_type")));
  }
};

/// CONTROL, syn=0. [WIRE 4.11]
struct PdsControl {
  static constexpr std::size_t kSize = 16;
  static constexpr std::string_view kLayer = "pds", kName = "control";

  PdsType type = PdsType::kControl;
  ControlType ctl_type{};
  bool isrod = false, retx = false, ar = false, syn = false;
  std::uint16_t probe_opaque = 0;
  base::Psn psn;
  std::uint16_t spdcid = 0;
  std::uint16_t dpdcid = 0;
  std::uint32_t payload = 0;

  template <typename H = PdsControl>
  static constexpr auto fields() {
    return join(detail::control_fields<H>(), detail::dpdcid_fields<H>(),
                detail::control_payload_fields<H>());
  }
};

/// CONTROL, syn=1. [WIRE 4.11]
struct PdsControlSyn {
  static constexpr std::size_t kSize = 16;
  static constexpr std::string_view kLayer = "pds", kName = "control_syn";

  PdsType type = PdsType::kControl;
  ControlType ctl_type{};
  bool isrod = false, retx = false, ar = false, syn = true;
  std::uint16_t probe_opaque = 0;
  base::Psn psn;
  std::uint16_t spdcid = 0;
  bool use_rsv_pdc = false;
  std::uint16_t psn_offset = 0;
  std::uint32_t payload = 0;

  template <typename H = PdsControlSyn>
  static constexpr auto fields() {
    return join(detail::control_fields<H>(), detail::pdc_info_fields<H>(),
                detail::control_payload_fields<H>());
  }
};

/// RUDI_REQ and RUDI_RESP. [WIRE 4.12]
struct PdsRudi {
  static constexpr std::size_t kSize = 8;
  static constexpr std::string_view kLayer = "pds", kName = "rudi";

  PdsType type = PdsType::kRudiReq;
  NextHdr next_hdr{};
  bool m = false, retx = false;
  std::uint32_t pkt_id = 0;

  template <typename H = PdsRudi>
  static constexpr auto fields() {
    return join(detail::prologue_fields<H>(),
                list_of(reserved("flags_rsvd_a", 1),
                        field("m", &H::m, 1, "response: the request arrived with CE"),
                        field("retx", &H::retx, 1, "same pkt_id has been sent before"),
                        reserved("flags_rsvd_b", 4), reserved("reserved", 16),
                        field("pkt_id", &H::pkt_id, 32, "chosen by the requester")));
  }
};

/// What follows an ACK with flag_epsn: an extension of after 1.0.1 that is skipped. [WIRE 4.7]
struct PdsExpectedPsn {
  static constexpr std::size_t kSize = 4;
  static constexpr std::string_view kLayer = "pds", kName = "expected_psn";

  base::Psn expected_psn;

  template <typename H = PdsExpectedPsn>
  static constexpr auto fields() {
    return list_of(field("expected_psn", &H::expected_psn, 32, "next PSN the target expects"));
  }
};

/// UUD_REQ. [WIRE 4.13]
struct PdsUud {
  static constexpr std::size_t kSize = 4;
  static constexpr std::string_view kLayer = "pds", kName = "uud";

  PdsType type = PdsType::kUudReq;
  NextHdr next_hdr{};

  template <typename H = PdsUud>
  static constexpr auto fields() {
    return join(detail::prologue_fields<H>(),
                list_of(reserved("flags_rsvd", 7), reserved("reserved", 16)));
  }
};

}  // namespace uet::wire
