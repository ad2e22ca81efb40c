/// What is on offer, by type of endpoint.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "fep/settings/settings.h"
#include "provider/cuda_driver.h"

namespace uet::provider {

/// What endpoints of one type can do.
struct Offer {
  fi_ep_type type;
  std::uint64_t caps;
  std::uint64_t tx_op_flags;
  std::uint64_t msg_orders;
  std::size_t max_message;
};

/// From the weakest to the strongest. [FI 7]
inline constexpr std::uint64_t kCompletionLevels =
    FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE;

inline constexpr std::size_t kMaxMessage = 0xffff'ffff;

inline constexpr Offer kReliableOffer = {
    .type = FI_EP_RDM,
    .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_RECV | FI_READ | FI_WRITE |
            FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE |
            FI_RMA_EVENT | FI_FENCE | FI_TRIGGER | FI_LOCAL_COMM | FI_REMOTE_COMM,
    .tx_op_flags = FI_INJECT | FI_COMPLETION | kCompletionLevels,
    .msg_orders = FI_ORDER_STRICT | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR |
                  FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW |
                  FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW,
    .max_message = kMaxMessage,
};

/// Messages of one packet that are sent once: nothing is known of them after they left, so nothing can be ordered or confirmed.
inline constexpr Offer kDatagramOffer = {
    .type = FI_EP_DGRAM,
    .caps = FI_MSG | FI_SEND | FI_RECV | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE | FI_TRIGGER |
            FI_LOCAL_COMM | FI_REMOTE_COMM,
    .tx_op_flags = FI_INJECT | FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE,
    .msg_orders = 0,
    .max_message = 1024,
};

/// FI_TAGGED_MULTI_RECV, newer than our headers. [FI 2.5.5]
inline constexpr std::uint64_t kTaggedMultiRecv = std::uint64_t{1} << 46;

/// FI_AV_USER_ID, of the same kind.
inline constexpr std::uint64_t kAvUserId = std::uint64_t{1} << 41;

/// Answered only to hints that name them: a program that asks for nothing may know them not, and take an unknown bit for an error;
/// device memory costs a look for its driver; and libraries that find FI_TRIGGER give work away that is done sooner by themselves.
inline constexpr std::uint64_t kOnlyOnRequest = kTaggedMultiRecv | kAvUserId | FI_HMEM | FI_TRIGGER;

/// Older libfabrics have other meanings for newer capabilities, or none.
inline bool runs_libfabric_2() {
  return FI_VERSION_GE(fi_version(), FI_VERSION(2, 0));
}
inline std::uint64_t domain_caps() {
  return FI_LOCAL_COMM | FI_REMOTE_COMM | (runs_libfabric_2() ? kAvUserId : 0);
}

/// In the order in which fi_getinfo names them.
inline constexpr std::array kOffers = {kReliableOffer, kDatagramOffer};

/// Null for types that do not exist here.
constexpr const Offer* offer_of(fi_ep_type type) {
  for (const Offer& offer : kOffers)
    if (offer.type == type) return &offer;
  return nullptr;
}

/// The same under these settings, the libfabric that runs and, for a program that asks for device memory in `asked`, the driver
/// that is there. All datagram endpoints say one size, whatever the interface takes: one
/// that fits every way, or what the user set. [decision 111]
inline Offer under(const fep::Settings& settings, Offer offer, std::uint64_t asked) {
  if (offer.type == FI_EP_DGRAM && settings.max_payload != 0)
    offer.max_message = settings.max_payload;
  if (runs_libfabric_2())
    offer.caps |= offer.type == FI_EP_RDM ? kAvUserId | kTaggedMultiRecv : kAvUserId;
  if ((asked & FI_HMEM) != 0 && CudaDriver::find() != nullptr) offer.caps |= FI_HMEM;
  return offer;
}

/// FI_UET_IDEMPOTENT, from the range that libfabric leaves to providers; fi_uet(7) tells users. Of a region: operations with this flag
/// may reach it. Of a write or a read: by RUDI. [decision 55]
inline constexpr std::uint64_t kIdempotent = std::uint64_t{1} << 60;

inline constexpr std::uint64_t kRxOpFlags = FI_COMPLETION | FI_MULTI_RECV;
inline constexpr std::size_t kMrIovLimit = 16;

}  // namespace uet::provider
