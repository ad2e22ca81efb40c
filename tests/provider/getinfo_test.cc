#include <dlfcn.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

constexpr std::uint64_t kOrders = FI_ORDER_STRICT | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW |
                                  FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR |
                                  FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;

class GetinfoTest : public ::testing::Test {
 protected:
  GetinfoTest() { setenv("FI_UET_ADDR", address_of(1).c_str(), 1); }
  Info hints = make_hints();
  int error = 0;
};

// Covers: FI-10
TEST_F(GetinfoTest, no_hints__everything_is_on_offer_and_is_accepted_as_hints) {
  const Info info = get_info(nullptr);
  ASSERT_NE(info, nullptr);
  EXPECT_STREQ(info->fabric_attr->prov_name, "uet");
  EXPECT_EQ(info->src_addrlen, 32u);
  ASSERT_NE(info->src_addr, nullptr);
  EXPECT_EQ(info->domain_attr->mr_mode, kBasicModes);
  EXPECT_EQ(info->tx_attr->msg_order, kOrders);
  EXPECT_EQ(info->caps & (FI_MSG | FI_TAGGED | FI_RMA | FI_MULTI_RECV | FI_SOURCE),
            FI_MSG | FI_TAGGED | FI_RMA | FI_MULTI_RECV | FI_SOURCE);
  ASSERT_NE(info->nic, nullptr);
  EXPECT_NE(info->nic->device_attr, nullptr);
  EXPECT_NE(info->nic->bus_attr, nullptr);
  EXPECT_NE(info->nic->link_attr, nullptr);
  const Info again = get_info(info.get());
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->caps, info->caps);
  EXPECT_EQ(again->domain_attr->mr_mode, info->domain_attr->mr_mode);
}

// Covers: FI-11
TEST_F(GetinfoTest, tagged_only__has_no_other_kind_and_no_mr_mode) {
  hints->caps = FI_TAGGED;
  const Info info = get_info(hints.get());
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->domain_attr->mr_mode, 0);
  EXPECT_EQ(info->caps & (FI_MSG | FI_RMA | FI_ATOMIC), 0u);
  EXPECT_EQ(info->caps & (FI_TAGGED | FI_SEND | FI_RECV), FI_TAGGED | FI_SEND | FI_RECV);
}

// Covers: FI-12
TEST_F(GetinfoTest, mr_mode__is_what_was_offered_and_never_more) {
  hints->caps = FI_RMA | FI_ATOMIC;
  for (const auto& [asked, answer] :
       {std::pair{kBasicModes, kBasicModes}, std::pair{0, 0},
        std::pair{kBasicModes | FI_MR_LOCAL | FI_MR_ENDPOINT, kBasicModes}}) {
    hints->domain_attr->mr_mode = asked;
    const Info info = get_info(hints.get());
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->domain_attr->mr_mode, answer);
  }
}

// Covers: FI-13
TEST_F(GetinfoTest, threading_and_av_type__come_back_as_asked) {
  for (const fi_threading t : {FI_THREAD_DOMAIN, FI_THREAD_COMPLETION, FI_THREAD_SAFE,
                               FI_THREAD_FID, FI_THREAD_ENDPOINT}) {
    hints->domain_attr->threading = t;
    const Info info = get_info(hints.get());
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->domain_attr->threading, t);
    EXPECT_EQ(info->domain_attr->av_type, FI_AV_TABLE);
  }
  hints->domain_attr->av_type = FI_AV_MAP;
  EXPECT_EQ(get_info(hints.get())->domain_attr->av_type, FI_AV_MAP);
}

// Covers: FI-14
TEST_F(GetinfoTest, progress__follows_the_setting) {
  EXPECT_EQ(get_info(hints.get())->domain_attr->data_progress, FI_PROGRESS_MANUAL);
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  EXPECT_EQ(get_info(hints.get())->domain_attr->data_progress, FI_PROGRESS_MANUAL);
  hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
  EXPECT_EQ(get_info(hints.get())->domain_attr->data_progress, FI_PROGRESS_AUTO);
  {
    const Variable thread("FI_UET_PROGRESS", "thread");
    EXPECT_EQ(get_info(hints.get())->domain_attr->data_progress, FI_PROGRESS_AUTO);
  }
  const Variable manual("FI_UET_PROGRESS", "manual");
  EXPECT_EQ(get_info(hints.get(), &error), nullptr);
  EXPECT_EQ(error, -FI_ENODATA);
}

