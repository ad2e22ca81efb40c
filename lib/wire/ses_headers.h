/// SES headers and extensions. [WIRE 5]
#pragma once

#include "lib/wire/enums.h"
#include "lib/wire/field.h"

namespace uet::wire {

namespace detail {

template <typename H>
constexpr auto ses_flags_fields() {
  return list_of(reserved("rsvd_a", 2), field("opcode", &H::opcode, 6, "what is asked for"),
                 field("version", &H::version, 2, "0"), field("dc", &H::dc, 1, "delivery complete"),
                 field("ie", &H::ie, 1, "initiator error"),
                 field("rel", &H::rel, 1, "1 relative, 0 absolute addressing"),
                 field("hd", &H::hd, 1, "header data present"),
                 field("eom", &H::eom, 1, "last packet of the message"),
                 field("som", &H::som, 1, "first packet of the message"));
}

template <typename H>
constexpr auto ses_target_fields() {
  return list_of(
      field("ri_generation", &H::ri_generation, 8, "generation of the resource index"),
      field("job_id", &H::job_id, 24, "job identifier of the initiator"), reserved("rsvd_c", 4),
      field("pid_on_fep", &H::pid_on_fep, 12, "process at the target"), reserved("rsvd_d", 4),
      field("resource_index", &H::resource_index, 12, "resource index within that process"));
}

/// Bytes 0 to 11 of the 44-byte forms.
template <typename H>
constexpr auto ses_common_fields() {
  return join(
      ses_flags_fields<H>(),
      list_of(field("message_id", &H::message_id, 16, "identifies the message; 0 means not valid")),
      ses_target_fields<H>());
}

/// Bytes 0 to 11 of medium and small requests.
template <typename H>
constexpr auto ses_short_fields() {
  return join(ses_flags_fields<H>(),
              list_of(reserved("rsvd_b", 2),
                      field("request_length", &H::request_length, 14, "message length in bytes")),
              ses_target_fields<H>());
}

template <typename H>
constexpr auto request_length_field() {
  return list_of(field("request_length", &H::request_length, 32, "whole message in bytes"));
}

/// Where a numbered message stands, in the place of the buffer offset. [decision 141]
template <typename H>
constexpr auto ses_sequence_fields() {
  return list_of(
      field("stream", &H::stream, 24, "ordered messages of one initiator to one endpoint"),
      field("behind", &H::behind, 16, "the oldest one without an answer is so many before"),
      field("number", &H::number, 24, "of the message in its stream"));
}

/// Bytes 32 to 39 when som=0.
template <typename H>
constexpr auto ses_position_fields() {
  return list_of(
      reserved("rsvd_e", 18),
      field("payload_length", &H::payload_length, 14, "bytes of the message this packet covers"),
      field("message_offset", &H::message_offset, 32, "position of those bytes"));
}

template <typename H>
constexpr auto response_fields() {
  return list_of(field("list", &H::list, 2, "where the message went"),
                 field("opcode", &H::opcode, 6, "kind of response"),
                 field("version", &H::version, 2, "0"),
                 field("return_code", &H::return_code, 6, "outcome"));
}

template <typename H>
constexpr auto atomic_fields() {
  return list_of(field("amo_opcode", &H::amo_opcode, 8, "operation"),
                 field("amo_datatype", &H::amo_datatype, 8, "element type"),
                 field("sem_vendor", &H::sem_vendor, 3, "vendor bits"), reserved("sem_rsvd", 3),
                 field("sem_cpu_coherent", &H::sem_cpu_coherent, 1, "coherent with the target CPU"),
                 field("sem_cacheable", &H::sem_cacheable, 1, "cacheable"), reserved("rsvd", 8));
}

}  // namespace detail

/// Says of a request that was emitted, whatever its form, that its payload must not be used. [WIRE 5.3]
inline void set_initiator_error(std::uint8_t* request) {
  request[1] |= 0x10;
}

/// Standard request, som=1. [WIRE 5.5]
struct SesStandardFirst {
  static constexpr std::size_t kSize = 44;
  static constexpr std::string_view kLayer = "ses", kName = "standard_som1";

