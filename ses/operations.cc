#include "ses/operations.h"

#include <algorithm>
#include <utility>

namespace uet::ses {
namespace {

constexpr std::uint32_t kMaxOperations = 0xffff;  // each needs its own 16-bit message id

std::uint32_t bounded(std::uint32_t max_sends) {
  return std::clamp<std::uint32_t>(max_sends, 1, kMaxOperations);
}

bool issues_fetches(const SesConfig& c) {
  return c.rendezvous || c.defers;
}

/// Those of the users, READs for rendezvous, and requests to restart.
std::uint32_t all_operations(const SesConfig& c) {
  return bounded(bounded(c.max_sends) + (issues_fetches(c) ? c.max_fetches : 0));
}

/// Those that ended have as many descriptors again, as far as there are message ids.
std::uint32_t all_descriptors(const SesConfig& c) {
  return std::min(2 * all_operations(c), kMaxOperations);
}

std::uint32_t kept_for_fetches(const SesConfig& c) {
  return issues_fetches(c) ? std::min(c.max_fetches, all_operations(c) - 1) : 0;
}

}  // namespace

Operations::Operations(Core& core, RendezvousSources& sources)
    : core_(core),
      sources_(sources),
      max_(all_operations(core.config)),
      pool_(all_descriptors(core.config), 32),
      atomics_(bounded(core.config.max_sends), 32),
      injected_(std::size_t{bounded(core.config.max_sends)} *
                    (2 * std::size_t{core.config.inject_size} + 256),
                std::max<std::size_t>(core.config.inject_size, 1)),
      small_reads_(core.config.small_headers),
      kept_for_fetches_(kept_for_fetches(core.config)) {}

TxOp* Operations::acquire_for_fetch() {
  TxOp* op = kept_for_fetches_ > 0 ? take() : nullptr;
  if (op != nullptr) --kept_for_fetches_;
  return op;
}

void Operations::give_back_for_fetch(TxOp& op) {
  give_back(op);
  ++kept_for_fetches_;
}

bool Operations::copy_in(TxOp& op, std::span<const iovec> iov, DeviceMemory* device) {
  IovList from;
  if (!from.assign(iov, core_.iov_pool, device)) return false;
  const std::size_t cost = injected_.cost_of(from.size());
  Block* block = nullptr;
  if (injected_.reserve(cost)) {
    block = injected_.take(from.size());
    if (block != nullptr && !from.gather(0, block->bytes(), from.size()))
      injected_.give_back(std::exchange(block, nullptr));
    if (block == nullptr) injected_.unreserve(cost);
  }
  if (block != nullptr) {
    op.inject_block = block;
    op.inject_cost = cost;
    op.iov.assign(block->bytes(), from.size());
  }
  from.clear(core_.iov_pool);
  return block != nullptr;
}

void Operations::release(TxOp& op) {
  by_age_.erase(by_age_.iterator_to(op));
  release_memory(op);
  if (op.fetch != nullptr) ++kept_for_fetches_;
  Peer& peer = *op.peer;
  free_descriptor(op);
  core_.peers.unhold(peer);
}

void Operations::end(TxOp& op) {
  by_age_.erase(by_age_.iterator_to(op));
  release_memory(op);
  if (op.fetch != nullptr) ++kept_for_fetches_;
  core_.peers.unhold(*op.peer);
  op.fetch = nullptr;
  op.endpoint = nullptr;
  op.flow = nullptr;
  op.peer = nullptr;
  op.is_rendezvous = false;
  op.state = OpState::kEnded;
  ended_.push_back(op);
  ++ended_count_;
  ++ended_on_.of(op.pdc);
}

void Operations::take_owed(TxOp& op, std::size_t bytes) {
  op.owed -= std::min<std::uint64_t>(op.owed, bytes);
  if (op.owed == 0) forget(op);
}

void Operations::forget_ended(pds::PdcRef pdc) {
  const std::uint32_t& left = ended_on_.of(pdc);
  for (auto it = ended_.end(); left > 0 && it != ended_.begin();) {
    TxOp& op = *--it;
    if (op.pdc != pdc) {
      ++passed_;
      continue;
    }
    ++it;
    forget(op);
  }
}

void Operations::forget(TxOp& ended) {
  ended_.erase(ended_.iterator_to(ended));
  --ended_count_;
  --ended_on_.of(ended.pdc);
  free_descriptor(ended);
}

void Operations::free_descriptor(TxOp& op) {
  ids_.give_back(op.message_id);
  op.message_id = 0;
  pool_.release(&op);
}

void Operations::release_memory(TxOp& op) {
  op.iov.clear(core_.iov_pool);
  if (op.inject_block != nullptr) {
    injected_.give_back(op.inject_block);
    injected_.unreserve(op.inject_cost);
    op.inject_block = nullptr;
  }
  if (op.atomic != nullptr) {
    atomics_.release(op.atomic);
    op.atomic = nullptr;
  }
  op.own_token = 0;
  if (op.is_rendezvous) sources_.withdraw(op);
}

TxOp* Operations::find_carried(std::uint16_t message_id) {
  TxOp* op = find_id(message_id);
  return op != nullptr && op->state == OpState::kCarried ? op : nullptr;
}

TxOp* Operations::find_returning(std::uint16_t message_id) {
  TxOp* op = find_id(message_id);
  const bool is_out =
      op != nullptr && (op->state == OpState::kCarried || op->state == OpState::kEnded);
  return is_out && (op->returns_data || op->awaits_delivery) ? op : nullptr;
}

TxOp* Operations::find_id(std::uint16_t message_id) {
  return pool_.at(ids_.owner_of(message_id));
}

TxOp* Operations::find_deferrable(std::uint32_t token) {
  TxOp* op = pool_.at(token & 0xffff);
  return op != nullptr && op->is_deferrable && op->own_token == token ? op : nullptr;
}

}  // namespace uet::ses
