#include "lib/wire/dissect.h"

#include <algorithm>

#include "lib/wire/codec.h"
#include "lib/wire/ses_rules.h"

namespace uet::wire {
namespace {

class UetDissector {
 public:
  using Bytes = std::span<const std::uint8_t>;

  UetDissector(Bytes bytes, const UetContext& context, DissectVisitor& visitor)
      : bytes_(bytes), context_(context), visitor_(visitor) {}

  void run() {
    if (left() >= 1 && PdsType{static_cast<std::uint8_t>(bytes_[0] >> 3)} == PdsType::kTss)
      tss();
    else
      pds();
  }

 private:
  // The cursor
  // -----------------------------------------------------------------------------------------------------

  std::size_t left() const { return bytes_.size() - at_; }
  /// Bytes left on the wire, whether captured or not.
  std::size_t wire_left() const { return std::max(context_.wire_length, bytes_.size()) - at_; }
  std::size_t offset() const { return context_.offset + at_; }
  std::uint8_t peek(std::size_t i) const { return bytes_[at_ + i]; }

  void problem(Problem p, std::uint64_t a = 0, std::uint64_t b = 0) {
    visitor_.on_problem(p, offset(), a, b);
  }
  void problem_if(bool wrong, Problem p, std::uint64_t a = 0, std::uint64_t b = 0) {
    if (wrong) problem(p, a, b);
  }
  void give(BytesKind kind, std::size_t n) {
    visitor_.on_bytes(kind, offset(), bytes_.subspan(at_, n));
    at_ += n;
  }

  /// True when n bytes are there. Otherwise says so and gives away the rest.
  bool need(std::size_t n, Problem truncated) {
    if (left() >= n) return true;
    problem(truncated, n, left());
    if (left() > 0) give(BytesKind::kUndecoded, left());
    return false;
  }

  /// Decodes H here and shows it to the visitor, if it is all there. `name` is the value's own name
  /// if it has one.
  template <typename H>
  std::optional<H> take(std::string_view name, Problem truncated) {
    if (!need(H::kSize, truncated)) return std::nullopt;
    const Bytes raw = bytes_.subspan(at_, H::kSize);
    const HeaderType& type = type_of<H>();
    problem_if(has_reserved_bits_set(type, raw), Problem::kReservedBits);
    visitor_.on_header(type, name, offset(), raw);
    at_ += H::kSize;
    return decode_out_of_line<H>(raw.data());
  }

  // TSS [WIRE 3]
  // ---------------------------------------------------------------------------------------------------

  void tss() {
    const bool with_ssi = (bytes_[0] & 0x04) != 0;
    const std::size_t from = at_;
    if (with_ssi ? !take<TssHeaderSsi>("TSS", Problem::kTssTruncated).has_value()
                 : !take<TssHeader>("TSS", Problem::kTssTruncated).has_value())
      return;
    if (wire_left() < PdsUud::kSize + kTssIcvBytes && !context_.is_trimmed) {
      problem(Problem::kTssNoIcv, wire_left());
      if (left() > 0) give(BytesKind::kUndecoded, left());
      return;
    }
    const bool is_whole = left() == wire_left() && left() >= kTssIcvBytes && !context_.is_trimmed;
    if (is_whole) open_sealed(bytes_.subspan(from, at_ - from));
    // A trimmed packet has lost its tag; of a cut one, part of the tag may have been captured.
    const std::size_t icv_on_wire = context_.is_trimmed ? 0 : kTssIcvBytes;
    const std::size_t cipher = std::min(left(), wire_left() - icv_on_wire);
    if (cipher > 0) give(BytesKind::kCipher, cipher);
    if (left() > 0) give(BytesKind::kIcv, left());
  }

  /// Lets the visitor decrypt; the clear text is then dissected in place of the cipher text.
  void open_sealed(Bytes header) {
    const Bytes sealed = bytes_.subspan(at_);
    const std::optional<Bytes> clear = visitor_.open(SealedPacket{context_, header, sealed});
    if (!clear) return;
    UetContext inner = context_;
    inner.offset = offset();
    inner.wire_length = clear->size();
    inner.crc_expected.reset();
    UetDissector(*clear, inner, visitor_).pds();
    at_ += sealed.size() - kTssIcvBytes;
  }

