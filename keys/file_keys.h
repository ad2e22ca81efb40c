/// A key manager that reads a key file and looks once a second whether it was replaced, or whether it was asked to read it again
/// (reload_signal.h). [TSS 13.2]
#pragma once

#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "keys/counter_state.h"
#include "keys/key_file.h"
#include "keys/key_log.h"
#include "keys/reload_signal.h"
#include "tss/key_manager.h"

namespace uet::keys {

/// Says what goes wrong on standard error, each thing at its first, second, fourth, ... time. A file
/// that was replaced by one that cannot be used changes nothing.
class FileKeys final : public tss::KeyManager {
 public:
  /// The domain of `job` in the file at `path`; `key_log`, when not empty, gets the keys in use.
  /// Null with `error` set.
  static std::unique_ptr<FileKeys> open(const std::string& path, std::uint32_t job,
                                        const std::string& key_log, std::string& error);

  tss::DomainConfig domain() override { return domain_; }
  std::optional<tss::DomainConfig> changed_domain() override;
  /// After request_reload(), once the file was read.
  bool asks_to_go_on() override { return std::exchange(was_asked_to_read_, false); }
  std::optional<tss::CounterRange> reserve(const tss::Fingerprint& key,
                                           std::uint64_t count) override;
  /// Not in a child made by fork(): what it has a copy of is its parent's to use.
  void give_back(const tss::Fingerprint& key, tss::CounterRange unused) override;
  void fill_random(std::span<std::uint8_t> out) override;
  void on_alarm(tss::Alarm alarm, std::uint32_t sdi) override;
  bool wants_keys() const override { return log_ != nullptr; }
  void on_key(const tss::KeyInUse& key) override { log_->write(key); }

  /// Whether `job` belongs to this domain.
  bool covers(std::uint32_t job) const;

 private:
  FileKeys(std::string path, std::uint32_t job) : path_(std::move(path)), job_(job) {}
  void say(const std::string& what);
  std::optional<tss::DomainConfig> read_again();

  std::string path_;
  std::uint32_t job_;
  pid_t process_ = ::getpid();
  tss::DomainConfig domain_;
  FileVersion version_;
  bool has_told_unlocked_ = false;
  bool was_asked_to_read_ = false;
  std::uint64_t reloads_seen_ = reload_requests();
  std::string state_folder_;
  std::unique_ptr<KeyLog> log_;
  std::array<std::uint64_t, 16> alarms_{};
};

}  // namespace uet::keys
