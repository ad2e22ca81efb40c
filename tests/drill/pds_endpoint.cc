// Packet delivery under a script, with a layer above that answers as it is told.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "tests/drill/endpoint.h"

namespace uet::drill {

namespace {

using pds::Answer;
using pds::MessageToken;
using pds::Mode;
using pds::PdsError;

constexpr std::uint8_t kRequestHeader = 3;   // next_hdr of what the scripts send
constexpr std::uint8_t kResponseHeader = 4;  // next_hdr of an explicit response
constexpr std::array<std::string_view, 10> kErrors = {
    "RTO_EXHAUSTED", "NACK_EXHAUSTED", "PEER_LOST", "PEER_CLOSING", "PEER_SILENT",
    "RESP_LOST",     "PEER_FAILED",    "ABORTED",   "NO_PDC",       "IN_DOUBT"};

/// How the layer above answers a request.
struct Manner {
  enum class Kind : std::uint8_t { kNow, kLater, kRefuse } kind = Kind::kNow;
  bool guaranteed = false;
  std::vector<std::uint8_t> data;
};

/// Stands for the security layer in scripts about secured openings.
struct ScriptedGuard final : pds::OpeningGuard {
  Challenge on_opening(const Opening& o) override {
    if (is_random) return psn;
    return o.start.is_at_or_after(psn) ? Challenge{} : Challenge{psn};
  }
  bool is_confirmed(const Opening& o, base::Psn announced) override { return o.start == announced; }
  std::optional<base::Psn> on_target_closed(const net::FabricAddress&, base::Psn start) override {
    if (is_random) return {};
    psn = base::serial_max(psn, start + 1);
    return psn;
  }
  void on_half_open_limit() override {}
  std::optional<base::Psn> expected_by(const net::FabricAddress&) override { return told; }
  void on_expected_psn(const net::FabricAddress&, base::Psn expected) override {
    told = told ? base::serial_max(*told, expected) : expected;
  }

  bool is_random = false;
  base::Psn psn;                  ///< the challenge, or what is expected
  std::optional<base::Psn> told;  ///< by the peer, at its close
};

class PdsEndpoint final : public Endpoint, public pds::Upper {
 public:
  PdsEndpoint(const fep::FepConfig& config, DrillPort& port, Variables& variables)
      : port_(port),
        variables_(variables),
        pds_(config.pds, config.cc, port.facts(), port.pool(), rng_, trace_, *this) {}

  bool turn(base::Instant now) override {
    bool happened = false;
    std::array<net::RxPacket, 1> rx;
    while (port_.has_arrivals() && port_.receive(now, rx) == 1) {
      pds_.on_packet(now, std::move(rx[0]));
      happened = true;
    }
    if (pds_.next_deadline() <= now) {
      pds_.on_deadline(now);
      happened = true;
    }
    net::TxPacket tx;
    while (pds_.poll_transmit(now, tx)) {
      port_.sent.push_back(std::move(tx));
      happened = true;
    }
    return happened;
  }
  base::Instant next_deadline() const override { return pds_.next_deadline(); }
  const base::Trace& trace() const override { return trace_; }
  pds::Pds& pds() override { return pds_; }
  std::optional<std::string> step(base::Instant now, Words words) override;

  // --- Upper
  pds::SegmentInfo emit_segment(MessageToken token, std::uint32_t segment, pds::PdcRef pdc,
                                base::Psn, net::Packet& packet) override {
    Sent& m = messages_[token];
    m.pdc = pdc;
    const std::uint32_t bytes = m.request.segment_payload;
    std::memset(packet.append(bytes), static_cast<int>((token + segment) & 0xff), bytes);
    return pds::SegmentInfo{kRequestHeader};
  }
  Answer on_request(base::Instant, const pds::RxRequest& request) override {
    Answer answer;
    if (manner_.kind == Manner::Kind::kRefuse) {
      answer.kind = Answer::Kind::kRefuse;
      return answer;
    }
    delivered_.push_back({request.handle, request.mode});
    if (request.mode == Mode::kUud) answer.kind = Answer::Kind::kNone;
    if (manner_.kind == Manner::Kind::kLater) answer.kind = Answer::Kind::kLater;
    answer.guaranteed = manner_.guaranteed;
    answer.response = response_of(manner_);
    return answer;
  }
  void on_response(base::Instant, MessageToken token, std::uint32_t segment, std::uint8_t next_hdr,
                   std::span<const std::uint8_t> body) override {
    messages_[token].responses.push_back({segment, next_hdr != 0, body.size()});
  }
  void on_message_error(base::Instant, MessageToken token, PdsError error) override {
    messages_[token].errors.push_back(error);
  }
  void on_pdc_gone(base::Instant, pds::PdcRef, net::FabricAddress, PdsError) override {
    ++pdcs_gone_;
  }
  void on_resume(base::Instant) override { ++resumes_; }
  pds::SesResponse default_response() const override {
    if (!has_default_) return {};
    pds::SesResponse r;
    r.next_hdr = kResponseHeader;
    r.header_bytes = 12;
    return r;
  }

