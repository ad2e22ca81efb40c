/// Address vector: fi_addr_t to peer and back.
#pragma once

#include <rdma/fi_domain.h>

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "provider/eq.h"
#include "provider/object.h"
#include "provider/worker.h"

namespace uet::provider {

class Domain;

/// fi_addr_t is the index in both types. An address inserted twice gets two indices that share the
/// peer's state.
class Av final : public fid_av {
 public:
  static int open(Domain& domain, const fi_av_attr& attr, fid_av** out, void* context);
  static Av& of(fid_av* f) { return *static_cast<Av*>(f); }
  static Av& of(fid_t f) { return of(reinterpret_cast<fid_av*>(f)); }

  Worker& worker() { return worker_; }
  Users& users() { return users_; }

  // --- With the worker's lock held
  // ----------------------------------------------------------------
  /// 0 when there is no such entry.
  ses::PeerId peer(fi_addr_t address) const {
    return address < entries_.size() ? entries_[address].peer : 0;
  }
  /// Of an entry that there is.
  const net::FabricAddress& fabric_address(fi_addr_t address) const {
    return entries_[address].address.fabric_address;
  }
  /// What completions call a sender: the identifier of its first entry, FI_ADDR_NOTAVAIL when it has none.
  fi_addr_t find(const ses::Source& source) const;

  int insert(const void* addresses, std::size_t count, fi_addr_t* out, std::uint64_t flags,
             void* context);
  int insert_service(const char* node, const char* service, fi_addr_t* out, std::uint64_t flags,
                     void* context);
  int insert_symmetric(const char* node, std::size_t nodes, const char* service,
                       std::size_t services, fi_addr_t* out, std::uint64_t flags, void* context);
  /// What completions call the entry from now on; an AV opened for that (FI_AV_USER_ID).
  int set_user_id(fi_addr_t address, fi_addr_t user_id, std::uint64_t flags);
  int remove(const fi_addr_t* addresses, std::size_t count);
  int lookup(fi_addr_t address, void* out, std::size_t* length);
  int bind(fid_t other);
  int close();

 private:
  struct Entry {
    ses::PeerId peer = 0;
    ses::Address address;
    fi_addr_t user_id = FI_ADDR_NOTAVAIL;  ///< its own fi_addr_t unless the application chose one
    /// Entries of one sender are a ring, in the order in which they were inserted.
    std::size_t next_twin = 0, previous_twin = 0;
  };
  struct SourceKey {
    net::FabricAddress fabric_address;
    std::uint32_t initiator_id;
    bool operator==(const SourceKey&) const = default;
  };
  struct SourceHash {
    std::size_t operator()(const SourceKey& k) const {
      return k.fabric_address.hash() * 31 + k.initiator_id;
    }
  };
  Av(Domain& domain, const fi_av_attr& attr, void* context);
  ~Av() = default;
  int insert_one(const ses::Address& address, fi_addr_t& out, std::optional<fi_addr_t> user_id);
  void remove_one(fi_addr_t index);
  /// `index` is the last entry of the sender whose first one is `first`.
  void join_ring(std::size_t index, std::size_t first);
  int insert_all(std::span<const std::optional<ses::Address>> addresses, fi_addr_t* out,
                 std::uint64_t flags, void* context);

  Domain& domain_;
  Worker& worker_;
  const bool asynchronous_;  ///< opened with FI_EVENT: results go to the bound event queue
  const bool
      has_user_ids_;  ///< opened with FI_AV_USER_ID: entries have none until they are given one
  Eq* eq_ = nullptr;
  std::vector<Entry> entries_;
  std::vector<std::size_t> free_;  ///< a heap: the lowest index first
  std::unordered_map<SourceKey, fi_addr_t, SourceHash> by_source_;  ///< the first of each ring
  Users users_;
  UserOf domain_use_;
};

}  // namespace uet::provider
