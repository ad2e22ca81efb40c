#include "keys/json_fields.h"

#include <algorithm>
#include <charconv>

#include "keys/key_file.h"

namespace uet::keys {
namespace {

const SecretJson& nothing() {
  static const SecretJson empty = SecretJson::object();
  return empty;
}

}  // namespace

Fields::Fields(const SecretJson& object, std::string where, std::string& error)
    : object_(&object), where_(std::move(where)), error_(&error) {
  if (object.is_object()) return;
  fail("", "is not an object");
  object_ = &nothing();
}

std::string Fields::path(std::string_view name) const {
  if (where_.empty()) return std::string(name);
  return name.empty() ? where_ : where_ + "." + std::string(name);
}

void Fields::fail(std::string_view name, std::string_view why) {
  if (error_->empty()) *error_ = path(name) + ": " + std::string(why);
}

bool Fields::has(std::string_view name) const {
  return object_->contains(SecretText(name));
}

const SecretJson* Fields::find(std::string_view name) {
  asked_.emplace_back(name);
  const auto at = object_->find(SecretText(name));
  return at == object_->end() ? nullptr : &*at;
}

bool Fields::to_number(const SecretJson& value, std::string_view name, std::uint64_t max,
                       std::uint64_t& out) {
  std::uint64_t n = 0;
  bool ok = false;
  if (value.is_number_unsigned()) {
    n = value.get<std::uint64_t>();
    ok = true;
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const SecretText&>();
    if (text.starts_with("0x") && text.size() > 2 && text.size() <= 18) {
      const char* end = text.data() + text.size();
      ok = std::from_chars(text.data() + 2, end, n, 16).ptr == end;
    }
  }
  if (ok && n <= max) {
    out = n;
    return true;
  }
  fail(name,
       "is not a number from 0 to " + std::to_string(max) + " (decimal, or a text like \"0x1f\")");
  return false;
}

std::uint64_t Fields::number(std::string_view name, std::uint64_t fallback, std::uint64_t max) {
  std::uint64_t out = fallback;
  if (const SecretJson* value = find(name)) to_number(*value, name, max, out);
  return out;
}

bool Fields::flag(std::string_view name, bool fallback) {
  const SecretJson* value = find(name);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  fail(name, "is not true or false");
  return fallback;
}

std::string Fields::text(std::string_view name, std::string_view fallback) {
  const SecretJson* value = find(name);
  if (value == nullptr) return std::string(fallback);
  if (value->is_string()) {
    const auto& text = value->get_ref<const SecretText&>();
    return {text.begin(), text.end()};
  }
  fail(name, "is not a text");
  return {};
}

std::size_t Fields::choice(std::string_view name, std::string_view fallback,
                           std::initializer_list<std::string_view> words) {
  const std::string word = text(name, fallback);
  const auto at = std::find(words.begin(), words.end(), word);
  if (at != words.end()) return static_cast<std::size_t>(at - words.begin());
  std::string all;
  for (const std::string_view w : words) all += (all.empty() ? "" : ", ") + std::string(w);
  fail(name, "is not one of: " + all);
  return 0;
}

void Fields::secret(std::string_view name, std::span<std::uint8_t> out) {
  const SecretJson* value = find(name);
  if (value != nullptr && value->is_string() && from_hex(value->get_ref<const SecretText&>(), out))
    return;
  fail(name, "is not " + std::to_string(2 * out.size()) + " hexadecimal digits");
}

std::vector<std::uint64_t> Fields::numbers(std::string_view name, std::uint64_t max) {
  std::vector<std::uint64_t> out;
  const SecretJson* value = find(name);
  if (value == nullptr) return out;
  if (!value->is_array()) fail(name, "is not a list");
  for (const SecretJson& entry : *value) {
    std::uint64_t n = 0;
    if (to_number(entry, name, max, n)) out.push_back(n);
  }
  return out;
}

Fields Fields::object(std::string_view name, bool is_required) {
  const SecretJson* value = find(name);
  if (value == nullptr && is_required) fail(name, "is missing");
  return Fields(value == nullptr ? nothing() : *value, path(name), *error_);
}

std::vector<Fields> Fields::list(std::string_view name) {
  std::vector<Fields> out;
  const SecretJson* value = find(name);
  if (value == nullptr) return out;
  if (!value->is_array()) {
    fail(name, "is not a list");
    return out;
  }
  for (const SecretJson& entry : *value)
    out.emplace_back(entry, path(name) + "[" + std::to_string(out.size()) + "]", *error_);
  return out;
}

void Fields::finish() {
  for (const auto& [name, value] : object_->items()) {
    const std::string plain(name.begin(), name.end());
    if (std::find(asked_.begin(), asked_.end(), plain) == asked_.end())
      fail(plain, "is not a field of a key file");
  }
}

}  // namespace uet::keys
