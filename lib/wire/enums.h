/// Every enumerated value of the UET wire format, with its name. A received field may hold any
/// value: enumerations have a fixed underlying type, and name_of() is empty for a value without a
/// name.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace uet::wire {

/// One named value, as the generators and the dump tool see it.
struct EnumEntry {
  std::uint32_t value;
  std::string_view name;
};

// Each list is X(enumerator, value, "NAME").

// [WIRE 4.2]
#define UET_PDS_TYPES(X)         \
  X(kTss, 1, "TSS")              \
  X(kRudReq, 2, "RUD_REQ")       \
  X(kRodReq, 3, "ROD_REQ")       \
  X(kRudiReq, 4, "RUDI_REQ")     \
  X(kRudiResp, 5, "RUDI_RESP")   \
  X(kUudReq, 6, "UUD_REQ")       \
  X(kAck, 7, "ACK")              \
  X(kAckCc, 8, "ACK_CC")         \
  X(kAckCcx, 9, "ACK_CCX")       \
  X(kNack, 10, "NACK")           \
  X(kControl, 11, "CONTROL")     \
  X(kNackCcx, 12, "NACK_CCX")    \
  X(kRudCcReq, 13, "RUD_CC_REQ") \
  X(kRodCcReq, 14, "ROD_CC_REQ")

// [WIRE 4.3]
#define UET_NEXT_HDRS(X)                 \
  X(kNone, 0, "NONE")                    \
  X(kRequestSmall, 1, "REQUEST_SMALL")   \
  X(kRequestMedium, 2, "REQUEST_MEDIUM") \
  X(kRequestStd, 3, "REQUEST_STD")       \
  X(kResponse, 4, "RESPONSE")            \
  X(kResponseData, 5, "RESPONSE_DATA")   \
  X(kResponseDataSmall, 6, "RESPONSE_DATA_SMALL")

// [WIRE 4.7] The `req` field of ACKs.
#define UET_ACK_REQUESTS(X) \
  X(kNone, 0, "NONE")       \
  X(kClear, 1, "CLEAR")     \
  X(kClose, 2, "CLOSE")

// [WIRE 4.8]
#define UET_CC_TYPES(X) \
  X(kNscc, 0, "NSCC")   \
  X(kCredit, 1, "CREDIT")

// [WIRE 4.10]
#define UET_NACK_CODES(X)                        \
  X(kTrimmed, 0x01, "TRIMMED")                   \
  X(kTrimmedLasthop, 0x02, "TRIMMED_LASTHOP")    \
  X(kTrimmedAck, 0x03, "TRIMMED_ACK")            \
  X(kNoPdcAvail, 0x04, "NO_PDC_AVAIL")           \
  X(kNoCccAvail, 0x05, "NO_CCC_AVAIL")           \
  X(kNoBitmap, 0x06, "NO_BITMAP")                \
  X(kNoPktBuffer, 0x07, "NO_PKT_BUFFER")         \
  X(kNoGtdDelAvail, 0x08, "NO_GTD_DEL_AVAIL")    \
  X(kNoSesMsgAvail, 0x09, "NO_SES_MSG_AVAIL")    \
  X(kNoResource, 0x0a, "NO_RESOURCE")            \
  X(kPsnOorWindow, 0x0b, "PSN_OOR_WINDOW")       \
  X(kRodOoo, 0x0d, "ROD_OOO")                    \
  X(kInvDpdcid, 0x0e, "INV_DPDCID")              \
  X(kPdcHdrMismatch, 0x0f, "PDC_HDR_MISMATCH")   \
  X(kClosing, 0x10, "CLOSING")                   \
  X(kClosingInErr, 0x11, "CLOSING_IN_ERR")       \
  X(kPktNotRcvd, 0x12, "PKT_NOT_RCVD")           \
  X(kGtdRespUnavail, 0x13, "GTD_RESP_UNAVAIL")   \
  X(kAckWithData, 0x14, "ACK_WITH_DATA")         \
  X(kInvalidSyn, 0x15, "INVALID_SYN")            \
  X(kPdcModeMismatch, 0x16, "PDC_MODE_MISMATCH") \
  X(kNewStartPsn, 0x17, "NEW_START_PSN")         \
  X(kRcvdSesProcg, 0x18, "RCVD_SES_PROCG")       \
  X(kUnexpEvent, 0x19, "UNEXP_EVENT")            \
  X(kRcvrInferLoss, 0x1a, "RCVR_INFER_LOSS")     \
  X(kExpNackNormal, 0xfd, "EXP_NACK_NORMAL")     \
  X(kExpNackErr, 0xfe, "EXP_NACK_ERR")           \
  X(kExpNackFatal, 0xff, "EXP_NACK_FATAL")

