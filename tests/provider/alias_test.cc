/// Aliases of an endpoint, as fi_ep_alias(3) describes them.
#include "tests/provider/triggered_fixture.h"

namespace uet::provider::testing {
namespace {

class AliasTest : public TriggeredTest {
 protected:
  void TearDown() override {
    close_alias();
    TriggeredTest::TearDown();
  }
  void close_alias() {
    if (alias_ == nullptr) return;
    EXPECT_EQ(fi_close(&alias_->fid), 0);
    alias_ = nullptr;
  }
  /// Of the endpoint of a.
  void open_alias(std::uint64_t flags) {
    ASSERT_EQ(fi_ep_alias(a.ep, &alias_, flags), 0);
    ASSERT_NE(alias_, a.ep);
  }
  static std::uint64_t op_flags(fid_ep* ep, std::uint64_t half) {
    std::uint64_t flags = half;
    EXPECT_EQ(fi_control(&ep->fid, FI_GETOPSFLAG, &flags), 0);
    return flags;
  }
  /// A message without data.
  ssize_t send_by(fid_ep* ep, std::uint64_t tag, void* context = nullptr) {
    return fi_tsend(ep, nullptr, 0, nullptr, to_b, tag, context);
  }

  fid_ep* alias_ = nullptr;
};

TEST_F(AliasTest, operations__go_by_the_flags_of_the_alias) {
  open_triggerable();
  post_receives(2);
  open_alias(FI_TRANSMIT | FI_TRIGGER);
  auto context = when(start_, 1);
  ASSERT_EQ(send_by(alias_, 1, &context), 0);
  ASSERT_EQ(send_by(a.ep, 2), 0);
  EXPECT_EQ(tags_at_b(1), (std::vector<std::uint64_t>{2}));
  EXPECT_FALSE(wait_for(a).failed);
  expect_silence(b, 20);
  ASSERT_EQ(fi_cntr_add(start_, 1), 0);
  EXPECT_EQ(tags_at_b(1), (std::vector<std::uint64_t>{1}));
  const Got got = wait_for(a);
  EXPECT_FALSE(got.failed);
  EXPECT_EQ(got.entry.op_context, &context);
}

TEST_F(AliasTest, receives__go_by_the_flags_of_the_alias) {
  open_triggerable();
  open_alias(FI_RECV | FI_TRIGGER);
  auto context = when(start_, 1);
  std::uint64_t got = 0, sent = 7;
  ASSERT_EQ(fi_recv(alias_, &got, sizeof got, nullptr, FI_ADDR_UNSPEC, &context), 0);
  ASSERT_EQ(fi_send(b.ep, &sent, sizeof sent, nullptr, to_a, nullptr), 0);
  expect_silence(a, 20);
  ASSERT_EQ(fi_cntr_add(start_, 1), 0);
  const Got done = wait_for(a);
  EXPECT_FALSE(done.failed);
  EXPECT_EQ(done.entry.op_context, &context);
  EXPECT_EQ(got, sent);
}

TEST_F(AliasTest, every_call__finds_the_endpoint) {
  open_triggerable();
  open_alias(FI_TRANSMIT);
  fid_ep* const own = a.ep;
  for (const fi_op_type type : kOpTypes) {
    SCOPED_TRACE(type);
    prepare(type);
    Operation op;
    describe(op, &op, 0);
    narrow(type, op);
    a.ep = alias_;
    EXPECT_EQ(call(type, op, 0), 0);
    a.ep = own;
    const Got got = wait_for(a);
    EXPECT_FALSE(got.failed);
    EXPECT_EQ(got.entry.op_context, &op);
    expect_done(type);
  }
  std::array<std::uint8_t, 32> name{};
  std::size_t length = name.size();
  EXPECT_EQ(fi_getname(&alias_->fid, name.data(), &length), 0);
  EXPECT_TRUE(std::ranges::equal(name, a.name));
  std::size_t least = 0, size = sizeof least;
  EXPECT_EQ(fi_getopt(&alias_->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, &size), 0);
  EXPECT_EQ(alias_->ops->tx_size_left(alias_), a.ep->ops->tx_size_left(a.ep));
  EXPECT_EQ(fi_enable(alias_), 0);
  ASSERT_EQ(fi_recv(a.ep, nullptr, 0, nullptr, FI_ADDR_UNSPEC, &size), 0);
  EXPECT_EQ(fi_cancel(&alias_->fid, &size), 0);
  EXPECT_EQ(wait_for(a).error.err, FI_ECANCELED);
}

TEST_F(AliasTest, deferred_work__takes_an_alias) {
  open_triggerable();
  open_alias(FI_TRANSMIT);
  prepare(FI_OP_TSEND);
  Operation op;
  describe(op, nullptr, 0);
  op.tagged.ep = alias_;
  fi_deferred_work work{};
  work.threshold = 1;
  work.triggering_cntr = start_;
  work.completion_cntr = open_counter(a);
  ASSERT_EQ(queue(FI_OP_TSEND, op, work), 0);
  ASSERT_EQ(fi_cntr_add(start_, 1), 0);
  EXPECT_TRUE(wait_for_value(work.completion_cntr, 1));
  expect_done(FI_OP_TSEND);
}

TEST_F(AliasTest, flags__belong_to_each_alone) {
  open_triggerable();
  std::uint64_t flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
  ASSERT_EQ(fi_control(&a.ep->fid, FI_SETOPSFLAG, &flags), 0);
  flags = FI_RECV | FI_COMPLETION;
  ASSERT_EQ(fi_control(&a.ep->fid, FI_SETOPSFLAG, &flags), 0);
  open_alias(FI_TRANSMIT | FI_TRANSMIT_COMPLETE);
  EXPECT_EQ(op_flags(alias_, FI_TRANSMIT), FI_TRANSMIT_COMPLETE);
  EXPECT_EQ(op_flags(alias_, FI_RECV), FI_COMPLETION);
  EXPECT_EQ(op_flags(a.ep, FI_TRANSMIT), FI_DELIVERY_COMPLETE);
  flags = FI_TRANSMIT | FI_INJECT_COMPLETE;
  ASSERT_EQ(fi_control(&alias_->fid, FI_SETOPSFLAG, &flags), 0);
  EXPECT_EQ(op_flags(alias_, FI_TRANSMIT), FI_INJECT_COMPLETE);
  EXPECT_EQ(op_flags(a.ep, FI_TRANSMIT), FI_DELIVERY_COMPLETE);
  // An alias of an alias begins as that is.
  fid_ep* second = nullptr;
  ASSERT_EQ(fi_ep_alias(alias_, &second, FI_RECV), 0);
  EXPECT_EQ(op_flags(second, FI_TRANSMIT), FI_INJECT_COMPLETE);
  EXPECT_EQ(op_flags(second, FI_RECV), 0u);
  EXPECT_EQ(fi_close(&second->fid), 0);
}

TEST_F(AliasTest, selective_completion__is_asked_for_by_an_alias) {
  const Info hints = make_hints();
  hints->caps = FI_MSG | FI_TAGGED;
  a.open(address_of(2), *hints);
  b.open(address_of(3), *hints);
  ASSERT_FALSE(HasFatalFailure());
  a.open_endpoint(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION);
  b.open_endpoint();
  ASSERT_FALSE(HasFatalFailure());
  to_b = a.insert(b);
  to_a = b.insert(a);
  post_receives(2);
  open_alias(FI_TRANSMIT | FI_COMPLETION);
  ASSERT_EQ(send_by(a.ep, 1, &a), 0);
  ASSERT_EQ(send_by(alias_, 2, &b), 0);
  EXPECT_EQ(tags_at_b(2), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(wait_for(a).entry.op_context, &b);
  expect_silence(a, 20);
}

TEST_F(AliasTest, endpoint__is_closed_after_its_aliases) {
  open_triggerable();
  open_alias(FI_TRANSMIT);
  EXPECT_EQ(fi_close(&a.ep->fid), -FI_EBUSY);
  close_alias();
  EXPECT_EQ(fi_close(&a.ep->fid), 0);
  a.ep = nullptr;
}

TEST_F(AliasTest, endpoint_that_is_not_enabled__has_aliases) {
  const Info hints = make_hints();
  hints->caps = FI_MSG | FI_TAGGED;
  a.open(address_of(2), *hints);
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_EQ(fi_endpoint(a.domain, a.info.get(), &a.ep, nullptr), 0);
  open_alias(FI_TRANSMIT | FI_DELIVERY_COMPLETE);
  ASSERT_EQ(fi_ep_bind(alias_, &a.av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(a.ep, &a.cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_enable(alias_), 0);
  char name[32];
  std::size_t length = sizeof name;
  EXPECT_EQ(fi_getname(&a.ep->fid, name, &length), 0);
}

TEST_F(AliasTest, flags_that_make_no_sense__are_refused) {
  open_triggerable(FI_MSG | FI_TAGGED);
  for (const std::uint64_t flags :
       {std::uint64_t{0}, std::uint64_t{FI_TRANSMIT | FI_RECV},
        std::uint64_t{FI_TRANSMIT | FI_PEEK}, std::uint64_t{FI_RECV | FI_INJECT},
        std::uint64_t{FI_TRANSMIT | FI_TRIGGER}}) {
    SCOPED_TRACE(flags);
    EXPECT_EQ(fi_ep_alias(a.ep, &alias_, flags), -FI_EINVAL);
    EXPECT_EQ(alias_, nullptr);
  }
}

TEST_F(AliasTest, operation_that_the_endpoint_lacks__is_refused_as_deferred_work_too) {
  open_triggerable(FI_MSG | FI_TRIGGER);
  Operation op;
  describe(op, nullptr, 0);
  fi_deferred_work work{};
  work.threshold = 1;
  work.triggering_cntr = start_;
  for (const fi_op_type type : {FI_OP_TSEND, FI_OP_WRITE, FI_OP_READ, FI_OP_ATOMIC})
    EXPECT_EQ(queue(type, op, work), -FI_EOPNOTSUPP) << type;
}

}  // namespace
}  // namespace uet::provider::testing