// Covers: FI-15
TEST_F(GetinfoTest, msg_order__every_subset_comes_back_and_unknown_bits_are_refused) {
  std::vector<std::uint64_t> bits;
  for (int i = 0; i < 64; ++i) {
    if ((kOrders >> i & 1) != 0) bits.push_back(std::uint64_t{1} << i);
  }
  // All pairs, and all subsets of the nine plain bits.
  std::vector<std::uint64_t> sets;
  for (std::uint64_t s = 0; s <= FI_ORDER_STRICT; ++s) sets.push_back(s);
  for (const auto x : bits) {
    for (const auto y : bits) sets.push_back(x | y);
  }
  for (const std::uint64_t set : sets) {
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = set;
    const Info info = get_info(hints.get());
    ASSERT_NE(info, nullptr) << std::hex << set;
    ASSERT_EQ(info->tx_attr->msg_order, set);
    ASSERT_EQ(info->rx_attr->msg_order, set);
  }
  hints->tx_attr->msg_order = std::uint64_t{1} << 50;
  EXPECT_EQ(get_info(hints.get(), &error), nullptr);
  EXPECT_EQ(error, -FI_ENODATA);
}

// Covers: FI-16, FI-17
TEST_F(GetinfoTest, what_we_do_not_have__is_refused) {
  const std::vector<std::pair<const char*, std::function<void(fi_info&)>>> wishes = {
      {"message size", [](fi_info& i) { i.ep_attr->max_msg_size = std::size_t{1} << 32; }},
      {"inject size", [](fi_info& i) { i.tx_attr->inject_size = 16385; }},
      {"ep type", [](fi_info& i) { i.ep_attr->type = FI_EP_MSG; }},
      {"addresses", [](fi_info& i) { i.addr_format = FI_SOCKADDR_IN; }},
      {"protocol", [](fi_info& i) { i.ep_attr->protocol = FI_PROTO_RXM; }},
      {"domain", [](fi_info& i) { i.domain_attr->name = strdup("x"); }},
      {"collectives", [](fi_info& i) { i.caps = FI_COLLECTIVE; }},
      {"completion order", [](fi_info& i) { i.tx_attr->comp_order = FI_ORDER_STRICT; }},
      {"key size", [](fi_info& i) { i.domain_attr->auth_key_size = 8; }},
  };
  for (const auto& [what, wish] : wishes) {
    const Info wanted = make_hints();
    wish(*wanted);
    EXPECT_EQ(get_info(wanted.get(), &error), nullptr) << what;
    EXPECT_EQ(error, -FI_ENODATA) << what;
  }
}

TEST_F(GetinfoTest, capabilities_of_the_other_half__are_left_out) {
  hints->caps = FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |
                FI_REMOTE_WRITE | FI_FENCE | FI_MULTI_RECV;
  hints->tx_attr->caps = hints->rx_attr->caps = hints->caps;
  const Info info = get_info(hints.get(), &error);
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->tx_attr->caps, FI_MSG | FI_RMA | FI_SEND | FI_READ | FI_WRITE | FI_FENCE);
  EXPECT_EQ(info->rx_attr->caps,
            FI_MSG | FI_RMA | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV);
  hints->caps = FI_MSG | FI_SEND | FI_RECV;
  hints->tx_attr->caps = FI_RECV;
  hints->rx_attr->caps = 0;
  EXPECT_EQ(get_info(hints.get())->tx_attr->caps, FI_MSG | FI_SEND);
  hints->tx_attr->caps = FI_TAGGED;
  EXPECT_EQ(get_info(hints.get(), &error), nullptr);
  EXPECT_EQ(error, -FI_ENODATA);
}

// Covers: FI-18
TEST_F(GetinfoTest, missing_sub_structures__mean_defaults) {
  fi_info bare{};
  bare.caps = FI_TAGGED;
  const Info info = get_info(&bare);
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->tx_attr->msg_order, 0u);
  EXPECT_EQ(info->domain_attr->threading, FI_THREAD_SAFE);
}

// Covers: FI-19
TEST_F(GetinfoTest, service__gives_both_sides_the_same_resource_index) {
  const Info client = get_info(hints.get(), nullptr, FI_VERSION(1, 17), "10.0.0.2", "9228");
  ASSERT_NE(client, nullptr);
  ASSERT_EQ(client->dest_addrlen, 32u);
  const auto* destination = static_cast<const std::uint8_t*>(client->dest_addr);
  const int index = 1 + 9228 % 4094;
  EXPECT_EQ(destination[6] << 8 | destination[7], index);
  EXPECT_EQ(destination[16], 10);
  EXPECT_EQ(destination[19], 2);
  const Info server = get_info(hints.get(), nullptr, FI_VERSION(1, 17), nullptr, "9228", FI_SOURCE);
  ASSERT_NE(server, nullptr);
  const auto* source = static_cast<const std::uint8_t*>(server->src_addr);
  EXPECT_EQ(source[6] << 8 | source[7], index);
}

