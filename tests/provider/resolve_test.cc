/// Which address a node stands for, of those that its name has.
#include "provider/resolve.h"

#include <gtest/gtest.h>

#include "provider/host_names.h"
#include "provider/port_candidates.h"
#include "provider/provider.h"

namespace uet::provider {
namespace {

net::FabricAddress address(const char* text) {
  return *net::FabricAddress::parse(text);
}

std::string told;

}  // namespace

// --- What resolve() is built upon: a host with few names, whose first process has 192.0.2.1 and 2001:db8::1

std::vector<net::FabricAddress> look_up(const char* name) {
  const std::string_view n = name;
  if (n == "both") return {address("10.0.0.9"), address("fd00::9"), address("fd00::10")};
  if (n == "only4") return {address("10.0.0.9")};
  if (n == "debian") return {address("127.0.1.1")};
  if (n == "fe80::9%eth0") return {address("fe80::9")};
  if (n == "local") return {address("fe80::9"), address("fd00::9")};
  return {};
}

net::FabricAddress first_on_host(const fep::Settings&, net::FabricAddress own) {
  return own.is_v4() ? address("192.0.2.1") : address("2001:db8::1");
}

void tell_user(const std::string& text) {
  told = text;
}

namespace {

class ResolveTest : public testing::Test {
 protected:
  ResolveTest() { told.clear(); }
  std::string resolved(const char* node, const char* own, End end = End::kDestination) {
    const auto out = resolve(node, nullptr, end, fep::Settings(), address(own));
    return out ? out->fabric_address.to_string() : "";
  }
};

TEST_F(ResolveTest, name_with_addresses_of_both_families__is_one_of_our_own) {
  EXPECT_EQ(resolved("both", "10.0.0.1"), "10.0.0.9");
  EXPECT_EQ(resolved("both", "fd00::1"), "fd00::9");
}

TEST_F(ResolveTest, name_without_one_of_our_family__is_what_it_has) {
  EXPECT_EQ(resolved("only4", "fd00::1"), "10.0.0.9");
}

TEST_F(ResolveTest, name_of_this_host__that_is_a_loopback_address_means_this_host) {
  EXPECT_EQ(resolved("debian", "10.0.0.1"), "192.0.2.1");
  EXPECT_EQ(resolved("debian", "10.0.0.1", End::kSource), "10.0.0.1");
  EXPECT_EQ(resolved("debian", "fd00::1"), "2001:db8::1");
}

TEST_F(ResolveTest, loopback_address__is_taken_as_written) {
  EXPECT_EQ(resolved("127.0.1.1", "127.0.0.2"), "127.0.1.1");
  EXPECT_EQ(resolved("127.0.0.1", "127.0.0.2"), "192.0.2.1");
}

TEST_F(ResolveTest, link_local_address_with_its_link__is_refused_with_a_sentence) {
  EXPECT_EQ(resolved("fe80::9%eth0", "fd00::1"), "");
  EXPECT_NE(told.find("fe80::9%eth0 is a link-local address"), std::string::npos) << told;
}

TEST_F(ResolveTest, link_local_address__is_passed_over_where_a_name_has_another) {
  EXPECT_EQ(resolved("local", "fd00::1"), "fd00::9");
}

TEST_F(ResolveTest, name_that_is_not_known__is_nothing_without_a_sentence) {
  EXPECT_EQ(resolved("nowhere", "10.0.0.1"), "");
  EXPECT_EQ(told, "");
}

}  // namespace
}  // namespace uet::provider
