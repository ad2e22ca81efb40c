#include "keys/file_keys.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>

#include "keys/host_identity.h"
#include "keys/system_random.h"
#include "lib/base/cancellation.h"

namespace uet::keys {

std::unique_ptr<FileKeys> FileKeys::open(const std::string& given, std::uint32_t job,
                                         const std::string& key_log, std::string& error) {
  std::error_code no_folder;
  const std::string path = std::filesystem::absolute(given, no_folder);
  if (no_folder) {
    error = given + ": " + no_folder.message();
    return nullptr;
  }
  auto file = read_key_file(path);
  if (!file) {
    error = file.error();
    return nullptr;
  }
  auto domain = domain_for_job(*file, job);
  if (!domain) {
    error = path + ": " + domain.error();
    return nullptr;
  }
  if (const std::string why = why_not_this_host(file->state_folder, *domain); !why.empty()) {
    error = path + ": " + why;
    return nullptr;
  }
  auto keys = std::unique_ptr<FileKeys>(new FileKeys(path, job));
  keys->domain_ = std::move(*domain);
  keys->version_ = file->version;
  keys->state_folder_ = file->state_folder;
  if (!key_log.empty()) {
    keys->log_ = KeyLog::open(key_log, error);
    if (keys->log_ == nullptr) return nullptr;
  }
  return keys;
}

tss::DomainConfig FileKeys::domain() {
  const std::lock_guard guard(mutex_);
  return domain_;
}

std::optional<tss::DomainConfig> FileKeys::changed_domain() {
  if (tss::unlocked_allocations() > 0 && !has_told_unlocked_) {
    has_told_unlocked_ = true;
    say("memory with keys could not be locked and may be swapped out: raise the limit (ulimit -l)");
  }
  {
    const std::lock_guard guard(mutex_);
    if (auto found = std::exchange(found_, std::nullopt)) {
      was_asked_to_read_ |= found->was_asked_for;
      return std::move(found->domain);
    }
    if (std::exchange(is_looking_, true)) return std::nullopt;
  }
  try {
    looker_.run([this] {
      Found found = look();
      const std::lock_guard guard(mutex_);
      is_looking_ = false;
      found_ = std::move(found);
    });
  } catch (const std::bad_alloc&) {  // next time
    const std::lock_guard guard(mutex_);
    is_looking_ = false;
  }
  return std::nullopt;
}

FileKeys::Found FileKeys::look() try {
  // A request is answered even when the file looks unchanged.
  if (const std::uint64_t asked = reload_requests(); asked != reloads_seen_) {
    reloads_seen_ = asked;
    complaint_.reset();
    auto domain = read_again();
    if (domain)
      say(path_ + ": read again: " + std::to_string(domain->keys.size()) +
          " keys, packets leave under AN " + (domain->tx_an ? "1" : "0"));
    const bool was_read = domain.has_value();
    return {.domain = std::move(domain), .was_asked_for = was_read};
  }
  const auto version = version_of(path_);
  if (!version) {
    complain({}, path_ + ": " + std::strerror(errno));
    return {};
  }
  if (*version == version_ && !has_found_retired()) return {};
  return {.domain = read_again()};
} catch (const std::bad_alloc&) {
  return {};
}

/// A version that cannot be read is tried again at the next look: what was in the way (no descriptor left, a server that is away) may be gone then.
std::optional<tss::DomainConfig> FileKeys::read_again() {
  auto file = read_key_file(path_);
  if (!file) {
    complain(version_of(path_).value_or(FileVersion{}), file.error());
    return std::nullopt;
  }
  complaint_.reset();
  version_ = file->version;
  auto domain = domain_for_job(*file, job_);
  if (!domain || domain->sdi != domain_.sdi) {
    say(path_ + ": the domain of job " + std::to_string(job_) + " is gone; the keys in use stay");
    return std::nullopt;
  }
  if (domain->mode != domain_.mode || domain->role != domain_.role ||
      domain->ssi_mode != domain_.ssi_mode || domain->ssi != domain_.ssi ||
      domain->partition != domain_.partition) {
    say(path_ +
        ": mode, role, SSI and tsc_partition cannot change while an endpoint runs; the keys in use "
        "stay (after a copy: uet-keys install)");
    return std::nullopt;
  }
  keep_what_stays(file->state_folder, *domain);
  if (!leave_out_retired(*domain)) return std::nullopt;
  const std::lock_guard guard(mutex_);
  domain_ = *domain;
  return *domain;
}

bool FileKeys::has_found_retired() const {
  const std::lock_guard guard(mutex_);
  return has_found_retired_;
}

/// A copy from before brings back what was retired on this host: nothing is to be accepted under it. False, and the keys in use stay, where
/// it is to be sent under.
bool FileKeys::leave_out_retired(tss::DomainConfig& domain) {
  std::set<tss::Fingerprint> retired;
  {
    const std::lock_guard guard(mutex_);
    has_found_retired_ = false;
    retired = retired_;
  }
  bool is_usable = true;
  std::erase_if(domain.keys, [&](const tss::KeyConfig& key) {
    const auto print = tss::fingerprint_of(key.key);
    if (!retired.contains(print)) return false;
    is_usable = is_usable && key.an != domain.tx_an;
    say(path_ + ": key " + short_name(print) + " was retired on this host and is not taken" +
        (key.an == domain.tx_an ? ", though the file sends under it; the keys in use stay" : ""));
    return true;
  });
  return is_usable;
}

/// Changes that a running endpoint cannot follow. The rest of the file, its keys above all, is taken.
void FileKeys::keep_what_stays(const std::string& state_folder, tss::DomainConfig& domain) const {
  std::string changed;
  const auto keep = [&changed](auto& wanted, const auto& in_use, const char* name) {
    if (wanted == in_use) return;
    changed += (changed.empty() ? "" : ", ") + std::string(name);
    wanted = in_use;
  };
  keep(domain.replay_window, domain_.replay_window, "replay_window");
  keep(domain.max_sources, domain_.max_sources, "max_sources");
  keep(domain.new_pdc_time, domain_.new_pdc_time, "new_pdc_time_ms");
  std::string folder = state_folder;
  keep(folder, state_folder_, "state_dir");
  if (!changed.empty())
    say(path_ + ": the keys are taken; a change of " + changed +
        " takes effect when the endpoint is opened again");
}

std::optional<tss::CounterRange> FileKeys::reserve(const tss::Fingerprint& key,
                                                   std::uint64_t count) {
  CounterState state(state_folder_);
  const auto reserved = state.reserve(key, count);
  if (!reserved) {
    say(reserved.error());
    const auto status = state.status(key);
    if (status && status->is_retired && status->moved_to.empty()) {
      const std::lock_guard guard(mutex_);
      has_found_retired_ |= retired_.insert(key).second;
    }
    return std::nullopt;
  }
  if (!reserved->note.empty()) say(reserved->note);
  return *reserved;
}

tss::KeyManager::Reserving FileKeys::reserve_without_waiting(const tss::Fingerprint& key,
                                                             std::uint64_t count) {
  {
    const std::lock_guard guard(mutex_);
    const auto [at, is_new] = ordered_.try_emplace(key);
    if (!is_new && !at->second.is_done) return {.is_under_way = true};
    if (!is_new) return {.range = ordered_.extract(at).mapped().range};
  }
  try {
    reserver_.run([this, key, count] {
      std::optional<tss::CounterRange> range;
      try {
        range = reserve(key, count);
      } catch (const std::bad_alloc&) {
        // As one that cannot be had.
      }
      const std::lock_guard guard(mutex_);
      ordered_[key] = {.is_done = true, .range = range};
    });
  } catch (const std::bad_alloc&) {
    const std::lock_guard guard(mutex_);
    ordered_.erase(key);
    return {};
  }
  return {.is_under_way = true};
}

bool FileKeys::is_busy() const {
  const std::lock_guard guard(mutex_);
  return is_looking_ || found_ || !ordered_.empty();
}

void FileKeys::give_back(const tss::Fingerprint& key, tss::CounterRange unused) {
  if (::getpid() != process_) return;
  try {
    CounterState(state_folder_).give_back(key, unused);
  } catch (const std::bad_alloc&) {
    // They are lost.
  }
}

void FileKeys::fill_random(std::span<std::uint8_t> out) {
  const base::WithoutCancellation without_cancellation;
  keys::fill_random(out);
}

void FileKeys::on_alarm(tss::Alarm alarm, std::uint32_t sdi) {
  const std::uint64_t times = ++alarms_[static_cast<std::size_t>(alarm) % alarms_.size()];
  if (!std::has_single_bit(times)) return;
  char domain[16];
  std::snprintf(domain, sizeof domain, "%06x", sdi);
  say("secure domain " + std::string(domain) + ": " + std::string(name_of(alarm)) +
      (times > 1 ? " (" + std::to_string(times) + " times)" : ""));
}

void FileKeys::complain(const FileVersion& version, const std::string& why) {
  if (complaint_ && complaint_->first == version && complaint_->second == why) return;
  complaint_ = {version, why};
  say(why + "; the keys in use stay");
}

void FileKeys::say(const std::string& what) {
  const base::WithoutCancellation without_cancellation;
  std::fprintf(stderr, "uet: %s\n", what.c_str());
}

}  // namespace uet::keys
