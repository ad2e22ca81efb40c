/// Watches from outside that a host keeps to the windows it was granted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>

#include "lib/base/trace.h"
#include "pds/pds_config.h"

namespace uet::sim {

/// Follows one life of one host by its trace and keeps its own account of every PDC: no PSN leaves, new or again, beyond the
/// window that the latest acknowledgement granted; new PSNs only go up; nothing leaves on a PDC that is not open; no more PDCs
/// are open than there is room for. All hosts of a world have the same configuration, so what a peer grants is known.
class WindowWatch final : public base::TraceSink {
 public:
  using Report = std::function<void(const std::string&)>;

  /// `peers_are_honest`: without that, windows that a peer grants are not known and not judged.
  WindowWatch(const pds::PdsConfig& config, bool peers_are_honest, Report report);

  void on_event(const base::Event& event) override;

 private:
  struct Pdc {
    base::Psn start, cack, next;
    std::uint32_t window = 0;
  };

  void on_opened(const base::Event& event);
  void on_moved(const base::Event& event);
  void on_sent(const base::Event& event);
  void on_acknowledged(const base::Event& event);

  const std::uint32_t assumed_;  ///< before the first acknowledgement
  const std::uint32_t granted_;
  const std::size_t max_pdc_;
  const bool peers_are_honest_;
  const Report report_;
  std::unordered_map<std::uint16_t, Pdc> pdcs_;
};

}  // namespace uet::sim