  SesOpcode opcode{};
  std::uint8_t version = 0;
  bool dc = false, ie = false, rel = false, hd = false, eom = false, som = true;
  std::uint16_t message_id = 0;
  std::uint8_t ri_generation = 0;
  std::uint32_t job_id = 0;
  std::uint16_t pid_on_fep = 0;
  std::uint16_t resource_index = 0;
  std::uint64_t buffer_offset = 0;
  std::uint32_t initiator = 0;
  std::uint64_t mkey_match = 0;
  std::uint64_t header_data = 0;
  std::uint32_t request_length = 0;

  template <typename H = SesStandardFirst>
  static constexpr auto fields() {
    return join(detail::ses_common_fields<H>(),
                list_of(field("buffer_offset", &H::buffer_offset, 64, "offset in the buffer"),
                        field("initiator", &H::initiator, 32, "initiator identifier (rank)"),
                        field("mkey_match", &H::mkey_match, 64, "memory key or match bits"),
                        field("header_data", &H::header_data, 64, "completion data when hd=1")),
                detail::request_length_field<H>());
  }
};

/// Standard request, som=0. [WIRE 5.6]
struct SesStandardNext {
  static constexpr std::size_t kSize = 44;
  static constexpr std::string_view kLayer = "ses", kName = "standard_som0";

  SesOpcode opcode{};
  std::uint8_t version = 0;
  bool dc = false, ie = false, rel = false, hd = false, eom = false, som = false;
  std::uint16_t message_id = 0;
  std::uint8_t ri_generation = 0;
  std::uint32_t job_id = 0;
  std::uint16_t pid_on_fep = 0;
  std::uint16_t resource_index = 0;
  std::uint64_t buffer_offset = 0;
  std::uint32_t initiator = 0;
  std::uint64_t mkey_match = 0;
  std::uint16_t payload_length = 0;
  std::uint32_t message_offset = 0;
  std::uint32_t request_length = 0;

  template <typename H = SesStandardNext>
  static constexpr auto fields() {
    return join(detail::ses_common_fields<H>(),
                list_of(field("buffer_offset", &H::buffer_offset, 64, "offset in the buffer"),
                        field("initiator", &H::initiator, 32, "initiator identifier (rank)"),
                        field("mkey_match", &H::mkey_match, 64, "memory key or match bits")),
                detail::ses_position_fields<H>(), detail::request_length_field<H>());
  }
};

/// DEFERRABLE_SEND and DEFERRABLE_TSEND, som=1. [WIRE 5.7]
struct SesDeferrable {
  static constexpr std::size_t kSize = 44;
  static constexpr std::string_view kLayer = "ses", kName = "deferrable_som1";

  SesOpcode opcode = SesOpcode::kDeferrableSend;
  std::uint8_t version = 0;
  bool dc = false, ie = false, rel = false, hd = false, eom = false, som = true;
  std::uint16_t message_id = 0;
  std::uint8_t ri_generation = 0;
  std::uint32_t job_id = 0;
  std::uint16_t pid_on_fep = 0;
  std::uint16_t resource_index = 0;
  std::uint32_t initiator_restart_token = 0;
  std::uint32_t target_restart_token = 0;
  std::uint32_t initiator = 0;
  std::uint64_t match_bits = 0;
  std::uint64_t header_data = 0;
  std::uint32_t request_length = 0;

  template <typename H = SesDeferrable>
  static constexpr auto fields() {
    return join(detail::ses_common_fields<H>(),
                list_of(field("initiator_restart_token", &H::initiator_restart_token, 32,
                              "chosen by the initiator"),
                        field("target_restart_token", &H::target_restart_token, 32,
                              "0 on the first attempt"),
                        field("initiator", &H::initiator, 32, "initiator identifier"),
                        field("match_bits", &H::match_bits, 64, "match bits"),
                        field("header_data", &H::header_data, 64, "completion data when hd=1")),
                detail::request_length_field<H>());
  }
};

/// DEFERRABLE_SEND and DEFERRABLE_TSEND, som=0. [WIRE 5.7]
struct SesDeferrableNext {
  static constexpr std::size_t kSize = 44;
  static constexpr std::string_view kLayer = "ses", kName = "deferrable_som0";

  SesOpcode opcode = SesOpcode::kDeferrableSend;
  std::uint8_t version = 0;
  bool dc = false, ie = false, rel = false, hd = false, eom = false, som = false;
  std::uint16_t message_id = 0;
  std::uint8_t ri_generation = 0;
  std::uint32_t job_id = 0;
  std::uint16_t pid_on_fep = 0;
  std::uint16_t resource_index = 0;
  std::uint32_t initiator_restart_token = 0;
  std::uint32_t target_restart_token = 0;
  std::uint32_t initiator = 0;
  std::uint64_t match_bits = 0;
  std::uint16_t payload_length = 0;
  std::uint32_t message_offset = 0;
  std::uint32_t request_length = 0;

