/// What every endpoint made from settings runs with. Hostile peers are tested with it: the limits of the specification end in
/// milliseconds what lasts for a minute in a real process. tests/fep/settings_test.cc compares it with the settings.
#pragma once

#include "pds/pds_config.h"

namespace uet::pds::test {

inline PdsConfig software_profile() {
  PdsConfig c;
  c.rto_init_time = base::Duration::from_ms(20);
  c.rto_max = base::Duration::from_ms(100);
  c.tail_loss_time = base::Duration::from_ms(1);
  c.tail_loss_asks = true;
  c.peer_timeout = base::Duration::from_seconds(60);
  c.max_rto_retx_cnt = 15;
  c.max_nack_retx_cnt = 31;
  c.reorder_window = base::Duration::from_us(50);
  c.rod_reorder = true;
  return c;
}

}  // namespace uet::pds::test
