#include "ses/ses.h"

#include <algorithm>

#include "lib/base/planted.h"
#include "ses/responses.h"
#include "ses/ses_impl.h"

namespace uet::ses {

Ses::Ses(const SesConfig& config, std::uint32_t payload_mtu, net::FabricAddress own_address,
         base::Rng& rng, base::Trace& trace)
    : impl_(std::make_unique<Impl>(config, payload_mtu, own_address, rng, trace)) {}

Ses::~Ses() = default;

void Ses::attach(Carrier& carrier) {
  impl_->core.carrier = &carrier;
}

void Ses::set_ways(Ways& ways) {
  impl_->core.ways = &ways;
}

// --- Objects -----------------------------------------------------------------------------------

PostResult<EndpointId> Ses::open_endpoint(Instant now, const EndpointConfig& config,
                                          CompletionSink& sink) {
  Endpoint* const context = impl_->core.endpoints.find_context(config.receive_context);
  if (config.receive_context != 0 && context == nullptr) return PostError::kBadEndpoint;
  auto endpoint = impl_->core.endpoints.open(now, config, sink);
  if (!endpoint) return endpoint.error();
  if (context != nullptr) join(**endpoint, *context);
  // [SES 2.4] Who names profiles and lacks HPC is sent no RUDI, which is always taken. So one that lacks a part of HPC names none.
  if (impl_->core.config.rendezvous && impl_->core.config.small_headers)
    (*endpoint)->address.fep_cap |= kProfiles;
  if (impl_->core.config.spray_ordered) (*endpoint)->address.fep_cap |= kRestoresOrder;
  if (impl_->core.config.small_headers) (*endpoint)->address.fep_cap |= kTakesSmall;
  if (impl_->core.config.rendezvous) (*endpoint)->address.fep_cap |= kFetchesRendezvous;
  (*endpoint)->address.fep_cap |=
      say_payload(impl_->core.config.device_payload, impl_->core.payload_mtu);
  return (*endpoint)->id;
}

void Ses::close_endpoint(Instant now, EndpointId endpoint) {
  if (Endpoint* context = impl_->core.endpoints.find_context(endpoint)) {
    impl_->rx.close(now, *context);
    return impl_->core.endpoints.close_context(*context);
  }
  Endpoint* e = impl_->core.endpoints.find(endpoint);
  if (e == nullptr) return;
  leave(*e);
  impl_->rx.begin_close(now, *e);
  impl_->tx.close_endpoint(now, *e);
  impl_->rx.close(now, *e);
  impl_->core.endpoints.close(now, *e);
}

void Ses::hurry(Instant now, EndpointId endpoint) {
  if (const Endpoint* e = impl_->core.endpoints.find(endpoint)) impl_->tx.hurry(now, *e);
}

PostResult<EndpointId> Ses::open_receive_context(std::size_t min_multi_recv, CompletionSink& sink) {
  const auto context = impl_->core.endpoints.open_context(min_multi_recv, sink);
  if (!context) return context.error();
  return (*context)->id;
}

Address Ses::address_of(EndpointId endpoint) const {
  const Endpoint* e = impl_->core.endpoints.find(endpoint);
  return e == nullptr ? Address{} : e->address;
}

void Ses::set_min_multi_recv(EndpointId endpoint, std::size_t bytes) {
  if (Endpoint* e = impl_->core.endpoints.find_receiver(endpoint)) e->config.min_multi_recv = bytes;
}

PostResult<PeerId> Ses::add_peer(const Address& address, std::optional<std::uint32_t> job) {
  return impl_->core.peers.add(address, job);
}

void Ses::remove_peer(PeerId peer) {
  impl_->core.peers.remove(peer);
}

PeerId Ses::find_source(const Source& source) const {
  return impl_->core.peers.find_source(source);
}

PostResult<std::uint64_t> Ses::register_memory(const MemoryRequest& request) {
  return impl_->core.memory.add(request, impl_->core.rng);
}

void Ses::enable_memory(std::uint64_t key, EndpointId endpoint, std::uint32_t space) {
  if (impl_->core.memory.enable(key, space, endpoint)) impl_->rx.on_memory_enabled(endpoint);
}

bool Ses::deregister_memory(std::uint64_t key, std::uint32_t space) {
  return impl_->core.memory.remove(key, space);
}

// --- Operations --------------------------------------------------------------------------------

PostResult<Posted> Ses::send(Instant now, EndpointId endpoint, const SendRequest& request) {
  Endpoint* e = impl_->core.endpoints.find(endpoint);
  if (e == nullptr) return PostError::kBadEndpoint;
  return impl_->tx.posting().send(now, *e, request);
}

PostResult<Posted> Ses::rma(Instant now, EndpointId endpoint, const RmaRequest& request) {
  Endpoint* e = impl_->core.endpoints.find(endpoint);
  if (e == nullptr) return PostError::kBadEndpoint;
  return impl_->tx.posting().rma(now, *e, request);
}

PostResult<Posted> Ses::atomic(Instant now, EndpointId endpoint, const AtomicRequest& request) {
  Endpoint* e = impl_->core.endpoints.find(endpoint);
  if (e == nullptr) return PostError::kBadEndpoint;
  return impl_->tx.posting().atomic(now, *e, request);
}

PostResult<Posted> Ses::receive(Instant now, EndpointId endpoint, const ReceiveRequest& request) {
  Endpoint* e = impl_->core.endpoints.find_receiver(endpoint);
  if (e == nullptr) return PostError::kBadEndpoint;
  return impl_->rx.posting().receive(now, *e, request);
}

PostResult<Posted> Ses::peek(Instant now, EndpointId endpoint, const PeekRequest& request) {
  Endpoint* e = impl_->core.endpoints.find(endpoint);
  if (e == nullptr) return PostError::kBadEndpoint;
  return impl_->rx.posting().peek(now, *e, request);
}

PostResult<Posted> Ses::claim_receive(Instant now, EndpointId endpoint,
                                      const ReceiveRequest& request, bool discard) {
  Endpoint* e = impl_->core.endpoints.find(endpoint);
  if (e == nullptr) return PostError::kBadEndpoint;
  return impl_->rx.posting().claim_receive(now, *e, request, discard);
}

bool Ses::cancel(Instant now, EndpointId endpoint, std::uint64_t context) {
  Endpoint* e = impl_->core.endpoints.find_receiver(endpoint);
  if (e == nullptr) return false;
  return impl_->rx.posting().cancel(now, *e, context) || impl_->tx.cancel(now, *e, context);
}

std::size_t Ses::free_sends() const {
  return impl_->tx.free_operations();
}

std::size_t Ses::free_receives() const {
  return impl_->rx.free_receives();
}

// --- Loop --------------------------------------------------------------------------------------

void Ses::on_deadline(Instant now) {
  impl_->tx.on_deadline(now);
  impl_->rx.on_deadline(now);
}

Instant Ses::next_deadline() const {
  return std::min(impl_->tx.next_deadline(), impl_->rx.next_deadline());
}

Ses::Gauges Ses::gauges() const {
  Gauges g{};
  g.endpoints = impl_->core.endpoints.size();
  g.peers = impl_->core.peers.size();
  g.memory_regions = impl_->core.memory.size();
  g.sends_active = impl_->tx.active_operations();
  g.receives_posted = impl_->rx.posted();
  g.messages_receiving = impl_->rx.messages();
  g.unexpected_messages = impl_->rx.unexpected_messages();
  g.unexpected_bytes = impl_->rx.unexpected_bytes();
  g.header_only_messages = impl_->rx.header_only_messages();
  g.messages_fetching = impl_->rx.messages_fetching();
  g.messages_held = impl_->rx.messages_held();
  g.senders = impl_->rx.senders();
  g.reads_returning = impl_->rx.returns().reads();
  g.returns_open = impl_->rx.returns().open();
  g.returns_waiting = impl_->rx.returns().waiting();
  g.refused_shares = impl_->rx.refused_shares();
  return g;
}

// --- pds::Upper --------------------------------------------------------------------------------

pds::SegmentInfo Ses::emit_segment(pds::MessageToken token, std::uint32_t segment, pds::PdcRef pdc,
                                   base::Psn psn, net::Packet& packet) {
  if (kind_of(token) == TokenKind::kReadReturn)
    return impl_->rx.returns().emit(token, segment, packet);
  if (kind_of(token) == TokenKind::kDelivery) return impl_->rx.reports().emit(token, packet);
  return impl_->tx.emit_segment(token, segment, pdc, psn, packet);
}

pds::Answer Ses::on_request(Instant now, const pds::RxRequest& request) {
  const UpcallScope scope(impl_->core);
  const auto form = static_cast<wire::NextHdr>(request.next_hdr);
  if (form == wire::NextHdr::kResponseData || form == wire::NextHdr::kResponseDataSmall)
    return impl_->tx.on_return_data(now, request);
  // [PDS 12] The return direction carries read data and nothing else: the target of a PDC asks for nothing on it.
  if (request.handle.return_direction && !base::planted(base::PlantedBug::kReturnServed)) {
    impl_->core.trace.drop(now, base::DropReason::kSesMalformed, request.bytes.size());
    return answer_error({}, ReturnCode::kOpViolation, 0, true);
  }
  return impl_->rx.on_request(now, request);
}

void Ses::on_response(Instant now, pds::MessageToken token, std::uint32_t segment,
                      std::uint8_t next_hdr, std::span<const std::uint8_t> response) {
  const UpcallScope scope(impl_->core);
  if (kind_of(token) == TokenKind::kReadReturn)
    impl_->rx.returns().on_response(now, token, next_hdr, response);
  else if (kind_of(token) == TokenKind::kDelivery)
    impl_->rx.reports().end(now, token);
  else
    impl_->tx.on_response(now, token, segment, next_hdr, response);
}

void Ses::on_further_response(Instant now, pds::PdcRef pdc, std::uint8_t next_hdr,
                              std::span<const std::uint8_t> response) {
  const UpcallScope scope(impl_->core);
  impl_->tx.on_further_response(now, pdc, next_hdr, response);
}

void Ses::on_message_error(Instant now, pds::MessageToken token, pds::PdsError error) {
  const UpcallScope scope(impl_->core);
  if (kind_of(token) == TokenKind::kReadReturn)
    impl_->rx.returns().on_error(now, token);
  else if (kind_of(token) == TokenKind::kDelivery)
    impl_->rx.reports().end(now, token);
  else
    impl_->tx.on_message_error(now, token, error);
}

/// DEFAULT_RESPONSE, code NULL, no ids: the initiator knows what its request was. [SES 13]
pds::SesResponse Ses::default_response() const {
  return make_response({.code = ReturnCode::kNull});
}

void Ses::on_pdc_gone(Instant now, pds::PdcRef pdc, net::FabricAddress peer, pds::PdsError error) {
  const UpcallScope scope(impl_->core);
  impl_->rx.on_pdc_gone(now, pdc, peer);
  impl_->tx.on_pdc_gone(now, pdc, error);
}

void Ses::on_pdc_closed(Instant now, pds::PdcRef pdc, net::FabricAddress peer) {
  const UpcallScope scope(impl_->core);
  if (!base::planted(base::PlantedBug::kReturnServed) &&
      !base::planted(base::PlantedBug::kCloseKeepsReads))
    impl_->rx.on_pdc_gone(now, pdc, peer);
  impl_->tx.on_pdc_closed(now, pdc);
}

std::uint32_t Ses::yield_locks(Instant now, pds::PdcRef pdc) {
  const UpcallScope scope(impl_->core);
  return impl_->tx.yield_locks(now, pdc);
}

bool Ses::stays_on_host(Instant now, const net::FabricAddress& peer) {
  return impl_->core.ways != nullptr && impl_->core.ways->stays_on_host(now, peer);
}

std::uint32_t Ses::fill_of(std::uint32_t resource) {
  return impl_->rx.fill_of(resource);
}

void Ses::on_resume(Instant now) {
  impl_->rx.on_resume(now);
  impl_->tx.on_resume(now);
}

}  // namespace uet::ses