// Covers: FI-20
TEST_F(GetinfoTest, dupinfo__of_our_info_with_nic_many_times) {
  const Info info = get_info(hints.get());
  ASSERT_NE(info, nullptr);
  for (int i = 0; i < 100'000; ++i) {
    const Info copy(fi_dupinfo(info.get()));
    ASSERT_NE(copy->nic, nullptr);
    ASSERT_STREQ(copy->nic->device_attr->name, info->nic->device_attr->name);
  }
}

/// Programs with several rails open a domain on each; others take the first. Nothing is opened for that.
// Covers: FI-63
TEST_F(GetinfoTest, devices_that_are_configured__have_an_entry_each) {
  const Variable ports("FI_UET_PORT", "udp|udp|dpdk:net_memif0,role=client|dpdk:net_memif1");
  const Variable addresses("FI_UET_ADDR",
                           address_of(1) + "|" + address_of(2) + "|10.0.0.1|fd00::1");
  hints->ep_attr->type = FI_EP_RDM;
  const auto names = [](const Info& info) {
    std::vector<std::string> out;
    for (const fi_info* i = info.get(); i != nullptr; i = i->next)
      out.emplace_back(i->domain_attr->name);
    return out;
  };
  const Info all = get_info(hints.get());
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(names(all), (std::vector<std::string>{"uet_lo", "uet_net_memif0", "uet_net_memif1"}));
  for (const fi_info* i = all.get(); i != nullptr; i = i->next) {
    ASSERT_NE(i->nic, nullptr);
    EXPECT_EQ(std::string("uet_") + i->nic->device_attr->name, i->domain_attr->name);
    const Info again = get_info(i);
    ASSERT_NE(again, nullptr) << "as hints";
    EXPECT_EQ(names(again), std::vector<std::string>{i->domain_attr->name});
    EXPECT_EQ(std::memcmp(again->src_addr, i->src_addr, i->src_addrlen), 0);
  }
  hints->domain_attr->name = strdup("uet_net_memif1");
  EXPECT_EQ(names(get_info(hints.get())), std::vector<std::string>{"uet_net_memif1"});
  hints->domain_attr->name[strlen("uet_")] = 'x';
  EXPECT_EQ(get_info(hints.get()), nullptr);
  const Info service = get_info(nullptr, nullptr, FI_VERSION(1, 17), nullptr, "9228", FI_SOURCE);
  EXPECT_EQ(names(service).size(), 6u) << "both types of endpoint on each";
}

/// With one, device_test.cc asks.
TEST_F(GetinfoTest, device_memory__is_not_offered_without_its_driver) {
  if (void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY)) {
    ::dlclose(driver);
    GTEST_SKIP() << "there is a CUDA driver here";
  }
  hints->caps = FI_MSG | FI_HMEM;
  hints->domain_attr->mr_mode = FI_MR_HMEM;
  EXPECT_EQ(get_info(hints.get(), &error), nullptr);
  EXPECT_EQ(error, -FI_ENODATA);
  hints->caps = FI_MSG;
  EXPECT_NE(get_info(hints.get()), nullptr);
}

TEST_F(GetinfoTest, older_api_versions__are_served) {
  for (const std::uint32_t v : {FI_VERSION(1, 5), FI_VERSION(1, 6), FI_VERSION(1, 17)}) {
    EXPECT_NE(get_info(hints.get(), nullptr, v), nullptr);
  }
  EXPECT_EQ(get_info(hints.get(), &error, FI_VERSION(1, 99)), nullptr);
  EXPECT_EQ(error, -FI_ENOSYS);
}

TEST_F(GetinfoTest, mr_mode_before_1_5__is_basic_where_nothing_was_asked_for) {
  const Info info = get_info(nullptr, nullptr, FI_VERSION(1, 4));
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->domain_attr->mr_mode, FI_MR_BASIC);
  hints->caps = FI_TAGGED;
  fi_domain_attr* const domain = std::exchange(hints->domain_attr, nullptr);
  EXPECT_EQ(get_info(hints.get(), nullptr, FI_VERSION(1, 4))->domain_attr->mr_mode, 0);
  hints->domain_attr = domain;
}