 private:
  struct Response {
    std::uint32_t segment;
    bool is_explicit;
    std::size_t bytes;
  };
  struct Sent {
    pds::TxMessage request;
    pds::PdcRef pdc;
    std::vector<Response> responses;
    std::vector<PdsError> errors;
  };
  struct Delivered {
    pds::RxHandle handle;
    Mode mode;
  };

  static pds::SesResponse response_of(const Manner& manner) {
    pds::SesResponse r;
    r.next_hdr = kResponseHeader;
    r.header_bytes = 12;
    r.header.fill(0xaa);
    r.data = manner.data;
    return r;
  }
  std::uint64_t number_at(Words words, std::size_t i) {
    if (i >= words.size()) {
      why_ = "a number is missing";
      return 0;
    }
    return variables_.read(words[i], why_).value_or(0);
  }
  Manner manner_of(Words words);
  pds::TxMessage message_of(Words words);
  std::string message(base::Instant now, Words words);
  std::string return_data(base::Instant now, Words words);
  std::string answer(base::Instant now, Words words);
  std::string expect_delivered(Words words);
  std::string expect_response(Words words);
  std::string expect_end(const std::string& what, Words words);

  DrillPort& port_;
  Variables& variables_;
  base::Rng rng_{1};
  base::Trace trace_{64};
  ScriptedGuard guard_;
  pds::Pds pds_;
  Manner manner_;
  MessageToken last_token_ = 0;
  std::map<MessageToken, Sent> messages_;
  std::vector<Delivered> delivered_;
  unsigned pdcs_gone_ = 0, resumes_ = 0;
  bool has_default_ = false;
  std::string why_;
};

std::optional<std::string> PdsEndpoint::step(base::Instant now, Words words) {
  why_.clear();
  const std::string& what = words[0];
  const Words rest = words.subspan(1);
  std::string result;
  if (what == "message") {
    result = message(now, rest);
  } else if (what == "return") {
    result = return_data(now, rest);
  } else if (what == "answers") {
    manner_ = manner_of(rest);
  } else if (what == "default") {  // ACKs without a response of their own carry the default one
    has_default_ = true;
  } else if (what == "answer") {
    result = answer(now, rest);
  } else if (what == "delivered") {
    result = expect_delivered(rest);
  } else if (what == "response") {
    result = expect_response(rest);
  } else if (what == "done" || what == "open" || what == "failed") {
    result = expect_end(what, rest);
  } else if (what == "abort") {
    pds_.abort(now, number_at(rest, 0));
  } else if (what == "truncate") {
    const MessageToken token = number_at(rest, 0);
    const auto extra = static_cast<std::uint32_t>(number_at(rest, 1));
    messages_[token].request.segments = pds_.truncate(now, token, extra) + extra;
  } else if (what == "unlock") {
    pds_.unlock(now, messages_[number_at(rest, 0)].pdc);
  } else if (what == "secure") {  // secure challenge PSN | secure expect PSN
    guard_.is_random = !rest.empty() && rest[0] == "challenge";
    guard_.psn = base::Psn(static_cast<std::uint32_t>(number_at(rest, 1)));
    pds_.set_opening_guard(guard_);
  } else if (what == "close" && !rest.empty() && rest[0] == "all") {
    pds_.close_all(now);
  } else if (what == "gone") {
    if (pdcs_gone_ != number_at(rest, 0)) result = fmt::format("{} PDCs failed", pdcs_gone_);
  } else if (what == "resumed") {
    if (resumes_ != number_at(rest, 0)) result = fmt::format("resumed {} times", resumes_);
  } else {
    return {};
  }
  return why_.empty() ? result : why_;
}

Manner PdsEndpoint::manner_of(Words words) {
  Manner m;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "now") {
      m.kind = Manner::Kind::kNow;
    } else if (word == "later") {
      m.kind = Manner::Kind::kLater;
    } else if (word == "guaranteed") {
      m.guaranteed = true;
    } else if (word == "data") {
      m.data.assign(number_at(words, ++i), 0xdd);
      m.guaranteed = true;
    } else if (word == "refuse") {
      m.kind = Manner::Kind::kRefuse;
    } else {
      why_ = fmt::format("'{}' is no way to answer", word);
    }
  }
  return m;
}

pds::TxMessage PdsEndpoint::message_of(Words words) {
  pds::TxMessage m;
  m.token = ++last_token_;
  m.segments = static_cast<std::uint32_t>(number_at(words, 0));
  m.segment_payload = static_cast<std::uint32_t>(number_at(words, 1));
  m.payload_bytes = std::uint64_t{m.segments} * m.segment_payload;
  m.destination = DrillPort::address_of(2);
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    const auto value = [&] {
      return equals == std::string::npos
                 ? 0
                 : variables_.read(std::string_view(word).substr(equals + 1), why_).value_or(0);
    };
    if (word == "rud") {
      m.mode = Mode::kRud;
    } else if (word == "rod") {
      m.mode = Mode::kRod;
    } else if (word == "rudi") {
      m.mode = Mode::kRudi;
    } else if (word == "uud") {
      m.mode = Mode::kUud;
    } else if (word == "lock") {
      m.lock = true;
    } else if (word.starts_with("to=")) {
      m.destination = DrillPort::address_of(value());
    } else if (word.starts_with("class=")) {
      m.traffic_class = static_cast<std::uint8_t>(value());
    } else if (word.starts_with("rod_context=")) {
      m.rod_context = static_cast<std::uint32_t>(value());
    } else if (word != "again") {
      why_ = fmt::format("'{}' says nothing about a message", word);
    }
  }
  return m;
}