  // PDS [WIRE 4]
  // ---------------------------------------------------------------------------------------------------

  void pds() {
    if (!need(PdsUud::kSize, Problem::kPdsTruncated)) return;
    const PdsPrologue start = decode<PdsPrologue>(bytes_.data() + at_);
    const std::string_view name = name_of(start.type);
    const bool has_syn = (start.flags & 0x04) != 0;
    switch (start.type) {
      case PdsType::kRudReq:
      case PdsType::kRodReq:
        if (has_syn)
          request<PdsRequestSyn>(name);
        else
          request<PdsRequest>(name);
        break;
      case PdsType::kRudCcReq:
      case PdsType::kRodCcReq:
        if (has_syn)
          request<PdsRequestCcSyn>(name);
        else
          request<PdsRequestCc>(name);
        break;
      case PdsType::kRudiReq:
      case PdsType::kRudiResp:
        if (const auto h = take<PdsRudi>(name, Problem::kPdsTruncated)) {
          problem_if(h->m && h->type == PdsType::kRudiReq, Problem::kReservedBits);
          ses(*h);
        }
        break;
      case PdsType::kUudReq:
        if (const auto h = take<PdsUud>(name, Problem::kPdsTruncated)) ses(*h);
        break;
      case PdsType::kAck:
        ack<PdsAck>(name);
        break;
      case PdsType::kAckCc:
        ack_cc(name);
        break;
      case PdsType::kAckCcx:
        ack<PdsAckCcx>(name);
        break;
      case PdsType::kNack:
        nack<PdsNack>(name);
        break;
      case PdsType::kNackCcx:
        nack<PdsNackCcx>(name);
        break;
      case PdsType::kControl:
        if (has_syn)
          control<PdsControlSyn>(name);
        else
          control<PdsControl>(name);
        break;
      default:  // 0, 15-31, and TSS behind TSS
        problem(Problem::kPdsType, static_cast<std::uint64_t>(start.type));
        give(BytesKind::kUndecoded, left());
        break;
    }
  }

  template <typename H>
  void request(std::string_view name) {
    const auto h = take<H>(name, Problem::kPdsTruncated);
    if (!h) return;
    problem_if(h->clear_psn_offset > 0, Problem::kClearOffset,
               static_cast<std::uint64_t>(h->clear_psn_offset));
    problem_if(h->spdcid == 0, Problem::kPdcidZero);
    if constexpr (requires { h->dpdcid; }) problem_if(h->dpdcid == 0, Problem::kPdcidZero);
    ses(*h);
  }

  /// The state behind byte 12 is laid out by cc_type.
  void ack_cc(std::string_view name) {
    if (!need(PdsAckCcNscc::kSize, Problem::kPdsTruncated)) return;
    switch (const CcType cc_type{static_cast<std::uint8_t>(peek(12) >> 4)}; cc_type) {
      case CcType::kNscc:
        ack<PdsAckCcNscc>(name);
        break;
      case CcType::kCredit:
        ack<PdsAckCcCredit>(name);
        break;
      default:
        ack<PdsAckCcOther>(name);
        break;
    }
  }

  template <typename H>
  void ack(std::string_view name) {
    const auto h = take<H>(name, Problem::kPdsTruncated);
    if (!h) return;
    problem_if(h->req > AckReq::kClose, Problem::kAckReq);
    problem_if(h->spdcid == 0 || h->dpdcid == 0, Problem::kPdcidZero);
    problem_if(h->flag_epsn, Problem::kEpsn);
    constexpr std::uint8_t kFirstProprietary = 14;
    if constexpr (requires { h->ack_cc_state; })
      problem_if(static_cast<std::uint8_t>(h->cc_type) < kFirstProprietary, Problem::kCcType,
                 static_cast<std::uint64_t>(h->cc_type));
    if constexpr (requires { h->ccx_type; })
      problem_if(h->ccx_type < kFirstProprietary, Problem::kCcType, h->ccx_type);
    // [WIRE 4.7] A later extension appends Expected_PSN to plain ACKs; it is skipped.
    if (h->type == PdsType::kAck && h->flag_epsn && h->next_hdr == NextHdr::kNone &&
        left() >= PdsExpectedPsn::kSize)
      take<PdsExpectedPsn>("EXPECTED_PSN", Problem::kPdsTruncated);
    ses(*h);
  }

