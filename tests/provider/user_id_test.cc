// FI_AV_USER_ID of libfabric 2: completions name senders by identifiers that the application gave them.
#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

constexpr std::uint64_t kAvUserId = std::uint64_t{1} << 41;

/// As newer headers have it: what follows the table of libfabric 1.17.
struct NewerOps : fi_ops_av {
  void* insert_auth_key;
  void* lookup_auth_key;
  int (*set_user_id)(fid_av*, fi_addr_t, fi_addr_t, std::uint64_t);
};

class UserIdTest : public PairTest {
 protected:
  /// Side b knows its peers by `flags`; a can send to it.
  void open_with(std::uint64_t flags) {
    const Info hints = make_hints();
    a.open(address_of(2), *hints);
    b.open(address_of(3), *hints);
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_EQ(fi_close(&b.av->fid), 0);
    fi_av_attr attr{};
    attr.flags = flags;
    ASSERT_EQ(fi_av_open(b.domain, &attr, &b.av, nullptr), 0);
    a.open_endpoint();
    b.open_endpoint();
    ASSERT_FALSE(HasFatalFailure());
    to_b = a.insert(b);
  }
  fi_addr_t source_of_message() {
    EXPECT_EQ(fi_recv(b.ep, nullptr, 0, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    EXPECT_EQ(fi_inject(a.ep, nullptr, 0, to_b), 0);
    return wait_for(b).source;
  }
  int set_user_id(fi_addr_t address, fi_addr_t id, std::uint64_t flags = 0) {
    const auto* ops = static_cast<const NewerOps*>(b.av->ops);
    EXPECT_GE(ops->size, sizeof(NewerOps));
    return ops->set_user_id(b.av, address, id, flags);
  }
};

// Covers: FI-66
TEST_F(UserIdTest, identifier_of_insertion__is_what_completions_say) {
  open_with(0);
  fi_addr_t address = 0x1234'5678'9abc;
  ASSERT_EQ(fi_av_insert(b.av, a.name.data(), 1, &address, kAvUserId, nullptr), 1);
  EXPECT_EQ(address, 0u) << "operations go on to use the address";
  EXPECT_EQ(source_of_message(), 0x1234'5678'9abcu);
  EXPECT_EQ(fi_send(b.ep, nullptr, 0, nullptr, address, nullptr), 0);
  EXPECT_EQ(fi_av_insert(b.av, a.name.data(), 1, nullptr, kAvUserId, nullptr), -FI_EINVAL);
  EXPECT_EQ(set_user_id(address, 5), -FI_EINVAL) << "not opened for that";
}

// Covers: FI-66
TEST_F(UserIdTest, vector_opened_for_identifiers__has_none_until_they_are_set) {
  open_with(kAvUserId);
  fi_addr_t address = 77;
  EXPECT_EQ(fi_av_insert(b.av, a.name.data(), 1, &address, kAvUserId, nullptr), -FI_EINVAL);
  ASSERT_EQ(fi_av_insert(b.av, a.name.data(), 1, &address, 0, nullptr), 1);
  EXPECT_EQ(source_of_message(), FI_ADDR_NOTAVAIL);
  EXPECT_EQ(set_user_id(address, 42), 0);
  EXPECT_EQ(source_of_message(), 42u);
  EXPECT_EQ(set_user_id(address, 43), 0);
  EXPECT_EQ(source_of_message(), 43u);
  EXPECT_EQ(set_user_id(address + 1, 44), -FI_EINVAL);
  EXPECT_EQ(set_user_id(address, 44, 1), -FI_EINVAL);
}

TEST_F(UserIdTest, sender_inserted_several_times__is_called_by_its_oldest_entry_that_is_left) {
  open_with(0);
  fi_addr_t at[4];
  for (fi_addr_t& one : at) ASSERT_EQ(fi_av_insert(b.av, a.name.data(), 1, &one, 0, nullptr), 1);
  EXPECT_EQ(source_of_message(), at[0]);
  ASSERT_EQ(fi_av_remove(b.av, &at[2], 1, 0), 0);
  EXPECT_EQ(source_of_message(), at[0]);
  ASSERT_EQ(fi_av_remove(b.av, &at[0], 1, 0), 0);
  EXPECT_EQ(source_of_message(), at[1]);
  ASSERT_EQ(fi_av_insert(b.av, a.name.data(), 1, &at[0], 0, nullptr), 1);
  EXPECT_EQ(source_of_message(), at[1]);
  ASSERT_EQ(fi_av_remove(b.av, &at[1], 1, 0), 0);
  EXPECT_EQ(source_of_message(), at[3]);
  ASSERT_EQ(fi_av_remove(b.av, &at[3], 1, 0), 0);
  EXPECT_EQ(source_of_message(), at[0]);
  ASSERT_EQ(fi_av_remove(b.av, &at[0], 1, 0), 0);
  EXPECT_EQ(source_of_message(), FI_ADDR_NOTAVAIL);
}

/// Without either, and for the next entry at an index that was free, the identifier is the address.
// Covers: FI-66
TEST_F(UserIdTest, entry_without_identifier__is_called_by_its_address) {
  open_with(0);
  fi_addr_t address = 99;
  ASSERT_EQ(fi_av_insert(b.av, a.name.data(), 1, &address, kAvUserId, nullptr), 1);
  ASSERT_EQ(fi_av_remove(b.av, &address, 1, 0), 0);
  ASSERT_EQ(fi_av_insert(b.av, a.name.data(), 1, &address, 0, nullptr), 1);
  EXPECT_EQ(source_of_message(), address);
}

}  // namespace
}  // namespace uet::provider::testing
