/// All headers of the UET wire format, and the list of them that generators and tests walk.
#pragma once

#include <type_traits>

#include "lib/wire/codec.h"
#include "lib/wire/net_headers.h"
#include "lib/wire/pds_headers.h"
#include "lib/wire/ses_headers.h"

namespace uet::wire {

/// A type list.
template <typename... H>
struct HeaderList {
  static constexpr std::size_t kCount = sizeof...(H);
  /// The place of T, or kCount when it is none of them.
  template <typename T>
  static constexpr std::size_t index_of() {
    std::size_t i = 0;
    (void)(true && ... && (!std::is_same_v<T, H> && ++i != 0));
    return i;
  }
};

using NetHeaders =
    HeaderList<EthernetHeader, VlanTag, SllHeader, Sll2Header, Ipv4Header, Ipv6Header, UdpHeader>;

using UetHeaders =
    HeaderList<EntropyHeader, ReturnPort, TssHeader, TssHeaderSsi, PdsRequest, PdsRequestSyn,
               PdsRequestCc, PdsRequestCcSyn, PdsAck, PdsAckCcNscc, PdsAckCcCredit, PdsAckCcOther,
               PdsAckCcx, PdsNack, PdsNackCcx, PdsControl, PdsControlSyn, PdsRudi, PdsUud,
               PdsExpectedPsn, SesStandardFirst, SesStandardNext, SesDeferrable, SesDeferrableNext,
               SesSequenced, SesSequencedNext, SesReadyToRestart, SesMedium, SesSmall, ExtAtomic,
               ExtCompareSwap, ExtRendezvous, SesResponse, SesResponseData, SesResponseDataSmall>;

}  // namespace uet::wire