  template <typename H>
  void nack(std::string_view name) {
    const auto h = take<H>(name, Problem::kPdsTruncated);
    if (!h) return;
    problem_if(name_of(h->nack_code).empty(), Problem::kNackCode,
               static_cast<std::uint64_t>(h->nack_code));
    problem_if(h->next_hdr != NextHdr::kNone, Problem::kNextHdrImpossible,
               static_cast<std::uint64_t>(h->next_hdr), static_cast<std::uint64_t>(h->type));
    if (h->nt)
      problem_if(h->spdcid != 0 || h->dpdcid != 0, Problem::kPdcidNotZero);
    else
      problem_if(h->dpdcid == 0, Problem::kPdcidZero);
    surplus();  // [WIRE 10 #16] whatever follows is ignored
  }

  template <typename H>
  void control(std::string_view name) {
    const auto h = take<H>(name, Problem::kPdsTruncated);
    if (!h) return;
    const auto ctl_type = static_cast<std::uint64_t>(h->ctl_type);
    problem_if(name_of(h->ctl_type).empty(), Problem::kControlType, ctl_type);
    problem_if(h->spdcid == 0, Problem::kPdcidZero);
    if constexpr (requires { h->dpdcid; }) problem_if(h->dpdcid == 0, Problem::kPdcidZero);
    problem_if(h->syn && h->ctl_type == ControlType::kProbe, Problem::kSynNotAllowed, ctl_type);
    problem_if(h->probe_opaque != 0 && h->ctl_type != ControlType::kProbe, Problem::kReservedBits);
    problem_if(h->ctl_type == ControlType::kAckRequest && (h->payload >> 16) != 0,
               Problem::kReservedBits);
    problem_if(h->ctl_type == ControlType::kCredit && (h->payload & 0xff) != 0,
               Problem::kReservedBits);
    // [WIRE 9.2] NEGOTIATION may grow a longer payload: extra bytes are accepted there.
    if (h->ctl_type == ControlType::kNegotiation && left() > 0)
      give(BytesKind::kUndecoded, left());
    else
      surplus();
  }

  // SES [WIRE 5]
  // ---------------------------------------------------------------------------------------------------

  template <typename H>
  void ses(const H& below) {
    const NextHdr form = below.next_hdr;
    const PdsType type = below.type;
    if (name_of(form).empty()) {
      problem(Problem::kNextHdrReserved, static_cast<std::uint64_t>(form));
      if (left() > 0) give(BytesKind::kUndecoded, left());
      return;
    }
    problem_if(!can_follow(type, form), Problem::kNextHdrImpossible,
               static_cast<std::uint64_t>(form), static_cast<std::uint64_t>(type));
    const std::string_view name = name_of(form);
    switch (form) {
      case NextHdr::kNone:
        surplus();
        break;
      case NextHdr::kRequestSmall:
        ses_request<SesSmall>(name, form, type);
        break;
      case NextHdr::kRequestMedium:
        ses_request<SesMedium>(name, form, type);
        break;
      case NextHdr::kRequestStd:
        ses_standard(name, form, type);
        break;
      case NextHdr::kResponse:
        ses_response<SesResponse>(name, form);
        break;
      case NextHdr::kResponseData:
        ses_response<SesResponseData>(name, form);
        break;
      case NextHdr::kResponseDataSmall:
        ses_response<SesResponseDataSmall>(name, form);
        break;
    }
  }

