#include "apps/drill/packet_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "apps/drill/headers.h"
#include "apps/drill/payload_text.h"

namespace uet::drill {

namespace {

std::string no_such_header(std::string_view name) {
  return fmt::format("there is no header '{}': any_ack any_request any_request_syn any_message {}",
                     name, fmt::join(header_names(), " "));
}

bool is_named(Words words, std::size_t from, std::string_view field) {
  for (std::size_t i = from; i < words.size() && words[i] != "/"; ++i)
    if (words[i].starts_with(std::string(field) + "=")) return true;
  return false;
}

/// Takes a packet apart, one word of the script after the other.
class Matcher {
 public:
  Matcher(const SeenPacket& packet, Variables& variables)
      : packet_(packet), bytes_(packet.bytes), variables_(variables) {}

  Match run(Words words) {
    for (std::size_t i = 0; i < words.size() && match_.error.empty() && match_.is_kind; ++i) {
      const std::string& word = words[i];
      if (word == "/") continue;
      if (word == "payload")
        match_payload(words, i);
      else if (word.find('=') == std::string::npos)
        match_header(words, i);
      else
        match_field(word);
    }
    return match_;
  }

 private:
  void match_payload(Words words, std::size_t& i) {
    const auto wanted = PayloadText::read(words, i, variables_, match_.error);
    if (!wanted) return;
    const std::string size = fmt::to_string(wanted->bytes);
    if (bytes_.size() != wanted->bytes)
      match_.differences.push_back({"payload bytes", size, fmt::to_string(bytes_.size())});
    else if (const auto at = wanted->first_wrong(bytes_))
      match_.differences.push_back({fmt::format("payload byte {}", *at),
                                    fmt::format("{:#04x}", wanted->byte(*at)),
                                    fmt::format("{:#04x}", bytes_[*at])});
    bytes_ = {};
  }

  void is_other(std::string expected, std::string got) {
    match_.differences.push_back({"header", std::move(expected), std::move(got)});
    match_.is_kind = false;
  }

  void match_header(Words words, std::size_t at) {
    const std::string& name = words[at];
    const bool is_family = is_header_family(name);
    const auto next_hdr = found_.find("next_hdr");
    header_ =
        !is_family
            ? find_header(name)
            : find_in_family(
                  name, next_hdr == found_.end() ? std::nullopt : std::optional(next_hdr->second),
                  bytes_);
    may_lack_fields_ = name == "any_message";
    if (header_ == nullptr && is_family)
      return is_other(name, layers_.empty() ? kind_of(packet_.bytes) : "another header");
    if (header_ == nullptr) {
      match_.error = no_such_header(name);
      return;
    }
    const auto found = header_->decode(bytes_);
    if (!found) return is_other(name, fmt::format("only {} bytes", bytes_.size()));
    found_ = *found;
    bytes_ = bytes_.subspan(header_->size());
    layers_ += header_->name();
    if (is_family) {  // which carries an extension of later releases that is skipped
      const auto epsn = found_.find("flag_epsn");
      if (epsn != found_.end() && epsn->second != 0 && bytes_.size() >= 4)
        bytes_ = bytes_.subspan(4);
      return;
    }
    // What makes the header what it is, unless the script says otherwise.
    for (const char* const field : {"type", "syn", "som"}) {
      if (!header_->has_field(field) || is_named(words, at + 1, field)) continue;
      const std::uint64_t is = found_.at(field);
      const std::uint64_t wanted = header_->defaults().find(field)->second;
      if (is != wanted)
        is_other(fmt::format("{} ({}={})", name, field, show_value(*header_, field, wanted)),
                 fmt::format("{}={}", field, show_value(*header_, field, is)));
    }
  }

  void match_field(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string_view text = std::string_view(word).substr(equals + 1);
    std::uint64_t is = 0;
    if (header_ == nullptr) {
      if (name == "entropy") {
        is = packet_.entropy;
      } else if (name == "dscp") {
        is = packet_.tos.dscp();
      } else if (name == "to") {
        is = packet_.to;
      } else {
        match_.error = "a header must come before its fields";
        return;
      }
    } else if (name == "sacked") {
      return match_sacked(text);
    } else if (may_lack_fields_ && text.starts_with("?") && !header_->has_field(name) &&
               has_field_somewhere(name)) {
      return variables_.set(std::string(text.substr(1)), 0);
    } else if (!header_->has_field(name)) {
      if (!has_field_somewhere(name)) match_.error = fmt::format("no header has '{}'", name);
      match_.differences.push_back(
          {name, std::string(text), fmt::format("no such field in {}", header_->name())});
      return;
    } else {
      is = found_.at(name);
    }
    if (text.starts_with("?")) return variables_.set(std::string(text.substr(1)), is);
    compare(name, text, is);
  }

