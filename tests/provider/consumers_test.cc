/// fi_getinfo as each consumer asks: the hints are those of its source, and what it demands of the answer. device_test.cc has those
/// that need device memory. [FI 11]
#include <rdma/fi_atomic.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

class ConsumersTest : public ::testing::Test {
 protected:
  ConsumersTest() {
    setenv("FI_UET_ADDR", address_of(1).c_str(), 1);
    hints->ep_attr->type = FI_EP_RDM;
  }
  Info ask(std::uint32_t version) const {
    Info info = get_info(hints.get(), nullptr, version);
    EXPECT_NE(info, nullptr);
    if (info == nullptr) return info;
    EXPECT_EQ(info->caps & hints->caps, hints->caps);
    EXPECT_EQ(info->ep_attr->type, FI_EP_RDM);
    EXPECT_NE(info->fabric_attr->name, nullptr) << "compared by strcmp";
    return info;
  }
  Info hints = make_hints();
};

// Covers: FI-71
TEST_F(ConsumersTest, open_mpi__messages) {
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->caps = FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
  hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->tx_attr->op_flags = hints->rx_attr->op_flags = FI_COMPLETION;
  hints->domain_attr->cq_data_size = 4;
  hints->domain_attr->control_progress = hints->domain_attr->data_progress = FI_PROGRESS_UNSPEC;
  hints->domain_attr->av_type = FI_AV_MAP;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->mr_mode = 0;
  for (const fi_threading threading : {FI_THREAD_DOMAIN, FI_THREAD_SAFE}) {
    hints->domain_attr->threading = threading;
    const Info info = ask(FI_VERSION(1, 5));
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->domain_attr->threading, threading);
    EXPECT_EQ(info->domain_attr->av_type, FI_AV_MAP);
    EXPECT_EQ(info->domain_attr->mr_mode, 0);
    EXPECT_GE(info->domain_attr->cq_data_size, 4u);
    EXPECT_NE(info->ep_attr->mem_tag_format >> 63, 0u) << "the top bit of a tag is used";
  }
}

/// It first asks for device memory, by a newer interface, and does without where there is none.
// Covers: FI-72
TEST_F(ConsumersTest, open_mpi__one_sided) {
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->domain_attr->mr_mode = kBasicModes;
  hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  hints->tx_attr->iov_limit = 1;
  hints->domain_attr->threading = FI_THREAD_UNSPEC;
  for (const std::uint64_t caps :
       {FI_RMA | FI_ATOMIC, FI_MSG | FI_RMA | FI_ATOMIC, FI_MSG | FI_RMA}) {
    hints->caps = caps;
    const Info info = ask(FI_VERSION(1, 5));
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->domain_attr->mr_mode & ~kBasicModes, 0) << "any other bit is refused";
    EXPECT_EQ(info->domain_attr->max_ep_tx_ctx, 1u) << "else it opens scalable endpoints";
  }
}

/// It takes the answer to no hints, and gives it back as hints with its own wishes.
// Covers: FI-73
TEST_F(ConsumersTest, mpich__both_questions) {
  const Info first = get_info(nullptr, nullptr, fi_version());
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->caps & (FI_MSG | FI_MULTI_RECV), FI_MSG | FI_MULTI_RECV);
  EXPECT_EQ(first->caps & (FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV),
            FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV);
  hints->mode = FI_CONTEXT | FI_CONTEXT2 | FI_ASYNC_IOV | FI_RX_CQ_DATA;
  hints->caps = first->caps;
  hints->domain_attr->mode = FI_RESTRICTED_COMP;
  hints->domain_attr->cq_data_size = 4;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->control_progress = hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->av_type = FI_AV_TABLE;
  hints->domain_attr->mr_mode = first->domain_attr->mr_mode | FI_MR_ENDPOINT;
  hints->tx_attr->op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
  hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR |
                                                          FI_ORDER_ATOMIC_RAW |
                                                          FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;
  hints->ep_attr->mem_tag_format = first->ep_attr->mem_tag_format;
  const Info info = ask(fi_version());
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->domain_attr->threading, FI_THREAD_DOMAIN) << "it aborts on any other";
  EXPECT_EQ(info->domain_attr->av_type, FI_AV_TABLE);
  EXPECT_NE(info->domain_attr->mr_mode & FI_MR_ALLOCATED, 0) << "else it registers everything";
  EXPECT_EQ(info->tx_attr->msg_order, hints->tx_attr->msg_order);
  ASSERT_NE(info->nic, nullptr);
  EXPECT_NE(info->nic->link_attr, nullptr);
}

