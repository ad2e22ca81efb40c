/// A key file as the commands of uet-keys change it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "keys/key_file.h"
#include "keys/secret_json.h"

namespace uet::apps::keys {

/// Says why on standard error. The exit status.
int failed(const std::string& why);

/// The text, for changing, and what endpoints read in it.
struct Document {
  uet::keys::SecretJson json;
  uet::keys::KeyFile parsed;
};
base::Result<Document, std::string> load(const std::string& path);
/// Only what load() takes. Empty, or what went wrong.
std::string store(const std::string& path, const uet::keys::SecretJson& json, bool may_replace);

/// The domain that a command is about: its JSON and what was read from it.
struct Chosen {
  uet::keys::SecretJson* json = nullptr;
  const tss::DomainConfig* config = nullptr;
};
/// The one with this SDI, or the only one.
base::Result<Chosen, std::string> choose(Document& doc, std::optional<std::uint32_t> sdi);

uet::keys::SecretText plain(const std::string& text);
uet::keys::SecretText hex_number(std::uint64_t n, int digits);
std::string key_name(const tss::KeyConfig& key);

}  // namespace uet::apps::keys
