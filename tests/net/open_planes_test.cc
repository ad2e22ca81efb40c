// Planes are opened one by one, and a thread can sleep on all of them at once.

#include "lib/ports/open_planes.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/net/port_wrapper.h"
#include "tests/net/ip_port_fixture.h"

namespace uet::ports {

namespace {

using net::PortRequest;

/// A port whose descriptor the test makes readable; "deaf" ports have none.
class RingingPort final : public net::PortWrapper {
 public:
  RingingPort(std::unique_ptr<Port> inner, bool is_deaf)
      : PortWrapper(std::move(inner)), fd_(is_deaf ? -1 : eventfd(0, EFD_NONBLOCK)) {}
  ~RingingPort() override {
    if (fd_ >= 0) close(fd_);
  }
  int wakeup_fd() const override { return fd_; }

 private:
  int fd_;
};

/// What the opening function saw and made, one entry for each plane.
std::vector<PortRequest> requests;
std::vector<int> bells;

std::unique_ptr<net::Port> open_one(const PortRequest& request, base::Trace& trace,
                                    std::string& error) {
  requests.push_back(request);
  if (request.spec == "absent") {
    error = "there is no such device";
    return nullptr;
  }
  net::IpPortConfig config;
  config.name = request.spec;
  config.address =
      request.address == net::FabricAddress() ? net::address("10.0.0.1") : request.address;
  auto device = std::make_unique<net::MemoryDevice>(
      net::MacAddress{2, 0, 0, 0, 0, static_cast<std::uint8_t>(request.plane)}, 64, 1500);
  auto port = std::make_unique<RingingPort>(
      std::make_unique<net::IpPort>(std::move(device), config, trace), request.spec == "deaf");
  bells.push_back(port->wakeup_fd());
  return port;
}

class OpenPlanesTest : public testing::Test {
 protected:
  OpenPlanesTest() {
    requests.clear();
    bells.clear();
  }
  std::unique_ptr<net::Port> open(const std::vector<std::string>& planes) {
    return open_planes(PortRequest{}, planes, open_one, trace_, error_);
  }
  static bool is_readable(int fd) {
    pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
    return poll(&p, 1, 0) == 1;
  }

  base::Trace trace_;
  std::string error_;
};

TEST_F(OpenPlanesTest, any_plane_wakes_who_sleeps) {
  const auto port = open({"one", "two", "three"});
  ASSERT_NE(port, nullptr) << error_;
  const int fd = port->wakeup_fd();
  ASSERT_GE(fd, 0);
  EXPECT_FALSE(is_readable(fd));
  for (const int bell : bells) {
    eventfd_write(bell, 1);
    EXPECT_TRUE(is_readable(fd));
    eventfd_t rings = 0;
    eventfd_read(bell, &rings);
    EXPECT_FALSE(is_readable(fd)) << "it is about what waits now, not about what has waited";
  }
}

TEST_F(OpenPlanesTest, no_sleep_while_one_plane_cannot_wake) {
  const auto port = open({"one", "deaf"});
  ASSERT_NE(port, nullptr) << error_;
  EXPECT_LT(port->wakeup_fd(), 0);
}

TEST_F(OpenPlanesTest, all_planes_have_the_address_of_the_first) {
  const auto port = open({"one", "two"});
  ASSERT_NE(port, nullptr) << error_;
  ASSERT_EQ(requests.size(), 2u);
  for (unsigned p = 0; p < 2; ++p) {
    EXPECT_EQ(requests[p].plane, p);
    EXPECT_EQ(requests[p].planes, 2u);
  }
  EXPECT_EQ(requests[1].address, net::address("10.0.0.1"));
  EXPECT_EQ(port->facts().planes, 2u);
}

TEST_F(OpenPlanesTest, a_plane_that_is_not_there_is_an_error) {
  EXPECT_EQ(open({"one", "absent", "three"}), nullptr);
  EXPECT_EQ(error_, "there is no such device");
  EXPECT_EQ(requests.size(), 2u) << "nothing is opened for nothing";
}

}  // namespace

}  // namespace uet::ports
