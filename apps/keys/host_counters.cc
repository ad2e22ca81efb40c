#include "apps/keys/host_counters.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "keys/counter_state.h"
#include "keys/host_identity.h"

namespace uet::apps::keys {
namespace {

using namespace uet::keys;  // NOLINT: this file is about nothing else

bool is_live(const std::string& folder, const tss::Fingerprint& key) {
  const CounterState state(folder);
  if (folder.empty() || state.is_missing(key)) return false;
  const auto status = state.status(key);
  return status && !status->is_retired;
}

/// Why counters in a folder are of no use; empty when they are.
std::string why_dead(const std::string& folder, const tss::Fingerprint& key) {
  const auto status = CounterState(folder).status(key);
  if (!status) return " that cannot be used (" + status.error() + ")";
  return status->is_retired ? ", which was retired there" : "";
}

/// Each once: a server's key may serve several domains.
std::vector<tss::Fingerprint> keys_of(const KeyFile& file) {
  std::vector<tss::Fingerprint> out;
  for (const tss::DomainConfig& d : file.domains) {
    for (const tss::KeyConfig& k : d.keys) {
      const auto print = tss::fingerprint_of(k.key);
      if (std::ranges::find(out, print) == out.end()) out.push_back(print);
    }
  }
  return out;
}

/// A key without counters here, and why.
struct Unusable {
  tss::Fingerprint key;
  std::string why;
};

/// Of the first domain that cannot send.
std::string why_not_sending(const KeyFile& file, const std::vector<Unusable>& unusable) {
  for (const tss::DomainConfig& d : file.domains) {
    for (const tss::KeyConfig& k : d.keys) {
      const auto at = std::ranges::find(unusable, tss::fingerprint_of(k.key), &Unusable::key);
      if (k.an == d.tx_an && at != unusable.end()) return at->why;
    }
  }
  return "";
}

/// True where the folder says that it is of a host with another SSI or server id, whose counters are no concern of this one.
bool is_of_another_host(const std::string& folder, const KeyFile& file,
                        const tss::Fingerprint& key) {
  return std::ranges::all_of(file.domains, [&](const tss::DomainConfig& d) {
    const bool has_key = std::ranges::any_of(
        d.keys, [&](const auto& k) { return tss::fingerprint_of(k.key) == key; });
    if (!has_key) return true;
    const auto recorded = recorded_identity(folder, d.sdi);
    return needs_identity(d) && recorded && *recorded && **recorded != identity_in(d);
  });
}

}  // namespace

bool is_same_folder(const std::string& a, const std::string& b) {
  std::error_code none;
  if (std::filesystem::equivalent(a, b, none)) return true;
  const auto plain_path = [](const std::string& name) {
    std::error_code ignored;
    auto path = std::filesystem::absolute(name, ignored).lexically_normal();
    return path.has_filename() ? path : path.parent_path();
  };
  return plain_path(a) == plain_path(b);
}

std::string folder_of_host(const KeyFile& file, const PreparedKeys& known) {
  for (const tss::Fingerprint& key : keys_of(file)) {
    const std::string folder = known.folder_of(key);
    if (is_live(folder, key))
      return is_same_folder(folder, file.state_folder) ? std::string() : folder;
  }
  return "";
}

std::string why_lost(const std::string& key, const std::string& folder) {
  return "this host had counters for key " + key + ", and they are not in " + folder +
         " any more. Begun anew they would repeat, and reveal what was encrypted. If they are in "
         "another folder, or on a disk that is not mounted, have them there; else send under a new "
         "key: \"uet-keys rotate\" on one host, copy and install on all, \"uet-keys rotate "
         "--switch\" on each. Only if this host never sent under the key: uet-keys install "
         "--never-sent-here " +
         key;
}

std::string remember_keys(const KeyFile& file, PreparedKeys& known, bool has_all) {
  const CounterState state(file.state_folder);
  for (const tss::Fingerprint& key : keys_of(file))
    if (!state.is_missing(key) || (has_all && !known.has(key))) known.add(key, file.state_folder);
  return known.write();
}

base::Result<Prepared, std::string> prepare_counters(const KeyFile& file, const std::string& before,
                                                     PreparedKeys& known,
                                                     const std::vector<std::string>& never_sent) {
  Prepared out;
  CounterState state(file.state_folder);
  std::vector<tss::Fingerprint> to_make;
  std::vector<Unusable> unusable;
  std::string not_claimed;
  for (const tss::Fingerprint& key : keys_of(file)) {
    const std::string name = short_name(key), had = known.folder_of(key);
    if (is_live(had, key) && !is_same_folder(had, file.state_folder)) {
      if (std::string why = state.take_over(key, CounterState(had)); !why.empty()) return why;
      known.add(key, file.state_folder);
      ++out.moved;
      out.moved_from = had;
      continue;
    }
    if (!state.is_missing(key)) {
      const auto status = state.status(key);
      if (!status) {
        unusable.push_back({key, status.error()});
        continue;
      }
      if (!status->moved_to.empty())
        return "the counters of key " + short_name(key) + " are in " + status->moved_to +
               " now, not in " + file.state_folder +
               ": \"uet-keys install --state-dir\" with that folder";
      if (status->is_retired)
        return "key " + short_name(key) + " was retired on this host and must not be used again";
      if (!status->note.empty()) out.notes += status->note + "\n";
      known.add(key, file.state_folder);
      continue;
    }
    if (std::ranges::find(never_sent, name) != never_sent.end()) {
      to_make.push_back(key);
    } else if (!had.empty()) {
      unusable.push_back({key, why_lost(name, file.state_folder)});
    } else if (!before.empty() && !is_same_folder(before, file.state_folder) &&
               !CounterState(before).is_missing(key) && !is_of_another_host(before, file, key)) {
      return before + ", the folder that the file named, has counters of key " + name +
             why_dead(before, key) +
             ". If they are this host's, \"uet-keys install\" without --state-dir says so, and "
             "with it again they go along; if another host's, whose folder this one sees: "
             "--never-sent-here " +
             name;
    } else {
      to_make.push_back(key);
      not_claimed += " --never-sent-here " + name;
    }
  }
  // Before they are made: a key that this host had, and what became of it, must not be told from the state alone.
  const PreparedKeys before_them = known;
  for (const tss::Fingerprint& key : to_make) known.add(key, file.state_folder);
  if (const std::string why = known.write(); !why.empty() && !not_claimed.empty())
    return why +
           ": so it cannot be known the next time whether this host had the keys, and counters "
           "must not begin anew. If it never sent under them:" +
           not_claimed + ", now and not in what runs at each start";
  for (const tss::Fingerprint& key : to_make) {
    std::string why;
    if (state.create(key, why)) ++out.made;
    if (why.empty()) continue;
    // It had none of them, then.
    if (out.made == 0 && state.is_missing(key)) (void)known.go_back_to(before_them);
    return why;
  }
  for (const Unusable& u : unusable)
    out.notes += "key " + short_name(u.key) +
                 " is accepted and not sent under on this host: its counters cannot be used\n";
  out.lost = why_not_sending(file, unusable);
  return out;
}

}  // namespace uet::apps::keys
