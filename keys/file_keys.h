/// A key manager that reads a key file and looks once a second whether it was replaced, or whether it was asked to read it again
/// (reload_signal.h). [TSS 13.2]
#pragma once

#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "keys/counter_state.h"
#include "keys/file_thread.h"
#include "keys/key_file.h"
#include "keys/key_log.h"
#include "keys/reload_signal.h"
#include "tss/key_manager.h"

namespace uet::keys {

/// Says what goes wrong on standard error, each thing at its first, second, fourth, ... time. A file
/// that was replaced by one that cannot be used changes nothing. What an endpoint that is at work asks for is done by two threads, one that
/// looks at the file and one for the counters, which may be on another file system; the loop takes what they have found.
class FileKeys final : public tss::KeyManager {
 public:
  /// The domain of `job` in the file at `path`; `key_log`, when not empty, gets the keys in use.
  /// Null with `error` set.
  static std::unique_ptr<FileKeys> open(const std::string& path, std::uint32_t job,
                                        const std::string& key_log, std::string& error);

  tss::DomainConfig domain() override;
  /// Has the file looked at, or says what was found then.
  std::optional<tss::DomainConfig> changed_domain() override;
  /// After request_reload(), once the file was read.
  bool asks_to_go_on() override { return std::exchange(was_asked_to_read_, false); }
  std::optional<tss::CounterRange> reserve(const tss::Fingerprint& key,
                                           std::uint64_t count) override;
  Reserving reserve_without_waiting(const tss::Fingerprint& key, std::uint64_t count) override;
  bool is_busy() const override;
  /// Not in a child made by fork(): what it has a copy of is its parent's to use.
  void give_back(const tss::Fingerprint& key, tss::CounterRange unused) override;
  void fill_random(std::span<std::uint8_t> out) override;
  void on_alarm(tss::Alarm alarm, std::uint32_t sdi) override;
  bool wants_keys() const override { return log_ != nullptr; }
  void on_key(const tss::KeyInUse& key) override { log_->write(key); }

 private:
  FileKeys(std::string path, std::uint32_t job) : path_(std::move(path)), job_(job) {}
  struct Found {
    std::optional<tss::DomainConfig> domain;
    bool was_asked_for = false;  ///< by request_reload()
  };
  static void say(const std::string& what);
  Found look();
  /// Once of each version of the file, and once of one that is gone.
  void complain(const FileVersion& version, const std::string& why);
  std::optional<tss::DomainConfig> read_again();
  bool leave_out_retired(tss::DomainConfig& domain);
  bool has_found_retired() const;
  void keep_what_stays(const std::string& state_folder, tss::DomainConfig& domain) const;

  std::string path_;
  std::uint32_t job_;
  pid_t process_ = ::getpid();
  bool has_told_unlocked_ = false;
  bool was_asked_to_read_ = false;
  std::string state_folder_;
  std::unique_ptr<KeyLog> log_;
  std::array<std::uint64_t, 16> alarms_{};

  // Of the thread that looks, once it is at work.
  FileVersion version_;  ///< that was read
  std::optional<std::pair<FileVersion, std::string>>
      complaint_;  ///< the latest, of what still stands
  std::uint64_t reloads_seen_ = reload_requests();

  // Of the endpoint's thread and of those two.
  mutable std::mutex mutex_;
  tss::DomainConfig domain_;
  bool is_looking_ = false;
  std::optional<Found> found_;
  struct Ordered {
    bool is_done = false;
    std::optional<tss::CounterRange> range;
  };
  std::map<tss::Fingerprint, Ordered> ordered_;
  std::set<tss::Fingerprint>
      retired_;                     ///< keys for which no counters were to be had for that reason
  bool has_found_retired_ = false;  ///< since the file was read

  // Last: their jobs use all this.
  FileThread looker_{"uet-keys"}, reserver_{"uet-counters"};
};

}  // namespace uet::keys
