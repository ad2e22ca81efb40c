// More PDCs than there is memory for what they have outstanding. [PDS 4.3]
#include "tests/pds/harness.h"

namespace uet::pds::test {
namespace {

/// Host 2 has stopped, and what is on its way there has all the memory.
struct Short : World {
  explicit Short(bool is_open) : World(options()) {
    if (is_open)
      for (int to : {1, 2})
        for (int i = 0; i < 2; ++i) {
          send(0, to);
          run_for(ms(2));
        }
    stop_process(2);
    send(0, 2, 300);
    run_for(ms(1));
    held = host(0).pds->gauges().outstanding_packets;
    EXPECT_LT(held, 300u);
  }
  static WorldOptions options() {
    return software_world([](auto& o) {
      o.hosts = 3;
      o.pds.max_tx_chunks = 1;
      o.pds.pdc_idle_time = Duration{};
      o.cc.link_rate = base::BitRate::from_gbps(400);
      o.cc.config_base_rtt = us(200);
    });
  }
  std::uint32_t held = 0;
};

TEST(Records, a_message_that_found_none_leaves_when_others_give_theirs_back) {
  for (const bool is_open : {true, false}) {
    Short w(is_open);
    const std::size_t before = w.host(0).ses.responses.size();
    const MessageToken m = w.send(0, 1);
    w.run_for(ms(200));
    EXPECT_EQ(w.host(0).ses.responses.size(), before) << is_open;
    EXPECT_EQ(w.host(0).pds->gauges().outstanding_packets, w.held) << is_open;
    w.continue_process(2);
    w.run_for(ms(500));
    EXPECT_EQ(w.host(0).ses.responses_of(m), 1u) << is_open;
    EXPECT_EQ(w.host(0).ses.responses.size(), before + 301) << is_open;
    EXPECT_TRUE(w.host(0).ses.failures.empty()) << is_open;
  }
}

TEST(Records, a_close_command_that_found_none_leaves_when_others_give_theirs_back) {
  Short w(true);
  w.host(0).pds->close_all(w.now());
  w.run_for(ms(200));
  EXPECT_TRUE(w.controls(0, ControlType::kCloseCommand).empty());
  w.continue_process(2);
  w.run_for(ms(500));
  EXPECT_EQ(w.host(0).pds->gauges().pdcs_open, 0u);
  EXPECT_TRUE(w.host(0).ses.gone.empty());
}

TEST(Records, one_that_waits_for_them_may_end) {
  Short w(true);
  const MessageToken m = w.send(0, 1);
  w.run_for(ms(1));
  w.stop_process(1);
  w.run_for(Duration::from_seconds(70));
  ASSERT_EQ(w.host(0).ses.failures.size(), 2u);
  EXPECT_TRUE(w.host(0).ses.failures[0].token == m || w.host(0).ses.failures[1].token == m);
  EXPECT_EQ(w.host(0).pds->gauges().outstanding_packets, 0u);
  EXPECT_FALSE(w.host(0).pds->may_have_packets());
}

/// Host 0 has 16 PDCs and `further` blocks of 32 records beyond the first of each. Hosts from 2 on have stopped, with a message of a
/// whole window on its way to each.
struct Stopped : World {
  Stopped(std::uint32_t further, int stopped) : World(options(further, 2 + stopped)) {
    for (int k = 2; k < 2 + stopped; ++k) stop_process(k);
    for (int k = 2; k < 2 + stopped; ++k) send(0, k, 1024);
    run_for(ms(15));
  }
  static WorldOptions options(std::uint32_t further, int hosts) {
    return software_world([&](auto& o) {
      o.hosts = hosts;
      o.pds.max_pdc = 16;
      o.pds.max_tx_chunks = 16 + further;
      o.pds.pdc_idle_time = Duration{};
      o.cc.link_rate = base::BitRate::from_gbps(400);
      o.cc.config_base_rtt = us(200);
    });
  }
  std::uint32_t outstanding() { return host(0).pds->gauges().outstanding_packets; }
};

TEST(Records, what_stopped_peers_have_not_answered_leaves_each_pdc_some) {
  Stopped w(8, 3);
  EXPECT_GT(w.outstanding(), 8u * 32);
  const MessageToken m = w.send(0, 1, 100);
  w.run_for(ms(5));
  EXPECT_EQ(w.host(0).ses.responses_of(m), 100u);
}

TEST(Records, a_stopped_peer_leaves_a_quarter_of_them_to_others) {
  Stopped w(24, 1);
  const std::uint32_t before = w.outstanding();
  EXPECT_GT(before, 18u * 32);
  EXPECT_LE(before, 20u * 32);
  w.stop_process(1);
  w.send(0, 1, 1024);
  w.run_for(ms(15));
  EXPECT_GT(w.outstanding() - before, 4u * 32);
}

}  // namespace
}  // namespace uet::pds::test
