// Messages that do not end well, without the parts that begin them. [SES 4.3, 10, 12]
#include "ses/rx_failures.h"

#include "tests/ses/rx_parts.h"

namespace uet::ses::testing {
namespace {

struct FailuresTest : RxPartsTest {
  /// A message of 3000 bytes of source 1 on its way into a receive.
  RxMessage& begin(RequestContext& first) {
    find_place(first);
    RxMessage& m = shared.shares.begin(first, RxTarget::kReceive);
    m.receive = &make_receive(4096, 5);
    m.receive->in_flight = 1;
    m.limit = 3000;
    shared.messages.count(m, first.request);
    shared.shares.let_go(first);
    return m;
  }

  ReadReturns returns{core, shared.senders, shared.shares};
  RendezvousTarget rendezvous{shared};
  Failures failures{shared, rendezvous, returns};
};

TEST_F(FailuresTest, reject__later_packets_get_the_same_answer) {
  RequestContext first = send_of(1, 3000), last = more_of(first, 2048);
  EXPECT_EQ(view(failures.reject(first, ReturnCode::kPermViolation)).code,
            ReturnCode::kPermViolation);
  RxMessage* m = shared.messages.find(last.key);
  ASSERT_NE(m, nullptr);
  shared.messages.count(*m, last.request);
  EXPECT_EQ(view(failures.answer_discarded(last, *m)).code, ReturnCode::kPermViolation);
}

TEST_F(FailuresTest, reject__a_message_of_one_packet_leaves_nothing) {
  RequestContext c = send_of(1, 100);
  EXPECT_TRUE(failures.reject(c, ReturnCode::kBadMkey).guaranteed);
  EXPECT_EQ(shared.messages.size(), 0u);
}

TEST_F(FailuresTest, fail__the_receive_ends_and_the_first_error_stays) {
  RequestContext first = send_of(1, 3000), next = more_of(first, 1024);
  RxMessage& m = begin(first);
  EXPECT_TRUE(failures.fail(next, m, ReturnCode::kOpViolation).guaranteed);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].code, ReturnCode::kOpViolation);
  const pds::Answer later = failures.fail(next, m, ReturnCode::kPermViolation);
  EXPECT_EQ(view(later).code, ReturnCode::kOpViolation);
  EXPECT_FALSE(later.guaranteed);
  EXPECT_EQ(sink.all.size(), 1u);
}

TEST_F(FailuresTest, drop_idle__first_it_is_discarded_then_forgotten) {
  RequestContext first = send_of(1, 3000);
  begin(first);
  wait(core.config.message_idle);
  failures.drop_idle(now);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].code, ReturnCode::kMessageTimeout);
  EXPECT_EQ(shared.messages.size(), 1u);
  wait(core.config.message_idle);
  failures.drop_idle(now);
  EXPECT_EQ(shared.messages.size(), 0u);
  EXPECT_EQ(sink.all.size(), 1u);
}

TEST_F(FailuresTest, on_pdc_gone__only_its_messages_end) {
  RequestContext first = send_of(1, 3000);
  RxMessage& m = begin(first);
  failures.on_pdc_gone(now, pds::PdcRef{2}, *m.sender);
  EXPECT_TRUE(sink.all.empty());
  failures.on_pdc_gone(now, pds::PdcRef{1}, *m.sender);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].code, ReturnCode::kUndeliverable);
  EXPECT_EQ(shared.messages.size(), 0u);
}

// A source with many messages under way may end any number of PDCs, and others in its name.
TEST_F(FailuresTest, on_pdc_gone__looks_at_nothing_where_no_message_is) {
  Sender* owner = nullptr;
  for (int i = 0; i < 20; ++i) {
    RequestContext first = send_of(1, 3000);
    if (i == 19) first.key.pdc = pds::PdcRef{2};
    failures.reject(first, ReturnCode::kPermViolation);
    owner = first.owner;
    shared.shares.let_go(first);
  }
  ASSERT_EQ(shared.messages.size(), 20u);
  for (int i = 0; i < 100; ++i) failures.on_pdc_gone(now, pds::PdcRef{3}, *owner);
  failures.on_pdc_gone(now, pds::PdcRef{2}, *owner);  // its message is the newest
  EXPECT_EQ(shared.messages.size(), 19u);
  EXPECT_EQ(failures.passed(), 0u);
  failures.on_pdc_gone(now, pds::PdcRef{1}, *owner);
  EXPECT_EQ(shared.messages.size(), 0u);
}

TEST_F(FailuresTest, close__nothing_is_completed_and_late_packets_are_told) {
  RequestContext first = send_of(1, 3000), next = more_of(first, 1024);
  RxMessage& m = begin(first);
  failures.close(now, *endpoint);
  EXPECT_TRUE(sink.all.empty());
  EXPECT_NE(shared.receives.next_aside(), nullptr);
  EXPECT_EQ(view(failures.answer_discarded(next, m)).code, ReturnCode::kCancelled);
}

TEST_F(FailuresTest, on_message_error__the_initiator_ends_what_it_began) {
  RequestContext first = send_of(1, 3000), error = more_of(first, 2048);
  begin(first);
  EXPECT_EQ(view(failures.on_message_error(error)).code, ReturnCode::kInitiatorErr);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].code, ReturnCode::kCancelled);
}

}  // namespace
}  // namespace uet::ses::testing
