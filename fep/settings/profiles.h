/// Named sets of settings that come with the endpoint: FI_UET_CONFIG=profile:NAME.
#pragma once

#include <span>
#include <string_view>

namespace uet::fep {

struct Profile {
  struct Entry {
    std::string_view key, text;  ///< as in a configuration file
  };
  std::string_view name;
  std::string_view help;  ///< a sentence without its end
  std::span<const Entry> entries;
};

std::span<const Profile> profiles();

}  // namespace uet::fep