TEST_F(GetinfoTest, size_of_buffered_receives__is_a_hint) {
  hints->rx_attr->total_buffered_recv = 1 << 20;
  EXPECT_NE(get_info(hints.get()), nullptr);
}

TEST_F(GetinfoTest, addresses_in_hints__do_not_matter_where_node_and_service_say_others) {
  sockaddr_in of_another_provider{};
  const auto set = [&](void*& address, std::size_t& length) {
    address = std::malloc(sizeof of_another_provider);
    std::memcpy(address, &of_another_provider, sizeof of_another_provider);
    length = sizeof of_another_provider;
  };
  const std::string node = address_of(1);
  set(hints->src_addr, hints->src_addrlen);
  EXPECT_EQ(get_info(hints.get()), nullptr);
  EXPECT_NE(get_info(hints.get(), nullptr, FI_VERSION(1, 17), node.c_str(), nullptr, FI_SOURCE),
            nullptr);
  EXPECT_EQ(get_info(hints.get(), nullptr, FI_VERSION(1, 17), node.c_str()), nullptr);
  std::free(std::exchange(hints->src_addr, nullptr));
  set(hints->dest_addr, hints->dest_addrlen);
  EXPECT_EQ(get_info(hints.get()), nullptr);
  EXPECT_NE(get_info(hints.get(), nullptr, FI_VERSION(1, 17), node.c_str()), nullptr);
}

using OpenDomainTest = PairTest;

TEST_F(OpenDomainTest, hints_that_have_it__are_answered_for_it_alone) {
  open();
  const Info hints = make_hints();
  hints->domain_attr->domain = b.domain;
  hints->fabric_attr->fabric = b.fabric;
  const Info info = get_info(hints.get());
  ASSERT_NE(info, nullptr);
  for (const fi_info* i = info.get(); i != nullptr; i = i->next) {
    EXPECT_EQ(i->domain_attr->domain, b.domain);
    EXPECT_EQ(i->fabric_attr->fabric, b.fabric);
    EXPECT_STREQ(i->domain_attr->name, b.info->domain_attr->name);
    EXPECT_EQ(std::memcmp(static_cast<char*>(i->src_addr) + 16,
                          static_cast<char*>(b.info->src_addr) + 16, 16),
              0);
  }
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(b.domain, info.get(), &ep, nullptr), 0);
  EXPECT_EQ(fi_close(&ep->fid), 0);
  // Registered as before, or not at all.
  const Info other_keys = make_hints();
  other_keys->caps = FI_RMA;
  other_keys->domain_attr->domain = b.domain;
  EXPECT_EQ(get_info(other_keys.get()), nullptr) << "offsets and keys of the user's";
  other_keys->domain_attr->mr_mode = kBasicModes;
  EXPECT_NE(get_info(other_keys.get()), nullptr);
  // A service keeps its resource index.
  const Info plain = get_info(nullptr, nullptr, FI_VERSION(1, 17), nullptr, "9228", FI_SOURCE);
  const Info here = get_info(hints.get(), nullptr, FI_VERSION(1, 17), nullptr, "9228", FI_SOURCE);
  ASSERT_NE(here, nullptr);
  EXPECT_EQ(std::memcmp(static_cast<char*>(here->src_addr) + 4,
                        static_cast<char*>(plain->src_addr) + 4, 4),
            0);
  const std::string other = address_of(9);
  EXPECT_EQ(get_info(hints.get(), nullptr, FI_VERSION(1, 17), other.c_str(), nullptr, FI_SOURCE),
            nullptr);
}

TEST_F(OpenDomainTest, hints_that_have_one_of_another_provider__are_not_met) {
  const Info hints = make_hints();
  fi_ops ops{};
  fid_domain domain{.fid = {.fclass = FI_CLASS_DOMAIN, .context = nullptr, .ops = &ops}};
  fid_fabric fabric{.fid = {.fclass = FI_CLASS_FABRIC, .context = nullptr, .ops = &ops}};
  hints->domain_attr->domain = &domain;
  EXPECT_EQ(get_info(hints.get()), nullptr);
  hints->domain_attr->domain = nullptr;
  hints->fabric_attr->fabric = &fabric;
  EXPECT_EQ(get_info(hints.get()), nullptr);
}

TEST_F(GetinfoTest, wrong_setting__gives_no_data) {
  const Variable wrong("FI_UET_CC", "magic");
  EXPECT_EQ(get_info(hints.get(), &error), nullptr);
  EXPECT_EQ(error, -FI_ENODATA);
}

}  // namespace
}  // namespace uet::provider::testing
