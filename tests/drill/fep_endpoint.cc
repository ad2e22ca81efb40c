// A whole endpoint under a script: sends, receives, reads and writes.

#include <fmt/format.h>
#include <sys/uio.h>

#include <map>
#include <vector>

#include "tests/drill/endpoint.h"

namespace uet::drill {

namespace {

constexpr std::size_t kBufferBytes = 2 << 20;
constexpr std::uint64_t kMemoryKey = 7;

class FepEndpoint final : public Endpoint, public ses::CompletionSink {
 public:
  FepEndpoint(const fep::FepConfig& config, DrillPort& port, Variables& variables,
              base::Instant now)
      : variables_(variables), fep_(config, port, rng_, trace_, now) {
    ses::Ses& ses = fep_.ses();
    ses::EndpointConfig endpoint;
    endpoint.resource_index = 1;
    endpoint_ = ses.open_endpoint(now, endpoint, *this).value();
    ses::Address peer = ses.address_of(endpoint_);
    peer.fabric_address = DrillPort::address_of(2);
    peer_ = ses.add_peer(peer).value();
    const iovec bytes{memory_.data(), memory_.size()};
    ses::MemoryRequest memory;
    memory.iov = {&bytes, 1};
    memory.remote_read = memory.remote_write = true;
    memory.virtual_addressing = false;
    memory.key = kMemoryKey;
    key_ = ses.register_memory(memory).value();
    variables_.set("key", key_);
  }

  bool turn(base::Instant now) override { return fep_.turn(now); }
  base::Instant next_deadline() const override { return fep_.next_deadline(); }
  const base::Trace& trace() const override { return trace_; }
  pds::Pds& pds() override { return fep_.pds(); }

  void on_completion(ses::EndpointId, const ses::Completion& c) override {
    Result& r = results_[static_cast<unsigned>(c.context)];
    r.code = static_cast<unsigned>(c.code);
    ++r.times;
  }

  std::optional<std::string> step(base::Instant now, Words words) override {
    const std::string& what = words[0];
    std::string why;
    const std::uint64_t n = words.size() > 1 ? variables_.read(words[1], why).value_or(0) : 0;
    if (!why.empty()) return why;
    if (what == "write" || what == "send" || what == "read" || what == "receive")
      return post(now, what, n);
    if (what == "done") return done(static_cast<unsigned>(n), words.subspan(2));
    if (what == "open") {
      const Result& r = results_[static_cast<unsigned>(n)];
      return r.times == 0 ? "" : fmt::format("operation {} has completed with code {}", n, r.code);
    }
    return {};
  }

 private:
  struct Result {
    unsigned code = 0, times = 0;
  };

  std::string post(base::Instant now, const std::string& what, std::uint64_t bytes) {
    if (bytes > kBufferBytes) return "too large";
    const iovec memory{memory_.data(), bytes};
    ++posted_;
    ses::PostResult<ses::Posted> posted = ses::PostError::kAgain;
    ses::Ses& ses = fep_.ses();
    if (what == "receive") {
      ses::ReceiveRequest r;
      r.iov = {&memory, 1};
      r.context = posted_;
      posted = ses.receive(now, endpoint_, r);
    } else if (what == "send") {
      ses::SendRequest r;
      r.peer = peer_;
      r.iov = {&memory, 1};
      r.context = posted_;
      posted = ses.send(now, endpoint_, r);
    } else {
      ses::RmaRequest r;
      r.peer = peer_;
      r.read = what == "read";
      r.iov = {&memory, 1};
      r.key = key_;
      r.context = posted_;
      posted = ses.rma(now, endpoint_, r);
    }
    if (posted.has_value()) return "";
    return fmt::format("refused with error {}", static_cast<int>(posted.error()));
  }

  std::string done(unsigned n, Words more) {
    const Result& r = results_[n];
    if (r.times != 1) return fmt::format("operation {} has completed {} times", n, r.times);
    if (more.empty() || !more[0].starts_with("code=")) return "";
    std::string why;
    const auto wanted = variables_.read(std::string_view(more[0]).substr(5), why);
    if (wanted && *wanted != r.code) why = fmt::format("operation {} has code {}", n, r.code);
    return why;
  }

  Variables& variables_;
  base::Rng rng_{1};
  base::Trace trace_{64};
  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(kBufferBytes);
  std::map<unsigned, Result> results_;
  fep::Fep fep_;
  ses::EndpointId endpoint_ = 0;
  ses::PeerId peer_ = 0;
  std::uint64_t key_ = 0;
  unsigned posted_ = 0;
};

}  // namespace

std::unique_ptr<Endpoint> make_fep_endpoint(const fep::FepConfig& config, DrillPort& port,
                                            Variables& variables, base::Instant now) {
  return std::make_unique<FepEndpoint>(config, port, variables, now);
}

}  // namespace uet::drill