  /// What the SACK bitmap says of a PSN, wherever it begins: that it is there, or with ! nothing. [PDS 10.3]
  void match_sacked(std::string_view text) {
    const bool wants_nothing = text.starts_with("!");
    if (wants_nothing) text.remove_prefix(1);
    const auto psn = variables_.read(text, match_.error);
    if (!psn) return;
    const auto bitmap = found_.find("sack_bitmap");
    if (bitmap == found_.end()) {
      if (!wants_nothing)
        match_.differences.push_back(
            {"sacked", fmt::to_string(*psn), fmt::format("no SACK in {}", header_->name())});
      return;
    }
    const auto base =
        static_cast<std::uint32_t>(found_.at("cack_psn")) +
        static_cast<std::uint32_t>(static_cast<std::int16_t>(found_.at("sack_psn_offset")));
    const std::uint32_t bit = static_cast<std::uint32_t>(*psn) - base;
    const bool is_marked = bit < 64 && (bitmap->second >> bit & 1) != 0;
    if (is_marked == wants_nothing)
      match_.differences.push_back({"sacked", (wants_nothing ? "not " : "") + fmt::to_string(*psn),
                                    fmt::format("{:#x} from {}", bitmap->second, base)});
  }

  /// One of several values that `|` separates, or with ! none of them.
  void compare(const std::string& name, std::string_view text, std::uint64_t is) {
    const bool differs = text.starts_with("!");
    if (differs) text.remove_prefix(1);
    bool is_one = false;
    std::string wanted_text;
    while (true) {
      const std::size_t bar = text.find('|');
      const auto wanted = variables_.read(text.substr(0, bar), match_.error);
      if (!wanted) return;
      // Compare what the field can hold: -1 is 0xffff in 16 bits.
      const std::uint64_t as_field =
          header_ == nullptr ? *wanted
                             : header_->decode(header_->encode({{name, *wanted}}))->at(name);
      is_one |= is == as_field;
      if (!wanted_text.empty()) wanted_text += " or ";
      wanted_text += show(name, as_field);
      if (bar == std::string_view::npos) break;
      text.remove_prefix(bar + 1);
    }
    if (is_one == differs)
      match_.differences.push_back({name, (differs ? "not " : "") + wanted_text, show(name, is)});
  }

  std::string show(const std::string& field, std::uint64_t value) const {
    return header_ == nullptr ? fmt::to_string(value) : show_value(*header_, field, value);
  }

  const SeenPacket& packet_;
  std::span<const std::uint8_t> bytes_;
  Variables& variables_;
  const Header* header_ = nullptr;
  bool may_lack_fields_ = false;  ///< a header of any_message, of which some have no message_id
  FieldValues found_;
  std::string layers_;
  Match match_;
};

/// Reads the description of an expected packet without one: names and values that no packet can have are errors whatever
/// comes, and when nothing does.
class Checker {
 public:
  explicit Checker(const Variables& variables) : variables_(variables) {}

  std::string run(Words words) {
    if (words.empty()) return "which packet?";
    for (std::size_t i = 0; i < words.size() && error_.empty(); ++i) {
      const std::string& word = words[i];
      if (word == "/") continue;
      if (word == "payload")
        static_cast<void>(PayloadText::read(words, i, variables_, error_));
      else if (word.find('=') == std::string::npos)
        check_header(word);
      else
        check_field(word);
    }
    return error_;
  }

 private:
  void check_header(const std::string& name) {
    header_ = name;
    if (!is_header_family(name) && find_header(name) == nullptr) error_ = no_such_header(name);
  }

  void check_field(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string field = name == "sacked" ? "cack_psn" : name;
    std::string_view text = std::string_view(word).substr(equals + 1);
    if (header_.empty() && name != "entropy" && name != "dscp" && name != "to") {
      error_ = "a header must come before its fields";
    } else if (!header_.empty() && !has_field(field)) {
      error_ = has_field_somewhere(field) ? fmt::format("{} has no '{}'", header_, name)
                                          : fmt::format("no header has '{}'", name);
    } else if (text.starts_with("?")) {
      variables_.set(std::string(text.substr(1)), 0);
    } else {
      check_values(text);
    }
  }

