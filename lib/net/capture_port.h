/// Records the traffic of any port (FI_UET_PCAP). Not in the path, and so free, when no capture is asked for.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lib/base/trace.h"
#include "lib/net/capture_file.h"
#include "lib/net/impair_port.h"
#include "lib/net/port_wrapper.h"

namespace uet::net {

/// Wraps a port and writes every packet with direction, PDC and drop reason in its comment. Ports move datagrams, so
/// the headers in front are made up again from what is known: with them any tool reads the capture. One thread.
///
/// A received packet is written at the next call of the port, when it is known whether a layer dropped it: the trace
/// tells, packet by packet, in the order in which receive() gave them out.
class CapturePort final : public PortWrapper, public base::TraceSink, public ImpairTap {
 public:
  /// The time of day, in ns since 1970, of the Instant 0 of the clock that drives the port. It changes where the time of day is set, and
  /// while the host is suspended: it is asked for anew before a new file, and once a second.
  using UnixNsAtZero = std::function<std::int64_t()>;

  /// `trace` must outlive the port.
  CapturePort(std::unique_ptr<Port> inner, std::unique_ptr<CaptureFile> file,
              UnixNsAtZero unix_ns_at_zero, base::Trace& trace);
  ~CapturePort() override;

  std::size_t receive(base::Instant now, std::span<RxPacket> out) override;
  std::size_t send(base::Instant now, std::span<TxPacket> in) override;
  bool arm_wakeup() override;
  void abandon_in_child() override;

  void on_event(const base::Event& event) override;
  /// What the test tool inside loses was on the wire, or would have been: it is written with that reason.
  void on_lost(base::Instant now, const RxPacket& packet) override;
  void on_lost(base::Instant now, const TxPacket& packet) override;

  const CaptureFile& file() const { return *file_; }

 private:
  /// A packet that is kept until its fate is known. The buffer is reused.
  struct Held {
    std::vector<std::uint8_t> frame;
    base::Instant at;
    std::size_t uet_bytes = 0;
    std::uint16_t pdc = 0;  ///< local PDC that dropped it, if the trace told
    std::optional<base::DropReason> drop;
  };

  struct EntropyField {
    std::uint16_t value = 0;
    std::uint16_t reserved = 0;  ///< as received, with native IP: CRC and ICV cover it
  };
  void hold(Held& held, base::Instant now, const FabricAddress& from, const FabricAddress& to,
            EntropyField entropy, TosByte tos, bool is_outbound,
            std::span<const std::uint8_t> uet) const;
  void write(const Held& held, wire::PacketDirection direction);
  void write_received();

  std::unique_ptr<CaptureFile> file_;
  const UnixNsAtZero ask_unix_ns_at_zero_;
  std::int64_t unix_ns_at_zero_;
  base::Instant ask_at_;  ///< when it is asked for anew, if not earlier
  base::Trace& trace_;
  std::vector<Held> received_;      ///< of the last burst; slots are reused
  std::size_t received_count_ = 0;  ///< slots in use
  std::size_t next_to_process_ = 0;
  std::vector<Held> sending_;
  std::span<const TxPacket> offered_;  ///< while the port inside sends
  Held lost_;                          ///< reused
  ImpairPort* impairment_ = nullptr;   ///< the port inside, where it is one
};

}  // namespace uet::net