std::string PdsEndpoint::message(base::Instant now, Words words) {
  const pds::TxMessage m = message_of(words);
  if (!why_.empty()) return why_;
  const bool must_wait = !words.empty() && words.back() == "again";
  messages_[m.token].request = m;
  const bool queued = pds_.submit(now, m) == pds::SubmitResult::kQueued;
  if (!queued) {
    messages_.erase(m.token);
    --last_token_;
  }
  if (queued && must_wait) return "the message was taken";
  if (!queued && !must_wait) return "the answer was 'again'";
  return "";
}

std::string PdsEndpoint::return_data(base::Instant now, Words words) {
  const std::uint64_t n = number_at(words, 0);
  if (n == 0 || n > delivered_.size()) return fmt::format("{} were delivered", delivered_.size());
  const pds::TxMessage m = message_of(words.subspan(1));
  messages_[m.token].request = m;
  switch (pds_.submit_return(now, delivered_[n - 1].handle, m)) {
    case pds::SubmitResult::kQueued:
      return "";
    case pds::SubmitResult::kAgain:
      return "there is no room";
    case pds::SubmitResult::kNever:
      break;
  }
  return "the PDC is gone";
}

std::string PdsEndpoint::answer(base::Instant now, Words words) {
  const std::uint64_t n = number_at(words, 0);
  if (n == 0 || n > delivered_.size()) return fmt::format("{} were delivered", delivered_.size());
  const Manner m = manner_of(words.subspan(1));
  pds_.respond(now, delivered_[n - 1].handle, response_of(m), m.guaranteed);
  return "";
}

std::string PdsEndpoint::expect_delivered(Words words) {
  const std::uint64_t n = number_at(words, 0);
  if (n != delivered_.size()) return fmt::format("{} were delivered", delivered_.size());
  const std::size_t named = words.size() - 1;
  if (named > n) return "more PSNs than deliveries";
  for (std::size_t i = 0; i < named; ++i) {
    const Delivered& d = delivered_[n - named + i];
    if (d.handle.psn.value() != static_cast<std::uint32_t>(number_at(words, i + 1)))
      return fmt::format("delivery {} was PSN {}", n - named + i + 1, d.handle.psn.value());
  }
  return "";
}

std::string PdsEndpoint::expect_response(Words words) {
  const auto& responses = messages_[number_at(words, 0)].responses;
  const std::uint64_t segment = number_at(words, 1);
  const auto at = std::find_if(responses.begin(), responses.end(),
                               [&](const Response& r) { return r.segment == segment; });
  if (words.size() < 3) return "default, explicit or none?";
  if (words[2] == "none") return at == responses.end() ? "" : "there is one";
  if (at == responses.end()) return "there is none";
  if (at->is_explicit != (words[2] == "explicit"))
    return at->is_explicit ? "it is an explicit one" : "it is the default one";
  if (words.size() > 3 && at->bytes != number_at(words, 3))
    return fmt::format("it has {} bytes", at->bytes);
  return "";
}

std::string PdsEndpoint::expect_end(const std::string& what, Words words) {
  const Sent& m = messages_[number_at(words, 0)];
  const auto of_segment = [&](std::uint32_t s) {
    return std::count_if(m.responses.begin(), m.responses.end(),
                         [s](const Response& r) { return r.segment == s; });
  };
  for (std::uint32_t s = 0; s < m.request.segments; ++s)
    if (of_segment(s) > 1) return fmt::format("segment {} was answered {} times", s, of_segment(s));
  const bool is_done = m.responses.size() == m.request.segments;
  if (what == "failed") {
    if (m.errors.size() != 1) return fmt::format("{} errors were reported", m.errors.size());
    const std::string_view is = kErrors[static_cast<std::size_t>(m.errors[0])];
    if (words.size() > 1 && words[1] != is) return fmt::format("the error is {}", is);
    return "";
  }
  if (!m.errors.empty()) return "it failed";
  if (what == "done" && !is_done)
    return fmt::format("{} of {} segments are answered", m.responses.size(), m.request.segments);
  if (what == "open" && is_done) return "it is done";
  return "";
}

}  // namespace

std::unique_ptr<Endpoint> make_pds_endpoint(const fep::FepConfig& config, DrillPort& port,
                                            Variables& variables) {
  return std::make_unique<PdsEndpoint>(config, port, variables);
}

}  // namespace uet::drill
