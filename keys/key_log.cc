#include "keys/key_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "keys/file_access.h"
#include "keys/key_file.h"
#include "lib/base/byte_cursor.h"
#include "lib/base/cancellation.h"

namespace uet::keys {
namespace {

constexpr const char* kHeading = "# uet-keylog/1: sdi an epoch rekey identity key mask\n";

std::optional<tss::Identity> parse_identity(const std::string& text) {
  std::array<std::uint8_t, 16> v6{};
  std::array<std::uint8_t, 4> v4{};
  if (from_hex(text, v6)) return tss::Identity::of_address(net::FabricAddress::from_v6(v6));
  if (from_hex(text, v4)) return tss::Identity::of_ssi(base::load_be<std::uint32_t>(v4.data()));
  return std::nullopt;
}

}  // namespace

std::unique_ptr<KeyLog> KeyLog::open(const std::string& path, std::string& error) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  const std::string why = fd < 0 ? std::strerror(errno) : why_not_private(fd);
  std::FILE* file = why.empty() ? ::fdopen(fd, "a") : nullptr;
  if (file == nullptr) {
    error = "key log " + path + ": " + (why.empty() ? std::strerror(errno) : why);
    if (fd >= 0) ::close(fd);
    return nullptr;
  }
  std::fprintf(
      stderr,
      "uet: WARNING: every key that packets are sealed with is written to %s; with that file "
      "all traffic can be read\n",
      path.c_str());
  if (std::ftell(file) == 0) std::fputs(kHeading, file);
  return std::unique_ptr<KeyLog>(new KeyLog(file));
}

void KeyLog::write(const tss::KeyInUse& k) {
  const base::WithoutCancellation without_cancellation;
  const auto identity = to_hex(k.context.identity.bytes());
  std::fprintf(file_.get(), "%06x %d %04x %08x %s %s %s\n", k.sdi, k.an ? 1 : 0, k.context.epoch,
               k.context.rekey, k.is_for_all ? "*" : identity.c_str(),
               to_hex(k.key.key.bytes()).c_str(), to_hex(k.key.mask.bytes()).c_str());
  std::fflush(file_.get());
}

base::Result<std::vector<LoggedKey>, std::string> read_key_log(const std::string& path) {
  std::ifstream in(path);
  if (!in) return path + ": " + std::strerror(errno);
  std::vector<LoggedKey> out;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string identity, key, mask;
    unsigned sdi = 0, an = 0, epoch = 0, rekey = 0;
    words >> std::hex >> sdi >> an >> epoch >> rekey >> identity >> key >> mask;
    LoggedKey k{.sdi = sdi, .an = an == 1, .epoch = static_cast<std::uint16_t>(epoch)};
    k.identity = parse_identity(identity);
    if (!words || (!k.identity && identity != "*") ||
        !from_hex(key, {k.key.key.data(), k.key.key.size()}) ||
        !from_hex(mask, {k.key.mask.data(), k.key.mask.size()}))
      return path + ":" + std::to_string(number) + ": is not a line of a key log";
    out.push_back(std::move(k));
  }
  return out;
}

CaptureKeys::Outcome CaptureKeys::open(std::span<const std::uint8_t> sealed,
                                       const tss::Route& route, const tss::Carrier& carrier,
                                       std::vector<std::uint8_t>& clear) const {
  const auto header = tss::parse_header(sealed);
  if (!header || sealed.size() < header->size() + tss::kIcvBytes) return Outcome::kNoKey;
  const auto cipher = tss::openssl_ciphers().make(tss::Direction::kOpen);
  const tss::AdditionalData aad(carrier, false, route, sealed, header->size());
  const auto text = sealed.subspan(header->size(), sealed.size() - header->size() - tss::kIcvBytes);
  const std::uint32_t prefix = tss::iv_prefix(*header, route.source);
  bool any = false;
  for (const LoggedKey& k : keys_) {
    if (k.sdi != header->sdi || k.an != header->an) continue;
    // A derived key is for one epoch; whose it is, the sender says, or in server mode either end.
    if (k.identity && k.epoch != header->epoch()) continue;
    if (k.identity && *k.identity != tss::Identity::of_ssi(header->ssi) &&
        *k.identity != tss::Identity::of_address(route.source) &&
        *k.identity != tss::Identity::of_address(route.destination))
      continue;
    any = true;
    clear.assign(text.begin(), text.end());
    cipher->set_key(k.key.key);
    if (cipher->open(tss::make_iv(prefix, header->tsc, k.key.mask), aad.bytes(), clear,
                     text.data() + text.size()))
      return Outcome::kOpened;
  }
  return any ? Outcome::kRefused : Outcome::kNoKey;
}

}  // namespace uet::keys
