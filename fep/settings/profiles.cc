#include "fep/settings/profiles.h"

#include <array>

namespace uet::fep {

namespace {

using Entry = Profile::Entry;

constexpr std::array kReference = {
    Entry{"encap", "ip"},          Entry{"ri", "15"},
    Entry{"initiator_id", "16"},   Entry{"max_payload", "1024"},
    Entry{"cc", "nscc"},  // receiver credit comes in packets that it drops in silence
    Entry{"pds", "Default_MPR=1"}, Entry{"tail_loss_time", "0"},  // it knows no Probe
    Entry{"pdc_idle", "200ms"},  // it leaves without a close, and comes again with the same identifiers
    Entry{"peer_timeout", "1s"},   Entry{"spray_ordered", "0"},
};

constexpr std::array kSpecification = {
    Entry{"rto_init", "1ms"},   Entry{"rto_max", "8s"},
    Entry{"peer_timeout", "0"}, Entry{"pds", "Max_RTO_Retx_Cnt=5,Max_NACK_Retx_Cnt=5"},
    Entry{"rod_reorder", "0"},  Entry{"spray_ordered", "0"},
};

constexpr std::array kProfiles = {
    Profile{"reference",
            "what the consortium's open reference provider can do: IP without UDP, fixed indices, "
            "a window of 128 packets, no probes; needs a dpdk port",
            kReference},
    Profile{"specification",
            "timers, limits, go-back and one path for ordered messages as the specification has "
            "them: a peer that does not answer for 63 ms is lost, so programs that compute between "
            "their calls need our own",
            kSpecification},
};

}  // namespace

std::span<const Profile> profiles() {
  return kProfiles;
}

}  // namespace uet::fep
