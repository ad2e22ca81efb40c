#include "apps/keys/document.h"

#include <cstdio>

#include "keys/counter_state.h"

namespace uet::apps::keys {

using namespace uet::keys;  // NOLINT: this file is about nothing else

int failed(const std::string& why) {
  std::fprintf(stderr, "uet-keys: %s\n", why.c_str());
  return 1;
}

base::Result<Document, std::string> load(const std::string& path) {
  auto text = read_secret(path);
  if (!text) return text.error();
  auto parsed = parse_key_file(text->text, folder_of(path));
  if (!parsed) return path + ": " + parsed.error();
  return Document{parse_secret(text->text), std::move(*parsed)};
}

std::string store(const std::string& path, const SecretJson& json, bool may_replace) {
  SecretText text = json.dump(2);
  text += '\n';
  const auto checked = parse_key_file(text, folder_of(path));
  if (!checked) return path + " would be wrong: " + checked.error();
  return write_secret(path, text, may_replace);
}

base::Result<Chosen, std::string> choose(Document& doc, std::optional<std::uint32_t> sdi) {
  if (!sdi && doc.parsed.domains.size() != 1)
    return std::string("the file has several secure domains: say which with --sdi");
  for (std::size_t i = 0; i < doc.parsed.domains.size(); ++i)
    if (!sdi || doc.parsed.domains[i].sdi == *sdi)
      return Chosen{&doc.json["secure_domains"][i], &doc.parsed.domains[i]};
  return std::string("the file has no secure domain with this SDI");
}

SecretText plain(const std::string& text) {
  return {text.begin(), text.end()};
}

SecretText hex_number(std::uint64_t n, int digits) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%0*llx", digits, static_cast<unsigned long long>(n));
  return text;
}

std::string key_name(const tss::KeyConfig& key) {
  return short_name(tss::fingerprint_of(key.key));
}

}  // namespace uet::apps::keys
