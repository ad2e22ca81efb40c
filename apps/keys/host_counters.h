/// The counters of a key file's keys on this host: made for keys that are new here, carried along to another folder, and never begun anew.
/// [TSS 7.6]
#pragma once

#include <string>
#include <vector>

#include "keys/key_file.h"
#include "keys/prepared_keys.h"

namespace uet::apps::keys {

/// Both name one folder, which need not be there.
bool is_same_folder(const std::string& a, const std::string& b);

/// Where this host keeps the counters of keys of the file, when that is not where the file says: a copy says where another host has them.
/// Else empty.
std::string folder_of_host(const uet::keys::KeyFile& file, const uet::keys::PreparedKeys& known);

struct Prepared {
  int made = 0, moved = 0;
  std::string moved_from;
  std::string notes;  ///< lines for the operator
  std::string lost;   ///< why endpoints cannot send under the key of a domain; mostly empty
};
/// Makes or finds the state of every key, in the folder of `file`. `before`: the folder that the file named so far; `never_sent`: the names
/// of keys under which, the operator says, this host never sent.
base::Result<Prepared, std::string> prepare_counters(const uet::keys::KeyFile& file,
                                                     const std::string& before,
                                                     uet::keys::PreparedKeys& known,
                                                     const std::vector<std::string>& never_sent);

/// Keys that this host had, whether or not a command of before wrote it down: those of `file` with state, and with `has_all` all of
/// them. Empty, or what went wrong.
std::string remember_keys(const uet::keys::KeyFile& file, uet::keys::PreparedKeys& known,
                          bool has_all);

/// What there is to do about a key, named as in the output, whose state is not there any more.
std::string why_lost(const std::string& key, const std::string& folder);

}  // namespace uet::apps::keys