// [WIRE 4.11]
#define UET_CONTROL_TYPES(X)             \
  X(kNoop, 0, "NOOP")                    \
  X(kAckRequest, 1, "ACK_REQUEST")       \
  X(kClearCommand, 2, "CLEAR_COMMAND")   \
  X(kClearRequest, 3, "CLEAR_REQUEST")   \
  X(kCloseCommand, 4, "CLOSE_COMMAND")   \
  X(kCloseRequest, 5, "CLOSE_REQUEST")   \
  X(kProbe, 6, "PROBE")                  \
  X(kCredit, 7, "CREDIT")                \
  X(kCreditRequest, 8, "CREDIT_REQUEST") \
  X(kNegotiation, 9, "NEGOTIATION")

// [WIRE 5.4] 0x30 to 0x3e are the vendor's: those of ours are the question whether a receive has taken a message, ordered messages with
// a number, word that a number does not come, and rendezvous with a number, untagged and tagged. [decisions 105, 141, 142]
#define UET_SES_OPCODES(X)                                         \
  X(kNoOp, 0x00, "NO_OP")                                          \
  X(kWrite, 0x01, "WRITE")                                         \
  X(kRead, 0x02, "READ")                                           \
  X(kAtomic, 0x03, "ATOMIC")                                       \
  X(kFetchingAtomic, 0x04, "FETCHING_ATOMIC")                      \
  X(kSend, 0x05, "SEND")                                           \
  X(kRendezvousSend, 0x06, "RENDEZVOUS_SEND")                      \
  X(kDatagramSend, 0x07, "DATAGRAM_SEND")                          \
  X(kDeferrableSend, 0x08, "DEFERRABLE_SEND")                      \
  X(kTaggedSend, 0x09, "TAGGED_SEND")                              \
  X(kRendezvousTsend, 0x0a, "RENDEZVOUS_TSEND")                    \
  X(kDeferrableTsend, 0x0b, "DEFERRABLE_TSEND")                    \
  X(kDeferrableRtr, 0x0c, "DEFERRABLE_RTR")                        \
  X(kTsendAtomic, 0x0d, "TSEND_ATOMIC")                            \
  X(kTsendFetchAtomic, 0x0e, "TSEND_FETCH_ATOMIC")                 \
  X(kMsgError, 0x0f, "MSG_ERROR")                                  \
  X(kAwaitDelivery, 0x30, "AWAIT_DELIVERY")                        \
  X(kSequencedSend, 0x31, "SEQUENCED_SEND")                        \
  X(kSequencedTsend, 0x32, "SEQUENCED_TSEND")                      \
  X(kSequencedGap, 0x33, "SEQUENCED_GAP")                          \
  X(kSequencedTgap, 0x34, "SEQUENCED_TGAP")                        \
  X(kSequencedRendezvousSend, 0x35, "SEQUENCED_RENDEZVOUS_SEND")   \
  X(kSequencedRendezvousTsend, 0x36, "SEQUENCED_RENDEZVOUS_TSEND") \
  X(kExtended, 0x3f, "EXTENDED")

// [WIRE 5.12]
#define UET_AMO_OPCODES(X)      \
  X(kMin, 0x00, "MIN")          \
  X(kMax, 0x01, "MAX")          \
  X(kSum, 0x02, "SUM")          \
  X(kDiff, 0x03, "DIFF")        \
  X(kProd, 0x04, "PROD")        \
  X(kLor, 0x05, "LOR")          \
  X(kLand, 0x06, "LAND")        \
  X(kBor, 0x07, "BOR")          \
  X(kBand, 0x08, "BAND")        \
  X(kLxor, 0x09, "LXOR")        \
  X(kBxor, 0x0a, "BXOR")        \
  X(kRead, 0x0b, "READ")        \
  X(kWrite, 0x0c, "WRITE")      \
  X(kCswap, 0x0d, "CSWAP")      \
  X(kCswapNe, 0x0e, "CSWAP_NE") \
  X(kCswapLe, 0x0f, "CSWAP_LE") \
  X(kCswapLt, 0x10, "CSWAP_LT") \
  X(kCswapGe, 0x11, "CSWAP_GE") \
  X(kCswapGt, 0x12, "CSWAP_GT") \
  X(kMswap, 0x13, "MSWAP")      \
  X(kInval, 0x14, "INVAL")