  template <typename H = SesDeferrableNext>
  static constexpr auto fields() {
    return join(detail::ses_common_fields<H>(),
                list_of(field("initiator_restart_token", &H::initiator_restart_token, 32,
                              "chosen by the initiator"),
                        field("target_restart_token", &H::target_restart_token, 32,
                              "0 on the first attempt"),
                        field("initiator", &H::initiator, 32, "initiator identifier"),
                        field("match_bits", &H::match_bits, 64, "match bits")),
                detail::ses_position_fields<H>(), detail::request_length_field<H>());
  }
};

/// SEQUENCED_SEND to SEQUENCED_RENDEZVOUS_TSEND, som=1: a standard request with a number in the place of the offset. [decision 141]
struct SesSequenced {
  static constexpr std::size_t kSize = 44;
  static constexpr std::string_view kLayer = "ses", kName = "sequenced_som1";

  SesOpcode opcode = SesOpcode::kSequencedSend;
  std::uint8_t version = 0;
  bool dc = false, ie = false, rel = false, hd = false, eom = false, som = true;
  std::uint16_t message_id = 0;
  std::uint8_t ri_generation = 0;
  std::uint32_t job_id = 0;
  std::uint16_t pid_on_fep = 0;
  std::uint16_t resource_index = 0;
  std::uint32_t stream = 0;
  std::uint16_t behind = 0;
  std::uint32_t number = 0;
  std::uint32_t initiator = 0;
  std::uint64_t match_bits = 0;
  std::uint64_t header_data = 0;
  std::uint32_t request_length = 0;

  template <typename H = SesSequenced>
  static constexpr auto fields() {
    return join(detail::ses_common_fields<H>(), detail::ses_sequence_fields<H>(),
                list_of(field("initiator", &H::initiator, 32, "initiator identifier"),
                        field("match_bits", &H::match_bits, 64, "match bits"),
                        field("header_data", &H::header_data, 64, "completion data when hd=1")),
                detail::request_length_field<H>());
  }
};

/// SEQUENCED_SEND, SEQUENCED_TSEND and their rendezvous, som=0. [decision 141]
struct SesSequencedNext {
  static constexpr std::size_t kSize = 44;
  static constexpr std::string_view kLayer = "ses", kName = "sequenced_som0";

  SesOpcode opcode = SesOpcode::kSequencedSend;
  std::uint8_t version = 0;
  bool dc = false, ie = false, rel = false, hd = false, eom = false, som = false;
  std::uint16_t message_id = 0;
  std::uint8_t ri_generation = 0;
  std::uint32_t job_id = 0;
  std::uint16_t pid_on_fep = 0;
  std::uint16_t resource_index = 0;
  std::uint32_t stream = 0;
  std::uint16_t behind = 0;
  std::uint32_t number = 0;
  std::uint32_t initiator = 0;
  std::uint64_t match_bits = 0;
  std::uint16_t payload_length = 0;
  std::uint32_t message_offset = 0;
  std::uint32_t request_length = 0;

  template <typename H = SesSequencedNext>
  static constexpr auto fields() {
    return join(detail::ses_common_fields<H>(), detail::ses_sequence_fields<H>(),
                list_of(field("initiator", &H::initiator, 32, "initiator identifier"),
                        field("match_bits", &H::match_bits, 64, "match bits")),
                detail::ses_position_fields<H>(), detail::request_length_field<H>());
  }
};

/// DEFERRABLE_RTR. [WIRE 5.8]
struct SesReadyToRestart {
  static constexpr std::size_t kSize = 44;
  static constexpr std::string_view kLayer = "ses", kName = "ready_to_restart";

  SesOpcode opcode = SesOpcode::kDeferrableRtr;
  std::uint8_t version = 0;
  bool dc = false, ie = false, rel = false, hd = false, eom = true, som = true;
  std::uint16_t message_id = 0;
  std::uint8_t ri_generation = 0;
  std::uint32_t job_id = 0;
  std::uint16_t pid_on_fep = 0;
  std::uint16_t resource_index = 0;
  std::uint64_t buffer_offset = 0;
  std::uint32_t initiator = 0;
  std::uint32_t initiator_restart_token = 0;
  std::uint32_t target_restart_token = 0;
  std::uint64_t header_data = 0;
  std::uint32_t request_length = 0;

