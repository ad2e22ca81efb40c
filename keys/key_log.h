/// The keys that packets are sealed with, in a file, so that captures can be read. Off unless a file
/// is named: with the file, all traffic can be read. (decision 134)
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "tss/framing.h"
#include "tss/key_manager.h"

namespace uet::keys {

class KeyLog {
 public:
  /// Appends to `path`, which is made with mode 0600, and says so on standard error. Null with
  /// `error` set when it cannot be written, or others could read what is.
  static std::unique_ptr<KeyLog> open(const std::string& path, std::string& error);
  void write(const tss::KeyInUse& key);

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  explicit KeyLog(std::FILE* file) : file_(file) {}
  std::unique_ptr<std::FILE, Close> file_;
};

/// One line of a key log.
struct LoggedKey {
  std::uint32_t sdi = 0;
  bool an = false;
  std::optional<tss::Identity> identity;  ///< none: any sender
  std::uint16_t epoch = 0;
  tss::DerivedKey key;
};

base::Result<std::vector<LoggedKey>, std::string> read_key_log(const std::string& path);

/// Opens packets of a capture.
class CaptureKeys {
 public:
  explicit CaptureKeys(std::vector<LoggedKey> keys) : keys_(std::move(keys)) {}

  enum class Outcome : std::uint8_t { kOpened, kNoKey, kRefused };
  /// Clear text of `sealed`, a whole packet behind UDP or entropy header, into `clear`.
  Outcome open(std::span<const std::uint8_t> sealed, const tss::Route& route,
               const tss::Carrier& carrier, std::vector<std::uint8_t>& clear) const;

 private:
  std::vector<LoggedKey> keys_;
};

}  // namespace uet::keys
