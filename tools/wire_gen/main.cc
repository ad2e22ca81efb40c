/// Writes the Wireshark plug-in, the scapy layers and a table of field names from the declared
/// headers.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "lib/wire/header_type.h"
#include "tools/wire_gen/wireshark_names.h"

namespace uet::gen {
namespace {

using wire::EnumEntry;
using wire::FieldInfo;
using wire::FieldKind;

std::string in_quotes(std::string_view text) {
  return '"' + std::string(text) + '"';
}

/// Members of a Lua or Python table of value names.
std::string value_names(std::span<const EnumEntry> entries, const char* open, const char* close) {
  std::ostringstream out;
  for (const EnumEntry& e : entries) out << open << e.value << close << in_quotes(e.name) << ", ";
  return out.str();
}

// Wireshark
// ----------------------------------------------------------------------------------------------------------

/// The constructor of a ProtoField that holds `info`.
std::string lua_type(const FieldInfo& info) {
  switch (info.kind) {
    case FieldKind::kBool:
      return "bool";
    case FieldKind::kSigned:
      return "int16";
    case FieldKind::kBytes:
    case FieldKind::kWide:
      return "bytes";
    default:
      break;
  }
  return info.width <= 8    ? "uint8"
         : info.width <= 16 ? "uint16"
         : info.width <= 24 ? "uint24"
         : info.width <= 32 ? "uint32"
                            : "uint64";
}

std::string lua_field_constructor(const std::string& name, const FieldInfo& info) {
  const std::string type = lua_type(info);
  std::string out = "ProtoField." + type + "(" + in_quotes(name) + ", " + in_quotes(info.name);
  if (type == "bool")
    out += ", base.NONE, nil, nil";
  else if (type == "bytes")
    out += ", base.NONE";
  else if (info.kind == FieldKind::kEnum)
    out += ", base.DEC, {" + value_names(info.entries, "[", "]=") + "}, nil";
  else
    out += std::string(", ") +
           (info.width > 16 && !info.is_psn && info.kind != FieldKind::kSigned ? "base.DEC_HEX"
                                                                               : "base.DEC") +
           ", nil, nil";
  return out + ", " + in_quotes(info.meaning) + ")";
}

/// Widest declaration of each filter name: headers that share a name must share the field.
std::map<std::string, FieldInfo> lua_fields() {
  std::map<std::string, FieldInfo> fields;
  for (const wire::HeaderType& type : wire::uet_header_types()) {
    for (const FieldInfo& info : type.fields) {
      if (info.is_reserved) continue;
      const auto [it, is_new] = fields.emplace(wireshark_name(type.name, info.name), info);
      if (!is_new && info.width > it->second.width) it->second = info;
    }
  }
  return fields;
}

void write_lua(std::ostream& out, const std::string& tree) {
  out << "-- Ultra Ethernet Transport for Wireshark 4.0. Generated from the header declarations; "
         "do not edit.\n"
         "-- Put it into the personal Lua plug-in folder, or use: tshark -X lua_script:uet.lua\n\n"
         "-- An installed plug-in is read before one that is named on the command line, and a "
         "protocol has one dissector.\n"
         "if uet_plugin then\n"
         "  io.stderr:write(\"uet.lua: the UET plug-in that was read first stays in use\\n\")\n"
         "  return\n"
         "end\n"
         "uet_plugin = true\n"
         "local uet = Proto(\"uet\", \"Ultra Ethernet Transport\")\n"
         "local F = {}  -- filter name -> ProtoField\n";
  for (const auto& [name, info] : lua_fields())
    out << "F[" << in_quotes(name) << "] = " << lua_field_constructor(name, info) << "\n";
  out << "\n-- Declared headers: {filter name, bit offset, width, kind}.\nlocal H = {}\n";
  for (const wire::HeaderType& type : wire::uet_header_types()) {
    out << "H." << type.name << " = {size = " << type.size << ", layer = " << in_quotes(type.layer)
        << ", fields = {\n";
    for (const FieldInfo& info : type.fields) {
      if (info.is_reserved) continue;
      const char* kind = info.kind == FieldKind::kSigned ? "signed"
                         : info.kind == FieldKind::kBool ? "bool"
                         : info.width > 64               ? "wide"
                                                         : "number";
      out << "  {" << in_quotes(wireshark_name(type.name, info.name)) << ", " << info.offset << ", "
          << info.width << ", " << in_quotes(kind) << ", " << in_quotes(info.name) << "},\n";
    }
    out << "}}\n";
  }
  out << "local PDS_TYPE = {" << value_names(wire::enum_entries<wire::PdsType>(), "[", "]=")
      << "}\nlocal NEXT_HDR = {" << value_names(wire::enum_entries<wire::NextHdr>(), "[", "]=")
      << "}\nlocal CTL_TYPE = {" << value_names(wire::enum_entries<wire::ControlType>(), "[", "]=")
      << "}\nlocal OPCODE = {" << value_names(wire::enum_entries<wire::SesOpcode>(), "[", "]=")
      << "}\nlocal NACK_CODE = {" << value_names(wire::enum_entries<wire::NackCode>(), "[", "]=")
      << "}\nlocal RETURN_CODE = {"
      << value_names(wire::enum_entries<wire::ReturnCode>(), "[", "]=") << "}\n\n"
      << tree;
}

// scapy
// --------------------------------------------------------------------------------------------------------------

/// "request_syn" -> "UetRequestSyn"
std::string class_name(std::string_view form) {
  std::string out = "Uet";
  bool upper = true;
  for (const char c : form) {
    if (c == '_') {
      upper = true;
      continue;
    }
    out += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    upper = false;
  }
  return out;
}

/// scapy's Packet has a member `payload` of its own, so the field of NACK and CONTROL goes by
/// another name there.
std::string scapy_name(std::string_view field) {
  return std::string(field == "payload" ? "payload_word" : field);
}

void write_scapy(std::ostream& out, const std::string& tree) {
  out << "# Ultra Ethernet Transport for scapy. Generated from the header declarations; do not "
         "edit.\n"
         "# usage: load_contrib is not needed; put this file on the path and: from uet import *\n\n"
         "from scapy.fields import BitEnumField, BitField, Field\n"
         "from scapy.layers.inet import IP, UDP\n"
         "from scapy.layers.inet6 import IPv6\n"
         "from scapy.packet import Packet, Raw, bind_layers\n\n\n"
         "class UetSignedField(Field):\n"
         "    \"\"\"A signed 16-bit field.\"\"\"\n\n"
         "    def __init__(self, name, default):\n"
         "        Field.__init__(self, name, default, \"h\")\n\n\n"
         "class UetHeader(Packet):\n"
         "    \"\"\"Base of all UET headers.\"\"\"\n";
  for (const wire::HeaderType& type : wire::uet_header_types()) {
    out << "\n\nclass " << class_name(type.name) << "(UetHeader):\n    name = "
        << in_quotes(std::string("UET ") + std::string(type.layer) + " " + std::string(type.name))
        << "\n    form = " << in_quotes(type.name) << "\n    size = " << type.size
        << "\n    fields_desc = [\n";
    // A newly made header holds a type of its own, and 1 where a form needs it.
    for (const auto& [info, value, bytes, bytes_size] : type.defaults()) {
      out << "        ";
      if (info.kind == FieldKind::kSigned)
        out << "UetSignedField(" << in_quotes(scapy_name(info.name)) << ", 0),\n";
      else if (info.kind == FieldKind::kEnum)
        out << "BitEnumField(" << in_quotes(scapy_name(info.name)) << ", " << value.lo << ", "
            << info.width << ", {" << value_names(info.entries, "", ": ") << "}),\n";
      else
        out << "BitField(" << in_quotes(scapy_name(info.name)) << ", " << value.lo << ", "
            << info.width << "),\n";
    }
    out << "    ]\n";
  }
  out << "\n\n" << tree;
}

// The table of names
// -------------------------------------------------------------------------------------------------

void write_names(std::ostream& out) {
  nlohmann::ordered_json table;
  for (const wire::HeaderType& type : wire::uet_header_types()) {
    nlohmann::ordered_json fields;
    for (const FieldInfo& info : type.fields) {
      if (!info.is_reserved)
        fields[std::string(info.name)] = {{"offset", info.offset},
                                          {"width", info.width},
                                          {"wireshark", wireshark_name(type.name, info.name)},
                                          {"scapy", scapy_name(info.name)}};
    }
    table[std::string(type.name)] = {{"layer", type.layer},
                                     {"size", type.size},
                                     {"scapy", class_name(type.name)},
                                     {"fields", fields}};
  }
  out << table.dump(1) << "\n";
}

int run(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (!((what == "names" && argc == 3) || ((what == "lua" || what == "scapy") && argc == 4))) {
    std::cerr << "usage: uet-wire-gen names OUTPUT | lua TREE OUTPUT | scapy TREE OUTPUT\n";
    return 2;
  }
  std::string tree;
  if (argc == 4) {
    std::ifstream in(argv[2]);
    tree.assign(std::istreambuf_iterator<char>(in), {});
    if (tree.empty()) {
      std::cerr << "uet-wire-gen: cannot read " << argv[2] << "\n";
      return 1;
    }
  }
  std::ofstream out(argv[argc - 1]);
  if (what == "lua")
    write_lua(out, tree);
  else if (what == "scapy")
    write_scapy(out, tree);
  else
    write_names(out);
  return out.flush() ? 0 : 1;
}

}  // namespace
}  // namespace uet::gen

int main(int argc, char** argv) {
  return uet::gen::run(argc, argv);
}
