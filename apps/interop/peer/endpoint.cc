#include "apps/interop/peer/endpoint.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "apps/interop/peer/control.h"

namespace uet::interop {
namespace {

constexpr std::uint32_t kApi = FI_VERSION(1, 15);
constexpr std::size_t kQueueSize = 4096;
/// Both ends and the fabric between them may share a core, and hundreds of clients.
constexpr int kNapMsMin = 1, kNapMsMax = 32;

libfabric::Info find(const Wanted& wanted) {
  const libfabric::Info hints = libfabric::make_hints();
  hints->caps = wanted.caps;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = wanted.is_datagram ? FI_EP_DGRAM : FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED;
  if (wanted.is_ordered) hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
  if (wanted.is_delivered) hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  return libfabric::get_info(kApi, *hints).info;
}

/// A provider that offers something else lacks this; one that offers nothing was started wrongly.
libfabric::Info find_or_tell(const Wanted& wanted) {
  if (libfabric::Info found = find(wanted)) return found;
  for (const bool is_datagram : {false, true}) {
    if (const libfabric::Info other = find({.caps = FI_MSG, .is_datagram = is_datagram}))
      throw Unsupported(std::string("provider ") + other->fabric_attr->prov_name +
                        " offers no such endpoint");
  }
  throw std::runtime_error(
      "fi_getinfo: there is no provider; do FI_PROVIDER and its settings fit?");
}

std::string hex(const std::uint8_t* bytes, std::size_t size) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < size; ++i) {
    out += kDigits[bytes[i] >> 4];
    out += kDigits[bytes[i] & 15];
  }
  return out;
}

}  // namespace

Endpoint::Endpoint(const Wanted& wanted, double patience_s)
    : info_(find_or_tell(wanted)),
      objects_(*info_, {.av_type = FI_AV_TABLE,
                        .cq_format = FI_CQ_FORMAT_DATA,
                        .cq_size = kQueueSize,
                        .sleeps_if_it_can = true}),
      patience_s_(patience_s) {}

std::string Endpoint::name() const {
  const Bytes bytes = objects_.name();
  return hex(bytes.data(), bytes.size());
}

fi_addr_t Endpoint::insert(const std::string& name) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < name.size(); i += 2)
    bytes.push_back(
        static_cast<std::uint8_t>(std::strtoul(name.substr(i, 2).c_str(), nullptr, 16)));
  fi_addr_t out = FI_ADDR_UNSPEC;
  if (fi_av_insert(objects_.av.get(), bytes.data(), 1, &out, 0, nullptr) != 1)
    throw std::runtime_error("fi_av_insert refuses the address of the peer, " + name);
  return out;
}

fid_mr* Endpoint::open_memory(Bytes& memory, std::uint64_t flags) {
  const std::uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE;
  const std::uint64_t key = objects_.memories.size() + 1;
  int error = 0;
  fid_mr* const mr = objects_.add_memory(memory.data(), memory.size(), access, key, flags, error);
  if (error != 0 && flags != 0)
    throw Unsupported(std::string("fi_mr_reg refuses the flag of the provider: ") +
                      fi_strerror(-error));
  libfabric::check(error, "fi_mr_reg");
  return mr;
}

void Endpoint::post(Operation& operation, const char* what,
                    const std::function<ssize_t(void*)>& call) {
  nap_ms_ = kNapMsMin;
  operation.is_done = false;
  operation.error = 0;
  ssize_t ret = -FI_EAGAIN;
  wait_until([&] { return (ret = call(&operation)) != -FI_EAGAIN; },
             std::string(what) + ": the provider takes no more");
  if (ret == -FI_ENOSYS || ret == -FI_EOPNOTSUPP)
    throw Unsupported(std::string(what) + ": " + fi_strerror(static_cast<int>(-ret)));
  libfabric::check(ret, what);
  in_flight_.push_back(&operation);
}

void Endpoint::wait_for(Operation& operation, const char* what) {
  wait_until([&] { return operation.is_done; }, std::string(what) + " does not complete");
  if (operation.error != 0)
    throw OperationFailed(std::string(what) + " ended with " + fi_strerror(operation.error));
}

void Endpoint::wait_until(const std::function<bool()>& is_there, const std::string& what) {
  const double end = seconds_now() + patience_s_;
  while (!is_there()) {
    progress();
    if (on_wait) on_wait();
    if (seconds_now() > end) throw std::runtime_error(what);
  }
}

void Endpoint::progress() {
  fid_cq* const cq = objects_.cq.get();
  fi_cq_data_entry done{};
  const ssize_t n =
      objects_.can_sleep ? fi_cq_sread(cq, &done, 1, nullptr, nap_ms_) : fi_cq_read(cq, &done, 1);
  nap_ms_ = n == -FI_EAGAIN ? std::min(2 * nap_ms_, kNapMsMax) : kNapMsMin;
  if (n == 1) complete(done.op_context, done.flags, done.len, done.data, 0);
  if (n != -FI_EAVAIL) return;
  fi_cq_err_entry error{};
  if (fi_cq_readerr(cq, &error, 0) == 1)
    complete(error.op_context, error.flags, error.len, error.data, error.err);
}

void Endpoint::complete(void* context, std::uint64_t flags, std::size_t length, std::uint64_t data,
                        int error) {
  // A write of a peer has no context of ours.
  if ((flags & FI_REMOTE_CQ_DATA) != 0 && (flags & FI_RMA) != 0) {
    remote_data.push_back(data);
    return;
  }
  const auto at = std::find(in_flight_.begin(), in_flight_.end(), context);
  if (at == in_flight_.end()) throw std::runtime_error("a completion that belongs to no operation");
  (*at)->is_done = true;
  (*at)->error = error;
  (*at)->length = length;
  in_flight_.erase(at);
}

void Endpoint::drain() {
  on_wait = nullptr;
  for (Operation* const operation : std::vector<Operation*>(in_flight_))
    fi_cancel(&ep()->fid, operation);
  wait_until([&] { return in_flight_.empty(); }, "operations with the peer that is gone never end");
  remote_data.clear();
}

}  // namespace uet::interop
