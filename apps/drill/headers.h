/// Any declared header by name: for scripts that write and read packets field by field.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace uet::drill {

using FieldValues = std::map<std::string, std::uint64_t, std::less<>>;

/// One header of lib/wire, usable without its type.
class Header {
 public:
  virtual ~Header() = default;
  virtual std::string_view name() const = 0;
  virtual std::size_t size() const = 0;
  virtual bool has_field(std::string_view field) const = 0;
  /// Decodes the first size() bytes. Empty when they are too few.
  virtual std::optional<FieldValues> decode(std::span<const std::uint8_t> bytes) const = 0;
  /// Default values, overwritten by `fields`, which must all exist.
  virtual std::vector<std::uint8_t> encode(const FieldValues& fields) const = 0;
  /// What the fields have when they are not set: tells headers apart that share a type.
  virtual const FieldValues& defaults() const = 0;
};

/// By the name that the declaration gives it ("request_syn", "ack_cc_nscc", "standard_som1"...);
/// null when there is none.
const Header* find_header(std::string_view name);
std::vector<std::string_view> header_names();
bool has_field_somewhere(std::string_view field);

/// "any_ack" is every kind of ACK, "any_request" every Request that knows the peer's PDC, "any_request_syn" every one that
/// does not: RUD or ROD, with or without congestion state. "any_message" is each header that a message may begin with: standard,
/// medium or small.
bool is_header_family(std::string_view name);
/// True when a header of the family has this field.
bool family_has_field(std::string_view family, std::string_view field);
/// Which header of the family `bytes` begin with, behind one whose next_hdr is this (or that has none); null when none.
const Header* find_in_family(std::string_view family, std::optional<std::uint64_t> next_hdr,
                             std::span<const std::uint8_t> bytes);

/// The headers that a packet begins with, as far as they can be told. All of them fit.
std::vector<const Header*> tell_headers(std::span<const std::uint8_t> packet);
/// "nack" or "type 15".
std::string kind_of(std::span<const std::uint8_t> packet);
/// A number, with its name where the field has names.
std::string show_value(const Header& header, std::string_view field, std::uint64_t value);

}  // namespace uet::drill
