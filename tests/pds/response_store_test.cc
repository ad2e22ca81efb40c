// Answers owed, kept and queued, found by PDC and PSN. [PDS 9, 10, 11.2]
#include "pds/response_store.h"

#include <gtest/gtest.h>

#include <vector>

namespace uet::pds {
namespace {

using State = RxRecord::State;
const base::HashKey kKey{base::Rng(1)};

std::vector<std::uint32_t> drain(ResponseStore& store, AckQueue& queue) {
  std::vector<std::uint32_t> psns;
  while (const RxRecord* record = store.pop(queue)) psns.push_back(record->psn.value());
  return psns;
}

TEST(ResponseStore, find__knows_kept_records_of_one_pdc_only) {
  ResponseStore store(4, 4, 64, kKey);
  RxRecord* pending = store.add(1, Psn(10), State::kPending, {});
  RxRecord* stored = store.add(2, Psn(10), State::kStored, {});
  store.add(1, Psn(11), State::kAckOnly, {});
  EXPECT_EQ(store.find(1, Psn(10)), pending);
  EXPECT_EQ(store.find(2, Psn(10)), stored);
  EXPECT_EQ(store.find(1, Psn(11)), nullptr);
  EXPECT_EQ(store.kept(), 2u);
  EXPECT_EQ(store.in_use(), 3u);
}

TEST(ResponseStore, owed_and_kept_records_do_not_take_each_others_room) {
  ResponseStore store(2, 2, 0, kKey);
  ASSERT_NE(store.add(1, Psn(1), State::kAckOnly, {}), nullptr);
  ASSERT_NE(store.add(1, Psn(2), State::kAckOnly, {}), nullptr);
  EXPECT_EQ(store.add(1, Psn(3), State::kAckOnly, {}), nullptr);
  ASSERT_NE(store.add(1, Psn(3), State::kStored, {}), nullptr);
  ASSERT_NE(store.add(1, Psn(4), State::kPending, {}), nullptr);
  EXPECT_FALSE(store.can_keep(false));
}

TEST(ResponseStore, can_keep__has_a_reserve_for_packets_that_close_a_gap) {
  ResponseStore store(1, 1, 0, kKey);
  for (std::uint32_t i = 0; i <= ResponseStore::kEdgeReserve; ++i) {
    ASSERT_TRUE(store.can_keep(true)) << i;
    EXPECT_EQ(store.can_keep(false), i == 0);
    ASSERT_NE(store.add(1, Psn(i), State::kStored, {}), nullptr);
  }
  EXPECT_FALSE(store.can_keep(true));
  EXPECT_EQ(store.add(1, Psn(1000), State::kStored, {}), nullptr);
}

TEST(ResponseStore, change_state__moves_a_record_between_the_shares) {
  ResponseStore store(2, 1, 0, kKey);
  RxRecord& record = *store.add(1, Psn(5), State::kPending, {});
  RxRecord& other = *store.add(1, Psn(6), State::kPending, {});
  store.change_state(record, State::kStored);
  EXPECT_EQ(store.find(1, Psn(5)), &record);
  store.change_state(record, State::kAckOnly);
  EXPECT_EQ(store.find(1, Psn(5)), nullptr);
  EXPECT_EQ(store.kept(), 1u);
  EXPECT_FALSE(store.has_too_many_acks());
  store.change_state(other, State::kAckOnly);
  EXPECT_TRUE(store.has_too_many_acks());
}

TEST(ResponseStore, set_response__copies_header_and_data) {
  ResponseStore store(1, 1, 8, kKey);
  RxRecord& record = *store.add(1, Psn(5), State::kStored, {});
  SesResponse response;
  response.next_hdr = 5;
  response.header_bytes = 2;
  response.header[0] = 0xaa;
  response.header[1] = 0xbb;
  std::vector<std::uint8_t> data = {1, 2, 3};
  response.data = data;
  store.set_response(record, response);
  data.assign(3, 0);
  EXPECT_EQ(record.next_hdr, 5);
  EXPECT_EQ(record.header[1], 0xbb);
  const auto kept = store.data_of(record);
  EXPECT_EQ(std::vector<std::uint8_t>(kept.begin(), kept.end()),
            (std::vector<std::uint8_t>{1, 2, 3}));
}

TEST(ResponseStore, queues_are_first_in_first_out) {
  ResponseStore store(1, 8, 0, kKey);
  AckQueue one, other;
  for (const std::uint32_t psn : {5u, 3u, 9u})
    store.push(one, *store.add(1, Psn(psn), State::kAckOnly, {}));
  store.push(other, *store.add(2, Psn(4), State::kAckOnly, {}));
  EXPECT_EQ(drain(store, one), (std::vector<std::uint32_t>{5, 3, 9}));
  EXPECT_TRUE(one.is_empty());
  EXPECT_EQ(drain(store, other), (std::vector<std::uint32_t>{4}));
}

TEST(ResponseStore, push_ordered__keeps_psn_order_behind_what_is_urgent) {
  ResponseStore store(1, 8, 0, kKey);
  AckQueue queue;
  for (const std::uint32_t psn : {5u, 3u, 9u, 4u})
    store.push_ordered(queue, *store.add(1, Psn(psn), State::kAckOnly, {}));
  RxRecord& urgent = *store.add(1, Psn(8), State::kAckOnly, {});
  urgent.urgent = true;
  store.push_front(queue, urgent);
  store.push_ordered(queue, *store.add(1, Psn(2), State::kAckOnly, {}));
  EXPECT_EQ(drain(store, queue), (std::vector<std::uint32_t>{8, 2, 3, 4, 5, 9}));
}

// A peer that asks about one packet again and again fills the part that goes first, and that must not make the other one slow.
TEST(ResponseStore, push_ordered__passes_only_what_comes_after) {
  constexpr std::uint32_t kMany = 1000;
  ResponseStore store(1, 2 * kMany, 0, kKey);
  AckQueue queue;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    store.push_front(queue, *store.add(1, Psn(5000 + i), State::kAckOnly, {}));
    store.push_ordered(queue, *store.add(1, Psn(i), State::kAckOnly, {}));
  }
  EXPECT_EQ(store.passed(), 0u);
  RxRecord& late = *store.add(1, Psn(kMany - 4), State::kPending, {});
  store.push_ordered(queue, late);
  EXPECT_EQ(store.passed(), 3u);
  EXPECT_EQ(drain(store, queue).size(), 2u * kMany + 1);
}

TEST(ResponseStore, unqueue__takes_a_record_from_any_place) {
  ResponseStore store(1, 8, 0, kKey);
  for (const std::uint32_t gone : {1u, 2u, 3u}) {
    AckQueue queue;
    std::vector<RxRecord*> records;
    for (const std::uint32_t psn : {1u, 2u, 3u}) {
      records.push_back(store.add(1, Psn(psn), State::kAckOnly, {}));
      store.push(queue, *records.back());
    }
    store.unqueue(queue, *records[gone - 1]);
    EXPECT_FALSE(records[gone - 1]->queued);
    store.push(queue, *records[gone - 1]);
    std::vector<std::uint32_t> expected = {1, 2, 3};
    expected.erase(expected.begin() + gone - 1);
    expected.push_back(gone);
    EXPECT_EQ(drain(store, queue), expected);
    for (RxRecord* record : records) store.remove(*record);
  }
  EXPECT_EQ(store.in_use(), 0u);
}

}  // namespace
}  // namespace uet::pds