// [WIRE 5.13]
#define UET_AMO_DATATYPES(X)                         \
  X(kInt8, 0x00, "INT8")                             \
  X(kUint8, 0x01, "UINT8")                           \
  X(kInt16, 0x02, "INT16")                           \
  X(kUint16, 0x03, "UINT16")                         \
  X(kInt32, 0x04, "INT32")                           \
  X(kUint32, 0x05, "UINT32")                         \
  X(kInt64, 0x06, "INT64")                           \
  X(kUint64, 0x07, "UINT64")                         \
  X(kInt128, 0x08, "INT128")                         \
  X(kUint128, 0x09, "UINT128")                       \
  X(kFloat, 0x0a, "FLOAT")                           \
  X(kDouble, 0x0b, "DOUBLE")                         \
  X(kFloatComplex, 0x0c, "FLOAT_COMPLEX")            \
  X(kDoubleComplex, 0x0d, "DOUBLE_COMPLEX")          \
  X(kLongDouble, 0x0e, "LONG_DOUBLE")                \
  X(kLongDoubleComplex, 0x0f, "LONG_DOUBLE_COMPLEX") \
  X(kBfloat16, 0x10, "BFLOAT16")                     \
  X(kFloat16, 0x11, "FLOAT16")

// [WIRE 5.16]
#define UET_RESPONSE_LISTS(X) \
  X(kExpected, 0, "EXPECTED") \
  X(kOverflow, 1, "OVERFLOW")

// [WIRE 5.16]
#define UET_RESPONSE_OPCODES(X)              \
  X(kDefaultResponse, 0, "DEFAULT_RESPONSE") \
  X(kResponse, 1, "RESPONSE")                \
  X(kResponseWData, 2, "RESPONSE_W_DATA")    \
  X(kNoResponse, 3, "NO_RESPONSE")

// [WIRE 5.17]
#define UET_RETURN_CODES(X)                            \
  X(kNull, 0x00, "NULL")                               \
  X(kOk, 0x01, "OK")                                   \
  X(kBadGeneration, 0x02, "BAD_GENERATION")            \
  X(kDisabled, 0x03, "DISABLED")                       \
  X(kDisabledGen, 0x04, "DISABLED_GEN")                \
  X(kNoMatch, 0x05, "NO_MATCH")                        \
  X(kUnsupportedOp, 0x06, "UNSUPPORTED_OP")            \
  X(kUnsupportedSize, 0x07, "UNSUPPORTED_SIZE")        \
  X(kAtInvalid, 0x08, "AT_INVALID")                    \
  X(kAtPerm, 0x09, "AT_PERM")                          \
  X(kAtAtsError, 0x0a, "AT_ATS_ERROR")                 \
  X(kAtNoTrans, 0x0b, "AT_NO_TRANS")                   \
  X(kAtOutOfRange, 0x0c, "AT_OUT_OF_RANGE")            \
  X(kHostPoisoned, 0x0d, "HOST_POISONED")              \
  X(kHostUnsuccessCmpl, 0x0e, "HOST_UNSUCCESS_CMPL")   \
  X(kAmoUnsupportedOp, 0x0f, "AMO_UNSUPPORTED_OP")     \
  X(kAmoUnsupportedDt, 0x10, "AMO_UNSUPPORTED_DT")     \
  X(kAmoUnsupportedSize, 0x11, "AMO_UNSUPPORTED_SIZE") \
  X(kAmoUnaligned, 0x12, "AMO_UNALIGNED")              \
  X(kAmoFpNan, 0x13, "AMO_FP_NAN")                     \
  X(kAmoFpUnderflow, 0x14, "AMO_FP_UNDERFLOW")         \
  X(kAmoFpOverflow, 0x15, "AMO_FP_OVERFLOW")           \
  X(kAmoFpInexact, 0x16, "AMO_FP_INEXACT")             \
  X(kPermViolation, 0x17, "PERM_VIOLATION")            \
  X(kOpViolation, 0x18, "OP_VIOLATION")                \
  X(kBadIndex, 0x19, "BAD_INDEX")                      \
  X(kBadPid, 0x1a, "BAD_PID")                          \
  X(kBadJobId, 0x1b, "BAD_JOB_ID")                     \
  X(kBadMkey, 0x1c, "BAD_MKEY")                        \
  X(kBadAddr, 0x1d, "BAD_ADDR")                        \
  X(kCancelled, 0x1e, "CANCELLED")                     \
  X(kUndeliverable, 0x1f, "UNDELIVERABLE")             \
  X(kUncor, 0x20, "UNCOR")                             \
  X(kUncorTrnsnt, 0x21, "UNCOR_TRNSNT")                \
  X(kTooLong, 0x22, "TOO_LONG")                        \
  X(kInitiatorErr, 0x23, "INITIATOR_ERR")              \
  X(kDropped, 0x24, "DROPPED")                         \
  X(kExtended, 0x3e, "EXTENDED")

