/// Credit that this endpoint grants as a destination: demand that arrives is handed to the pacer, grants leave on a PDC of the
/// source. [PDS 15, CC 5]
#pragma once

#include <optional>

#include "cc/credit_pacer.h"
#include "pds/arrival.h"
#include "pds/environment.h"
#include "pds/pdc_table.h"
#include "pds/scheduler.h"

namespace uet::pds {

/// Whatever this endpoint runs as a source: the pacer comes with the first source that speaks of credit. Sources: as many as there are
/// CCCs; above that demand is not heard.
class CreditGrants : Part {
 public:
  CreditGrants(Environment& env, PdcTable& pdcs, Scheduler& scheduler,
               const cc::CcConfig& cc_config);

  /// What a data packet, trimmed or not, says of the demand of its CCC. To be called after the packet was dealt with, so that
  /// the first one of a PDC counts.
  void note_demand(Instant now, const Arrival& in, std::uint8_t ccc_id, std::uint32_t target);
  void on_request(Instant now, Pdc& pdc, std::uint32_t payload);
  /// Grants that are due are listed with the scheduler.
  void run(Instant now);
  Instant next_deadline() const { return pacer_ ? pacer_->next_deadline() : Instant::never(); }
  /// The cumulative counter of the source that this PDC belongs to; 0 without one.
  std::uint32_t units_for(const Pdc& pdc);
  /// The peer has proved itself: it gets what was granted meanwhile, and its turns.
  void resume(Instant now, Pdc& pdc);
  /// The PDC ends.
  void leave(Pdc& pdc);

 private:
  bool ensure_pacer();
  /// A CCC of some source that sends to us, and a PDC that can carry grants to it.
  struct CreditSource {
    net::FabricAddress peer;
    cc::SourceKey key;  ///< `source` is its place in the pool
    PdcRef carrier;
    std::uint32_t pdcs = 0;
    std::uint32_t index_next = 0;
  };
  void take_carrier(CreditSource& source, const Pdc& pdc);
  static bool may_tell(const Pdc& pdc);
  CreditSource* join(Pdc& pdc, std::uint8_t ccc_id);

  const cc::CcConfig& cc_config_;
  PdcTable& table_;
  Scheduler& scheduler_;
  std::optional<cc::CreditPacer> pacer_;
  base::FixedPool<CreditSource> sources_;
  base::PoolIndex<CreditSource, &CreditSource::index_next> index_;
};

}  // namespace uet::pds
