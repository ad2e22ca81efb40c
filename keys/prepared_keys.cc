#include "keys/prepared_keys.h"

#include <filesystem>

#include "keys/file_access.h"
#include "keys/key_file.h"
#include "keys/secret_json.h"

namespace uet::keys {
namespace {

constexpr const char* kPreparedFormat = "uet-prepared/1";

SecretText text_of(const std::string& s) {
  return {s.begin(), s.end()};
}

}  // namespace

base::Result<PreparedKeys, std::string> PreparedKeys::read(const std::string& path) {
  PreparedKeys out(path + ".prepared");
  if (!version_of(out.path_)) return out;
  const auto file = read_secret(out.path_);
  if (!file) return file.error();
  const std::string damaged =
      out.path_ +
      ": is damaged: it says which keys this host had. Remove it only when their "
      "counters are all there (uet-keys check)";
  const SecretJson json = parse_secret(file->text);
  if (!json.is_object() || json.value("format", SecretJson()) != kPreparedFormat ||
      !json.contains("keys") || !json["keys"].is_object())
    return damaged;
  for (const auto& [name, folder] : json["keys"].items()) {
    tss::Fingerprint key{};
    if (!folder.is_string() || !from_hex(name, key)) return damaged;
    const auto& text = folder.get_ref<const SecretText&>();
    out.folders_[key] = std::string(text.begin(), text.end());
  }
  return out;
}

std::string PreparedKeys::folder_of(const tss::Fingerprint& key) const {
  const auto at = folders_.find(key);
  return at == folders_.end() ? "" : at->second;
}

void PreparedKeys::add(const tss::Fingerprint& key, const std::string& state_folder) {
  std::error_code none;
  const std::string absolute =
      std::filesystem::absolute(state_folder, none).lexically_normal().string();
  std::string& folder = folders_[key];
  is_changed_ |= folder != absolute;
  folder = absolute;
}

std::string PreparedKeys::go_back_to(const PreparedKeys& before) {
  folders_ = before.folders_;
  is_changed_ = true;
  return write();
}

std::string PreparedKeys::write() {
  if (!is_changed_) return "";
  SecretJson keys = SecretJson::object();
  for (const auto& [key, folder] : folders_) keys[to_hex(key)] = text_of(folder);
  SecretText text = SecretJson({{"format", kPreparedFormat}, {"keys", keys}}).dump(2);
  text += '\n';
  std::string why = write_secret(path_, text, true);
  is_changed_ = !why.empty();
  return why;
}

}  // namespace uet::keys