  /// Opcode and som select the meaning of bytes 12 to 39.
  void ses_standard(std::string_view name, NextHdr form, PdsType type) {
    if (!need(SesStandardFirst::kSize, Problem::kSesTruncated)) return;
    const bool is_first = (peek(1) & 0x01) != 0;
    switch (const SesOpcode opcode{static_cast<std::uint8_t>(peek(0) & 0x3f)}; opcode) {
      case SesOpcode::kDeferrableSend:
      case SesOpcode::kDeferrableTsend:
        if (is_first)
          ses_request<SesDeferrable>(name, form, type);
        else
          ses_request<SesDeferrableNext>(name, form, type);
        break;
      case SesOpcode::kSequencedSend:
      case SesOpcode::kSequencedTsend:
      case SesOpcode::kSequencedGap:
      case SesOpcode::kSequencedTgap:
      case SesOpcode::kSequencedRendezvousSend:
      case SesOpcode::kSequencedRendezvousTsend:
        if (is_first)
          ses_request<SesSequenced>(name, form, type);
        else
          ses_request<SesSequencedNext>(name, form, type);
        break;
      case SesOpcode::kDeferrableRtr:
        ses_request<SesReadyToRestart>(name, form, type);
        break;
      default:
        if (is_first)
          ses_request<SesStandardFirst>(name, form, type);
        else
          ses_request<SesStandardNext>(name, form, type);
        break;
    }
  }

  template <typename H>
  void ses_request(std::string_view name, NextHdr form, PdsType type) {
    const auto h = take<H>(name, Problem::kSesTruncated);
    if (!h) return;
    const auto opcode = static_cast<std::uint64_t>(h->opcode);
    problem_if(h->version != 0, Problem::kSesVersion, h->version);
    problem_if(is_reserved(h->opcode), Problem::kSesOpcode, opcode);
    problem_if(!is_allowed_in_form(h->opcode, form), Problem::kSesOpcodeForm, opcode,
               static_cast<std::uint64_t>(form));
    problem_if(!is_allowed_in_mode(h->opcode, type), Problem::kSesOpcodeMode, opcode,
               static_cast<std::uint64_t>(type));
    const bool is_single = form != NextHdr::kRequestStd || h->opcode == SesOpcode::kDeferrableRtr ||
                           h->opcode == SesOpcode::kNoOp || type == PdsType::kUudReq;
    problem_if(is_single && !(h->som && h->eom), Problem::kSesFlags);
    problem_if(form == NextHdr::kRequestSmall && h->hd, Problem::kSmallHd);

    Coverage covered = coverage_of(*h);
    if (has_atomic_extension(h->opcode)) {
      if (!atomic_extension(covered)) return;
    } else if (form == NextHdr::kRequestStd && has_rendezvous_extension(h->opcode)) {
      const auto ext = take<ExtRendezvous>("RENDEZVOUS", Problem::kExtTruncated);
      if (!ext) return;
      if (h->som && h->eom) covered.bytes = ext->eager_length;
    }
    if constexpr (requires { h->message_offset; }) {
      const WideAsk ask = WideAsk::unpack(h->payload_length);
      const bool is_wide = h->opcode == SesOpcode::kRead && h->hd && ask.is_valid();
      // The last packet of a wide READ asks for some byte at least.
      const std::uint64_t length = !is_wide ? h->payload_length : h->eom ? 1 : ask.bytes();
      problem_if(h->message_offset + length > h->request_length, Problem::kBeyondMessage,
                 h->message_offset + length, h->request_length);
      if (h->opcode != SesOpcode::kMsgError) {
        problem_if(!is_multiple_of_payload_mtu(h->message_offset), Problem::kOffsetNotMtu,
                   h->message_offset);
        problem_if(!h->eom && !is_mtu(h->payload_length) && !is_wide, Problem::kPayloadNotMtu,
                   h->payload_length);
      }
    }
    if (h->opcode == SesOpcode::kRead) covered = Coverage{.is_known = true, .bytes = 0};
    payload(covered);
  }

  /// The extension of atomics: 36 bytes for the compare-and-swap family, 4 otherwise. `covered`
  /// becomes what follows.
  bool atomic_extension(Coverage& covered) {
    if (!need(1, Problem::kExtTruncated)) return false;
    if (has_compare_operands(AmoOpcode{peek(0)})) {
      const auto h = take<ExtCompareSwap>("COMPARE_AND_SWAP", Problem::kExtTruncated);
      if (!h) return false;
      check_amo(*h);
      // [WIRE 5.11] The operands count as the payload, so nothing follows.
      problem_if(covered.is_known && covered.bytes != kCompareOperandBytes, Problem::kAmoLength,
                 covered.bytes, kCompareOperandBytes);
      covered = Coverage{.is_known = true, .bytes = 0};
      return true;
    }
    const auto h = take<ExtAtomic>("ATOMIC", Problem::kExtTruncated);
    if (!h) return false;
    check_amo(*h);
    const std::size_t element = amo_bytes(h->amo_datatype);
    problem_if(covered.is_known && element != 0 && covered.bytes % element != 0,
               Problem::kAmoLength, covered.bytes, element);
    return true;
  }