/// Without device memory, its last question.
// Covers: FI-74
TEST_F(ConsumersTest, nccl_plugin__in_host_memory) {
  hints->caps = FI_LOCAL_COMM | FI_REMOTE_COMM | FI_TAGGED | FI_MSG;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ENDPOINT | kBasicModes;
  hints->domain_attr->mr_key_size = 2;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
  const Info info = ask(FI_VERSION(1, 6));
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->domain_attr->threading, FI_THREAD_SAFE);
  EXPECT_LE(info->src_addrlen, 56u) << "the room that it has for a name";
  ASSERT_NE(info->nic, nullptr);
  EXPECT_TRUE(info->nic->device_attr != nullptr && info->nic->bus_attr != nullptr &&
              info->nic->link_attr != nullptr);
}

// Covers: FI-76
TEST_F(ConsumersTest, oneccl__twice_with_its_own_answer) {
  hints->mode = FI_CONTEXT;
  hints->caps = FI_TAGGED | FI_DIRECTED_RECV;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->control_progress = hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->av_type = FI_AV_TABLE;
  hints->domain_attr->mr_mode = 0;
  hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
  for (int round = 0; round < 2; ++round) {
    const Info info = ask(FI_VERSION(1, 5));
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->domain_attr->av_type, FI_AV_TABLE);
    hints->ep_attr->tx_ctx_cnt = hints->ep_attr->rx_ctx_cnt = 1;
  }
}

// Covers: FI-77
TEST_F(ConsumersTest, sandia_openshmem__with_its_options) {
  std::free(std::exchange(hints->rx_attr, nullptr));
  hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->mr_key_size = 1;
  hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  hints->tx_attr->inject_size = 16;
  hints->ep_attr->tx_ctx_cnt = 0;
  for (const std::uint64_t more : {0ull, FI_RMA_EVENT, FI_FENCE}) {
    for (const int mode : {kBasicModes, 0, FI_MR_RMA_EVENT, kBasicModes | FI_MR_ENDPOINT}) {
      for (const fi_threading threading :
           {FI_THREAD_DOMAIN, FI_THREAD_SAFE, FI_THREAD_COMPLETION}) {
        hints->caps = FI_RMA | FI_ATOMIC | more;
        hints->domain_attr->mr_mode = mode;
        hints->domain_attr->threading = threading;
        const Info info = ask(FI_VERSION(1, 5));
        ASSERT_NE(info, nullptr);
        EXPECT_EQ(info->domain_attr->data_progress, FI_PROGRESS_AUTO);
        EXPECT_EQ(info->domain_attr->mr_mode & ~(mode & kBasicModes), 0);
        EXPECT_GE(info->tx_attr->inject_size, 16u);
        EXPECT_GE(info->domain_attr->max_ep_stx_ctx, 1u) << "it shares one among its contexts";
      }
    }
  }
}

// Covers: FI-78
TEST_F(ConsumersTest, fabtests__a_complete_provider) {
  hints->mode = ~std::uint64_t{0};
  hints->domain_attr->mode = ~std::uint64_t{0};
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ENDPOINT | kBasicModes | FI_MR_RAW;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->cq_data_size = 4;
  const std::uint32_t version = std::min<std::uint32_t>(FI_VERSION(1, 21), fi_version());
  for (const std::uint64_t caps :
       {FI_MSG, FI_TAGGED, FI_MSG | FI_RMA, FI_MSG | FI_ATOMIC, FI_MSG | FI_RMA | FI_RMA_EVENT,
        FI_MSG | FI_MULTI_RECV, FI_TAGGED | FI_DIRECTED_RECV}) {
    hints->caps = caps;
    const Info info = ask(version);
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->fabric_attr->api_version, version);
    EXPECT_EQ(info->mode, 0u);
    EXPECT_NE(info->src_addr, nullptr);
    EXPECT_EQ(info->domain_attr->mr_mode & (FI_MR_RAW | FI_MR_LOCAL), 0);
  }
  // With -U, and with each way of progress and threading that its options name.
  hints->caps = FI_MSG | FI_RMA;
  hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
  for (const fi_progress progress : {FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO}) {
    for (const fi_threading threading : {FI_THREAD_DOMAIN, FI_THREAD_COMPLETION, FI_THREAD_SAFE}) {
      hints->domain_attr->control_progress = hints->domain_attr->data_progress = progress;
      hints->domain_attr->threading = threading;
      const Info info = ask(version);
      ASSERT_NE(info, nullptr);
      EXPECT_EQ(info->domain_attr->data_progress, progress);
      EXPECT_EQ(info->domain_attr->threading, threading);
      EXPECT_EQ(info->tx_attr->op_flags, FI_DELIVERY_COMPLETE);
    }
  }
}

}  // namespace
}  // namespace uet::provider::testing
