#include "ses/gates.h"

#include <algorithm>

namespace uet::ses {

std::uint8_t Gates::generation_for(const Endpoint* endpoint, const net::FabricAddress& source,
                                   bool tagged, std::uint8_t otherwise) {
  if (endpoint == nullptr) return otherwise;
  const Sender* sender = senders_.find(endpoint->id, source);
  return sender == nullptr ? 0 : sender->gates[tagged ? 1 : 0].generation;
}

/// [SES 2.5 rules 3 to 6]
ReturnCode Gates::close(const RequestContext& c, RiSpace& space, Sender& sender) {
  Gate& gate = sender.gates[&space == &c.endpoint->space(true) ? 1 : 0];
  if (gate.is_enabled) {
    gate.is_enabled = false;
    space.closed.push_back(gate);
    senders_.hold(sender);
  } else if (!gate.closer_is_proven) {  // it was not closed to this packet
    unproven_.erase(unproven_.iterator_to(gate));
  }
  gate.closer = c.incoming();
  gate.closer_length = c.request.request_length;
  gate.closer_pdc = c.packet.handle.pdc;
  gate.closer_is_proven = c.packet.is_proven;
  if (!gate.closer_is_proven) unproven_.push_back(gate);
  sender.refused_at_ns = clock_.ns();
  return code_of_closed();
}

bool Gates::was_closed_for(const RequestContext& c, Sender& sender) {
  const Gate& gate = sender.gates[is_tagged(c.request.opcode) ? 1 : 0];
  return gate.closer == c.incoming() && gate.closer_length == c.request.request_length;
}

void Gates::open(RiSpace& space, Gate& gate) {
  space.closed.erase(space.closed.iterator_to(gate));
  enable(gate);
}

void Gates::open_all(RiSpace& space) {
  while (!space.closed.empty()) {
    Gate& gate = space.closed.front();
    space.closed.pop_front();
    enable(gate);
  }
}

Gate* Gates::closed_on(pds::PdcRef pdc) {
  const auto at = std::ranges::find(unproven_, pdc, &Gate::closer_pdc);
  return at != unproven_.end() ? &*at : nullptr;
}

void Gates::undo_close(RiSpace& space, Gate& gate) {
  const std::uint8_t generation = gate.generation;
  open(space, gate);
  gate.generation = generation;
}

void Gates::enable(Gate& gate) {
  if (!gate.closer_is_proven) unproven_.erase(unproven_.iterator_to(gate));
  gate.closer_is_proven = true;
  gate.is_enabled = true;
  if (config_.use_generations) ++gate.generation;
  senders_.unhold(*gate.sender);
}

}  // namespace uet::ses
