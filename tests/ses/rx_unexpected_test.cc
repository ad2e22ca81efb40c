// Unexpected messages in the lists of their endpoints. [SES 7.2, 7.3]
#include "ses/rx_unexpected.h"

#include "tests/ses/rx_parts.h"

namespace uet::ses::testing {
namespace {

struct UnexpectedListsTest : RxPartsTest {
  std::vector<const UnexpectedMessage*> listed() {
    std::vector<const UnexpectedMessage*> all;
    for (const UnexpectedMessage& u : space().unexpected.arrivals()) all.push_back(&u);
    return all;
  }
  /// The header of source `n`, whose message found no room, and what comes when it is sent again.
  UnexpectedMessage& keep_header(std::uint32_t n) {
    RequestContext c = send_of(n, 100);
    UnexpectedMessage& u = *shared.store.note_header(sender(n), 100);
    shared.senders.hold(sender(n));
    shared.unexpected.enlist(c, space(), u, nullptr);
    return u;
  }
  UnexpectedMessage& replace(UnexpectedMessage& header, std::uint32_t n) {
    RequestContext c = send_of(n, 100);
    UnexpectedMessage& u = *shared.store.admit(endpoint->overflow, sender(n), 100);
    shared.senders.hold(sender(n));
    shared.unexpected.enlist(c, space(), u, &header);
    return u;
  }
};

TEST_F(UnexpectedListsTest, enlist__messages_stand_as_they_came_and_say_where_from) {
  const UnexpectedMessage& first = keep(1, 100);
  const UnexpectedMessage& second = keep(2, 200);
  EXPECT_EQ(listed(), (std::vector{&first, &second}));
  EXPECT_EQ(first.length, 100u);
  EXPECT_EQ(second.endpoint, endpoint);
  EXPECT_EQ(completion_of(second).source.fabric_address, source(2));
}

// Receives match in the order of arrival, and the header arrived then. [SES 7.3]
TEST_F(UnexpectedListsTest, enlist__a_message_that_comes_again_takes_the_place_of_its_header) {
  UnexpectedMessage& header = keep_header(1);
  const UnexpectedMessage& later = keep(2, 100);
  const UnexpectedMessage& again = replace(header, 1);
  EXPECT_EQ(listed(), (std::vector<const UnexpectedMessage*>{&again, &header, &later}));
}

TEST_F(UnexpectedListsTest, enlist__what_claimed_the_header_has_claimed_the_message) {
  UnexpectedMessage& header = keep_header(1);
  space().unexpected.remove(header);
  header.claimed = true;
  header.claim_context = 9;
  endpoint->claimed.push_back(header);
  const UnexpectedMessage& again = replace(header, 1);
  EXPECT_TRUE(again.claimed);
  EXPECT_EQ(again.claim_context, 9u);
  EXPECT_EQ(&endpoint->claimed.front(), &again);
  EXPECT_TRUE(listed().empty());
}

TEST_F(UnexpectedListsTest, release__the_room_is_free_and_the_sender_may_go) {
  UnexpectedMessage& u = keep(1, 100);
  ASSERT_GT(shared.store.bytes(), 0u);
  shared.store.drop_payload(u, endpoint->overflow);
  shared.unexpected.release(u);
  EXPECT_TRUE(listed().empty());
  EXPECT_EQ(shared.store.messages(), 0u);
  EXPECT_EQ(shared.store.bytes(), 0u);
  EXPECT_EQ(endpoint->overflow.messages, 0u);
  EXPECT_EQ(sender(1).overflow.messages, 0u);
}

TEST_F(UnexpectedListsTest, release__one_deferred_message_less) {
  UnexpectedMessage& u = keep(1, 100);
  u.is_deferred = true;
  endpoint->deferred = sender(1).deferred = 2;
  shared.store.drop_payload(u, endpoint->overflow);
  shared.unexpected.release(u);
  EXPECT_EQ(endpoint->deferred, 1u);
  EXPECT_EQ(sender(1).deferred, 1u);
}

}  // namespace
}  // namespace uet::ses::testing