  bool has_field(const std::string& field) const {
    return is_header_family(header_) ? family_has_field(header_, field)
                                     : find_header(header_)->has_field(field);
  }

  void check_values(std::string_view text) {
    if (text.starts_with("!")) text.remove_prefix(1);
    while (variables_.read(text.substr(0, text.find('|')), error_)) {
      const std::size_t bar = text.find('|');
      if (bar == std::string_view::npos) return;
      text.remove_prefix(bar + 1);
    }
  }

  Variables variables_;  ///< with those that the description itself remembers
  std::string header_;
  std::string error_;
};

/// Puts a packet together, one word of the script after the other.
class Builder {
 public:
  Builder(const Variables& variables, std::string& why_not)
      : variables_(variables), why_not_(why_not) {}

  std::vector<std::uint8_t> run(Words words) {
    for (std::size_t i = 0; i < words.size() && why_not_.empty(); ++i) {
      const std::string& word = words[i];
      if (word == "/") {
        flush();
      } else if (word == "payload") {
        flush();
        if (const auto payload = PayloadText::read(words, i, variables_, why_not_))
          for (std::size_t n = 0; n < payload->bytes; ++n) packet_.push_back(payload->byte(n));
      } else if (word == "cut") {  // only the first BYTES of what stands before
        flush();
        const auto n = ++i < words.size() ? variables_.read(words[i], why_not_) : std::nullopt;
        packet_.resize(std::min<std::size_t>(packet_.size(), n.value_or(0)));
      } else if (word.find('=') == std::string::npos) {
        flush();
        header_ = find_header(word);
        if (header_ == nullptr) why_not_ = no_such_header(word);
      } else {
        set_field(word);
      }
    }
    flush();
    return std::move(packet_);
  }

 private:
  void flush() {
    if (header_ == nullptr) return;
    const auto bytes = header_->encode(fields_);
    packet_.insert(packet_.end(), bytes.begin(), bytes.end());
    header_ = nullptr;
    fields_.clear();
  }

  void set_field(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (header_ == nullptr || !header_->has_field(name)) {
      why_not_ = fmt::format("there is no field '{}' here", name);
      return;
    }
    const std::string_view text = std::string_view(word).substr(equals + 1);
    const std::uint64_t value = variables_.read(text, why_not_).value_or(0);
    // What is reckoned wraps around as on the wire, and -1 is all ones.
    const std::uint64_t magnitude = text.starts_with("-") ? 0 - value : value;
    if (!text.starts_with("$") && !is_held(name, magnitude))
      why_not_ = fmt::format("{} does not fit into the field", word);
    fields_[name] = value;
  }

  bool is_held(const std::string& field, std::uint64_t value) const {
    return header_->decode(header_->encode({{field, value}}))->at(field) == value;
  }

  const Variables& variables_;
  std::string& why_not_;
  std::vector<std::uint8_t> packet_;
  const Header* header_ = nullptr;
  FieldValues fields_;
};

}  // namespace

std::vector<std::uint8_t> build_packet(Words words, const Variables& variables,
                                       std::string& why_not) {
  return Builder(variables, why_not).run(words);
}

std::string check_expected(Words words, const Variables& variables) {
  return Checker(variables).run(words);
}

Match match_packet(Words words, const SeenPacket& packet, Variables& variables) {
  return Matcher(packet, variables).run(words);
}

std::string text_of(const Match& match) {
  if (!match.error.empty()) return match.error;
  std::string text;
  for (const Difference& d : match.differences)
    text += fmt::format("{}{} is {}, not {}", text.empty() ? "" : "; ", d.field, d.got, d.expected);
  return text;
}

std::string show_packet(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < 2) return fmt::format("{} bytes, too short", bytes.size());
  std::string text = fmt::format("{} bytes", bytes.size());
  const auto headers = tell_headers(bytes);
  if (headers.empty()) return fmt::format("{} of type {}", text, bytes[0] >> 3);
  const char* separator = ", ";
  for (const Header* const h : headers) {
    text += fmt::format("{}{}", separator, h->name());
    const auto values = *h->decode(bytes);
    for (const auto& [field, v] : values)
      text += fmt::format(" {}={}", field, show_value(*h, field, v));
    bytes = bytes.subspan(h->size());
    separator = " / ";
  }
  return text;
}

}  // namespace uet::drill