  template <typename H = SesReadyToRestart>
  static constexpr auto fields() {
    return join(
        detail::ses_common_fields<H>(),
        list_of(field("buffer_offset", &H::buffer_offset, 64, "where the restart begins"),
                field("initiator", &H::initiator, 32, "initiator identifier of the RTR sender"),
                field("initiator_restart_token", &H::initiator_restart_token, 32,
                      "copied from the deferrable send"),
                field("target_restart_token", &H::target_restart_token, 32, "chosen by the target"),
                field("header_data", &H::header_data, 64, "0")),
        detail::request_length_field<H>());
  }
};

/// Medium request. [WIRE 5.9]
struct SesMedium {
  static constexpr std::size_t kSize = 32;
  static constexpr std::string_view kLayer = "ses", kName = "medium";

  SesOpcode opcode{};
  std::uint8_t version = 0;
  bool dc = false, ie = false, rel = false, hd = false, eom = true, som = true;
  std::uint16_t request_length = 0;
  std::uint8_t ri_generation = 0;
  std::uint32_t job_id = 0;
  std::uint16_t pid_on_fep = 0;
  std::uint16_t resource_index = 0;
  std::uint64_t hdr_or_offset = 0;
  std::uint32_t initiator = 0;
  std::uint64_t mkey_match = 0;

  template <typename H = SesMedium>
  static constexpr auto fields() {
    return join(detail::ses_short_fields<H>(),
                list_of(field("hdr_or_offset", &H::hdr_or_offset, 64,
                              "hd=1: header data, hd=0: buffer offset"),
                        field("initiator", &H::initiator, 32, "initiator identifier"),
                        field("mkey_match", &H::mkey_match, 64, "memory key or match bits")));
  }
};

/// Small request. [WIRE 5.10]
struct SesSmall {
  static constexpr std::size_t kSize = 20;
  static constexpr std::string_view kLayer = "ses", kName = "small";

  SesOpcode opcode{};
  std::uint8_t version = 0;
  bool dc = false, ie = false, rel = false, hd = false, eom = true, som = true;
  std::uint16_t request_length = 0;
  std::uint8_t ri_generation = 0;
  std::uint32_t job_id = 0;
  std::uint16_t pid_on_fep = 0;
  std::uint16_t resource_index = 0;
  std::uint64_t buffer_offset = 0;

  template <typename H = SesSmall>
  static constexpr auto fields() {
    return join(detail::ses_short_fields<H>(),
                list_of(field("buffer_offset", &H::buffer_offset, 64, "offset in the buffer")));
  }
};

/// Atomic extension. [WIRE 5.11]
struct ExtAtomic {
  static constexpr std::size_t kSize = 4;
  static constexpr std::string_view kLayer = "ext", kName = "atomic";

  AmoOpcode amo_opcode{};
  AmoDatatype amo_datatype{};
  std::uint8_t sem_vendor = 0;
  bool sem_cpu_coherent = false, sem_cacheable = false;

  template <typename H = ExtAtomic>
  static constexpr auto fields() {
    return detail::atomic_fields<H>();
  }
};

/// Compare-and-swap extension. [WIRE 5.11] Values are right-aligned big-endian integers.
struct ExtCompareSwap {
  static constexpr std::size_t kSize = 36;
  static constexpr std::string_view kLayer = "ext", kName = "compare_swap";

  AmoOpcode amo_opcode = AmoOpcode::kCswap;
  AmoDatatype amo_datatype{};
  std::uint8_t sem_vendor = 0;
  bool sem_cpu_coherent = false, sem_cacheable = false;
  U128 compare_value;
  U128 swap_value;

  template <typename H = ExtCompareSwap>
  static constexpr auto fields() {
    return join(detail::atomic_fields<H>(),
                list_of(field("compare_value", &H::compare_value, 128, "compare value or mask"),
                        field("swap_value", &H::swap_value, 128, "value to store")));
  }
};

/// Rendezvous extension. [WIRE 5.11]
struct ExtRendezvous {
  static constexpr std::size_t kSize = 24;
  static constexpr std::string_view kLayer = "ext", kName = "rendezvous";

