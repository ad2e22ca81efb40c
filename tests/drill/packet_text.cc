#include "tests/drill/packet_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/drill/headers.h"

namespace uet::drill {

namespace {

constexpr std::uint8_t kPayloadByte = 0x42;

std::string no_such_header(std::string_view name) {
  return fmt::format("there is no header '{}': {}", name, fmt::join(header_names(), " "));
}

bool is_named(Words words, std::size_t from, std::string_view field) {
  for (std::size_t i = from; i < words.size() && words[i] != "/"; ++i)
    if (words[i].starts_with(std::string(field) + "=")) return true;
  return false;
}

/// Takes a packet apart, one word of the script after the other.
class Matcher {
 public:
  Matcher(const net::TxPacket& packet, Variables& variables)
      : packet_(packet), bytes_(std::as_const(packet.packet).bytes()), variables_(variables) {}

  std::string run(Words words) {
    for (std::size_t i = 0; i < words.size() && why_.empty(); ++i) {
      const std::string& word = words[i];
      if (word == "/") continue;
      if (word == "payload")
        match_payload(words, ++i);
      else if (word.find('=') == std::string::npos)
        match_header(words, i);
      else
        match_field(word);
    }
    return why_;
  }

 private:
  void match_payload(Words words, std::size_t at) {
    const auto wanted =
        at < words.size() ? variables_.read(words[at], why_) : std::optional<std::uint64_t>{};
    if (wanted && bytes_.size() != *wanted)
      why_ = fmt::format("{} bytes of payload", bytes_.size());
    bytes_ = {};
  }

  void match_header(Words words, std::size_t at) {
    header_ = find_header(words[at]);
    if (header_ == nullptr) {
      why_ = no_such_header(words[at]);
      return;
    }
    const auto found = header_->decode(bytes_);
    if (!found) {
      why_ = fmt::format("too short for {}", words[at]);
      return;
    }
    found_ = *found;
    bytes_ = bytes_.subspan(header_->size());
    // What makes the header what it is, unless the script says otherwise.
    for (const char* const field : {"type", "syn", "som"}) {
      if (!header_->has_field(field) || is_named(words, at + 1, field)) continue;
      if (found_.at(field) != header_->defaults().find(field)->second)
        why_ = fmt::format("not {}: {} is {}", words[at], field, found_.at(field));
    }
  }

  void match_field(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string text = word.substr(equals + 1);
    std::uint64_t is = 0;
    if (header_ == nullptr) {
      if (name == "entropy") {
        is = packet_.entropy;
      } else if (name == "dscp") {
        is = packet_.tos.dscp();
      } else if (name == "to") {
        const auto wanted = variables_.read(text, why_);
        if (wanted && packet_.destination != DrillPort::address_of(*wanted))
          why_ = "it goes to another host";
        return;
      } else {
        why_ = "a header must come before its fields";
        return;
      }
    } else if (!header_->has_field(name)) {
      why_ = fmt::format("{} has no field '{}'", header_->name(), name);
      return;
    } else {
      is = found_.at(name);
    }
    if (text.starts_with("?")) return variables_.set(text.substr(1), is);
    const bool differs = text.starts_with("!");
    const auto wanted = variables_.read(std::string_view(text).substr(differs ? 1 : 0), why_);
    if (!wanted) return;
    // Compare what the field can hold: -1 is 0xffff in 16 bits.
    std::uint64_t as_field = *wanted;
    if (header_ != nullptr)
      as_field = header_->decode(header_->encode({{name, *wanted}}))->at(name);
    if (differs ? is == as_field : is != as_field)
      why_ = fmt::format("{} is {} ({:#x}), {} {}", name, is, is,
                         differs ? "as it should not be:" : "not", as_field);
  }

  const net::TxPacket& packet_;
  std::span<const std::uint8_t> bytes_;
  Variables& variables_;
  const Header* header_ = nullptr;
  FieldValues found_;
  std::string why_;
};

}  // namespace

std::vector<std::uint8_t> build_packet(Words words, const Variables& variables,
                                       std::string& why_not) {
  std::vector<std::uint8_t> packet;
  const Header* header = nullptr;
  FieldValues fields;
  const auto flush = [&] {
    if (header == nullptr) return;
    const auto bytes = header->encode(fields);
    packet.insert(packet.end(), bytes.begin(), bytes.end());
    header = nullptr;
    fields.clear();
  };
  for (std::size_t i = 0; i < words.size() && why_not.empty(); ++i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    if (word == "/") {
      flush();
    } else if (word == "payload") {
      flush();
      const auto n = ++i < words.size() ? variables.read(words[i], why_not) : std::nullopt;
      packet.insert(packet.end(), n.value_or(0), kPayloadByte);
    } else if (word == "cut") {  // only the first BYTES of what stands before
      flush();
      const auto n = ++i < words.size() ? variables.read(words[i], why_not) : std::nullopt;
      packet.resize(std::min<std::size_t>(packet.size(), n.value_or(0)));
    } else if (equals == std::string::npos) {
      flush();
      header = find_header(word);
      if (header == nullptr) why_not = no_such_header(word);
    } else {
      const std::string name = word.substr(0, equals);
      if (header == nullptr || !header->has_field(name)) {
        why_not = fmt::format("there is no field '{}' here", name);
      } else {
        fields[name] =
            variables.read(std::string_view(word).substr(equals + 1), why_not).value_or(0);
      }
    }
  }
  flush();
  return packet;
}

std::string match_packet(Words words, const net::TxPacket& packet, Variables& variables) {
  return Matcher(packet, variables).run(words);
}

std::string show_packet(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < 2) return "too short";
  const unsigned type = bytes[0] >> 3;
  for (const std::string_view name : header_names()) {
    const Header* h = find_header(name);
    const auto values = h->decode(bytes);
    if (!values || !h->has_field("type") || !values->contains("type")) continue;
    if (h->defaults().find("type")->second != type) continue;
    if (h->has_field("syn") && values->at("syn") != h->defaults().find("syn")->second) continue;
    std::string s = fmt::format("{} bytes, {}", bytes.size(), name);
    for (const auto& [field, v] : *values) s += fmt::format(" {}={}", field, v);
    return s;
  }
  return fmt::format("{} bytes of type {}", bytes.size(), type);
}

}  // namespace uet::drill