  template <typename H>
  void check_amo(const H& h) {
    problem_if(is_reserved(h.amo_opcode), Problem::kAmoOpcode,
               static_cast<std::uint64_t>(h.amo_opcode));
    problem_if(is_reserved(h.amo_datatype), Problem::kAmoDatatype,
               static_cast<std::uint64_t>(h.amo_datatype));
  }

  template <typename H>
  void ses_response(std::string_view name, NextHdr form) {
    const auto h = take<H>(name, Problem::kSesTruncated);
    if (!h) return;
    const auto opcode = static_cast<std::uint64_t>(h->opcode);
    problem_if(h->version != 0, Problem::kSesVersion, h->version);
    problem_if(is_reserved(h->opcode), Problem::kSesOpcode, opcode);
    problem_if(!is_allowed_in_form(h->opcode, form), Problem::kSesOpcodeForm, opcode,
               static_cast<std::uint64_t>(form));
    problem_if(is_reserved(h->return_code), Problem::kReturnCode,
               static_cast<std::uint64_t>(h->return_code));
    if constexpr (requires { h->message_offset; })
      problem_if(std::uint64_t{h->message_offset} + h->payload_length > h->modified_length,
                 Problem::kBeyondMessage, std::uint64_t{h->message_offset} + h->payload_length,
                 h->modified_length);
    if constexpr (requires { h->payload_length; })
      payload(Coverage{.is_known = true, .bytes = h->payload_length});
    else
      payload(Coverage{.is_known = true, .bytes = 0});
  }

  // Behind the last header [WIRE 5.19]
  // -----------------------------------------------------------------------------

  bool is_mtu(std::uint64_t n) const {
    return context_.payload_mtu != 0 ? n == context_.payload_mtu : is_payload_mtu(n);
  }

  void payload(const Coverage& covered) {
    const std::size_t rest = wire_left();
    std::size_t expected = rest;
    if (covered.is_known) {
      expected = std::min<std::uint64_t>(covered.bytes, rest);
      problem_if(covered.bytes > rest && !context_.is_trimmed, Problem::kPayloadMissing,
                 covered.bytes, rest);
    } else if (!is_mtu(rest) && !context_.is_trimmed) {
      // Nor can a packet that the capture cut say whether it ended in a CRC.
      const bool may_end_in_crc = context_.crc_expected || left() < rest;
      if (may_end_in_crc && rest > kUetCrcBytes && is_mtu(rest - kUetCrcBytes))
        expected = rest - kUetCrcBytes;
      else
        problem(Problem::kPayloadNotMtu, rest);
    }
    if (const std::size_t n = std::min(expected, left()); n > 0) give(BytesKind::kPayload, n);
    if (covered.is_known && covered.bytes == 0)
      surplus(Problem::kPayloadUnexpected);
    else
      surplus();
  }

  /// Bytes that no header announced: a UET CRC that does not fit, or garbage.
  void surplus(Problem name = Problem::kSurplus) {
    if (left() == 0) return;
    if (context_.crc_expected && left() == kUetCrcBytes && wire_left() == kUetCrcBytes) {
      problem(Problem::kBadCrc, base::load_be<std::uint32_t>(bytes_.data() + at_),
              *context_.crc_expected);
      give(BytesKind::kCrc, left());
    } else {
      problem(name, left(), left());
      give(BytesKind::kUndecoded, left());
    }
  }

  Bytes bytes_;
  const UetContext& context_;
  DissectVisitor& visitor_;
  std::size_t at_ = 0;
};

}  // namespace

void dissect_uet(std::span<const std::uint8_t> bytes, const UetContext& context,
                 DissectVisitor& visitor) {
  UetDissector(bytes, context, visitor).run();
}

}  // namespace uet::wire