// [WIRE 2.2, 2.3]
#define UET_ETHER_TYPES(X)   \
  X(kIpv4, 0x0800, "IPv4")   \
  X(kArp, 0x0806, "ARP")     \
  X(kVlan, 0x8100, "802.1Q") \
  X(kIpv6, 0x86dd, "IPv6")   \
  X(kQinQ, 0x88a8, "802.1ad")

#define UET_IP_PROTOCOLS(X)               \
  X(kHopByHop, 0, "HOPOPT")               \
  X(kIcmp, 1, "ICMP")                     \
  X(kTcp, 6, "TCP")                       \
  X(kUdp, 17, "UDP")                      \
  X(kRouting, 43, "IPv6-Route")           \
  X(kFragment, 44, "IPv6-Frag")           \
  X(kAuthentication, 51, "AH")            \
  X(kIcmpV6, 58, "ICMPv6")                \
  X(kNoNext, 59, "IPv6-NoNxt")            \
  X(kDestinationOptions, 60, "IPv6-Opts") \
  X(kUetNative, 253, "UET")

/// enum_entries(E{}) is the list of E's names; name_of(e) looks one up.
template <typename E>
struct EnumTraits;

#define UET_X_ENUMERATOR(enumerator, value, name) enumerator = value,
#define UET_X_ENTRY(enumerator, value, name) EnumEntry{value, name},
#define UET_DEFINE_ENUM(Type, Underlying, list, spec_name)                                \
  enum class Type : Underlying { list(UET_X_ENUMERATOR) };                                \
  template <>                                                                             \
  struct EnumTraits<Type> {                                                               \
    static constexpr std::string_view kName = spec_name;                                  \
    static constexpr std::array kEntries = std::to_array<EnumEntry>({list(UET_X_ENTRY)}); \
  };

UET_DEFINE_ENUM(PdsType, std::uint8_t, UET_PDS_TYPES, "pds_type")
UET_DEFINE_ENUM(NextHdr, std::uint8_t, UET_NEXT_HDRS, "next_hdr")
UET_DEFINE_ENUM(AckReq, std::uint8_t, UET_ACK_REQUESTS, "ack_req")
UET_DEFINE_ENUM(CcType, std::uint8_t, UET_CC_TYPES, "cc_type")
UET_DEFINE_ENUM(NackCode, std::uint8_t, UET_NACK_CODES, "nack_code")
UET_DEFINE_ENUM(ControlType, std::uint8_t, UET_CONTROL_TYPES, "ctl_type")
UET_DEFINE_ENUM(SesOpcode, std::uint8_t, UET_SES_OPCODES, "opcode")
UET_DEFINE_ENUM(AmoOpcode, std::uint8_t, UET_AMO_OPCODES, "amo_opcode")
UET_DEFINE_ENUM(AmoDatatype, std::uint8_t, UET_AMO_DATATYPES, "amo_datatype")
UET_DEFINE_ENUM(ResponseList, std::uint8_t, UET_RESPONSE_LISTS, "list")
UET_DEFINE_ENUM(ResponseOpcode, std::uint8_t, UET_RESPONSE_OPCODES, "response_opcode")
UET_DEFINE_ENUM(ReturnCode, std::uint8_t, UET_RETURN_CODES, "return_code")
UET_DEFINE_ENUM(EtherType, std::uint16_t, UET_ETHER_TYPES, "ether_type")
UET_DEFINE_ENUM(IpProtocol, std::uint8_t, UET_IP_PROTOCOLS, "ip_protocol")

#undef UET_DEFINE_ENUM
#undef UET_X_ENTRY
#undef UET_X_ENUMERATOR

template <typename E>
constexpr std::span<const EnumEntry> enum_entries() {
  return EnumTraits<E>::kEntries;
}

/// The name of a value in `entries`, or an empty view.
constexpr std::string_view find_name(std::span<const EnumEntry> entries, std::uint32_t value) {
  for (const EnumEntry& e : entries)
    if (e.value == value) return e.name;
  return {};
}

/// The spec's name of a value, or an empty view when it has none (reserved, vendor, unknown).
template <typename E>
requires requires {
  EnumTraits<E>::kEntries;
}
constexpr std::string_view name_of(E value) {
  return find_name(enum_entries<E>(), static_cast<std::uint32_t>(value));
}

}  // namespace uet::wire
