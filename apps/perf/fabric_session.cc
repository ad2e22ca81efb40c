#include "apps/perf/fabric_session.h"

#include <stdexcept>

namespace uet::perf {
namespace {

constexpr std::chrono::milliseconds kTellEvery{500};

}  // namespace

FabricSession::FabricSession(ControlChannel& control, Patience& patience,
                             const std::string& provider, bool ordered, std::size_t buffer_bytes)
    : FabricEndpoint(patience, provider, ordered, buffer_bytes,
                     [this](bool something_finished) { look_up(something_finished); }),
      control_(control) {
  exchange_addresses();
}

void FabricSession::exchange_addresses() {
  const nlohmann::json theirs = control_.exchange(
      {{"name", name()}, {"address", address_for_peers()}, {"key", key()}}, "the peer's endpoint");
  try {
    remote_address_ = theirs.at("address").get<std::uint64_t>();
    remote_key_ = theirs.at("key").get<std::uint64_t>();
    peer_ = add_peer(theirs.at("name").get<std::vector<std::uint8_t>>());
  } catch (const nlohmann::json::exception&) {
    throw ControlLost("the two sides run different versions of uet-perf");
  }
}

void FabricSession::look_up(bool something_finished) {
  // Writes and reads finish on one side only; the other one waits for a mark.
  if (const auto now = Patience::Clock::now(); something_finished && now - told_ > kTellEvery) {
    told_ = now;
    control_.send({{"alive", true}});
  }
  control_.look();
}

}  // namespace uet::perf