  std::uint32_t eager_length = 0;
  std::uint8_t read_ri_generation = 0;
  std::uint16_t read_pid_on_fep = 0;
  std::uint16_t read_resource_index = 0;
  std::uint64_t read_offset = 0;
  std::uint64_t read_memory_key = 0;

  template <typename H = ExtRendezvous>
  static constexpr auto fields() {
    return list_of(
        field("eager_length", &H::eager_length, 32, "bytes sent eagerly with this request"),
        field("read_ri_generation", &H::read_ri_generation, 8, "generation for the read"),
        field("read_pid_on_fep", &H::read_pid_on_fep, 12, "PIDonFEP for the read"),
        field("read_resource_index", &H::read_resource_index, 12, "resource index for the read"),
        field("read_offset", &H::read_offset, 64, "buffer offset for the read"),
        field("read_memory_key", &H::read_memory_key, 64, "memory key for the read"));
  }
};

/// Response. [WIRE 5.16]
struct SesResponse {
  static constexpr std::size_t kSize = 12;
  static constexpr std::string_view kLayer = "ses", kName = "response";

  ResponseList list = ResponseList::kExpected;
  ResponseOpcode opcode = ResponseOpcode::kDefaultResponse;
  std::uint8_t version = 0;
  ReturnCode return_code = ReturnCode::kNull;
  std::uint16_t message_id = 0;
  std::uint8_t ri_generation = 0;
  std::uint32_t job_id = 0;
  std::uint32_t modified_length = 0;

  template <typename H = SesResponse>
  static constexpr auto fields() {
    return join(
        detail::response_fields<H>(),
        list_of(
            field("message_id", &H::message_id, 16, "message_id of the request answered"),
            field("ri_generation", &H::ri_generation, 8, "current generation if BAD_GENERATION"),
            field("job_id", &H::job_id, 24, "job_id of the request answered"),
            field("modified_length", &H::modified_length, 32, "bytes of the target changed")));
  }
};

/// Response with data. [WIRE 5.16]
struct SesResponseData {
  static constexpr std::size_t kSize = 20;
  static constexpr std::string_view kLayer = "ses", kName = "response_data";

  ResponseList list = ResponseList::kExpected;
  ResponseOpcode opcode = ResponseOpcode::kResponseWData;
  std::uint8_t version = 0;
  ReturnCode return_code = ReturnCode::kNull;
  std::uint16_t message_id = 0;
  std::uint32_t job_id = 0;
  std::uint16_t read_request_message_id = 0;
  std::uint16_t payload_length = 0;
  std::uint32_t modified_length = 0;
  std::uint32_t message_offset = 0;

  template <typename H = SesResponseData>
  static constexpr auto fields() {
    return join(
        detail::response_fields<H>(),
        list_of(field("message_id", &H::message_id, 16, "message_id of this response"),
                reserved("rsvd_a", 8),
                field("job_id", &H::job_id, 24, "job_id of the request answered"),
                field("read_request_message_id", &H::read_request_message_id, 16,
                      "message_id of the request answered"),
                reserved("rsvd_b", 2),
                field("payload_length", &H::payload_length, 14, "data bytes in this packet"),
                field("modified_length", &H::modified_length, 32, "bytes of the whole response"),
                field("message_offset", &H::message_offset, 32, "position of this packet's data")));
  }
};

/// Small response with data. [WIRE 5.16]
struct SesResponseDataSmall {
  static constexpr std::size_t kSize = 12;
  static constexpr std::string_view kLayer = "ses", kName = "response_data_small";

  ResponseList list = ResponseList::kExpected;
  ResponseOpcode opcode = ResponseOpcode::kResponseWData;
  std::uint8_t version = 0;
  ReturnCode return_code = ReturnCode::kNull;
  std::uint16_t payload_length = 0;
  std::uint32_t job_id = 0;
  base::Psn original_request_psn;

  template <typename H = SesResponseDataSmall>
  static constexpr auto fields() {
    return join(
        detail::response_fields<H>(),
        list_of(reserved("rsvd_a", 2),
                field("payload_length", &H::payload_length, 14, "data bytes in this packet"),
                reserved("rsvd_b", 8),
                field("job_id", &H::job_id, 24, "job_id of the request answered"),
                field("original_request_psn", &H::original_request_psn, 32,
                      "PSN of the request answered")));
  }
};

}  // namespace uet::wire
