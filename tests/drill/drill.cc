#include "tests/drill/drill.h"

#include <fmt/format.h>
#include <sys/uio.h>

#include <charconv>
#include <deque>
#include <functional>
#include <istream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <vector>

#include "fep/fep.h"
#include "sim/slab_pool.h"
#include "tests/drill/headers.h"

namespace uet::drill {

namespace {

using base::Duration;
using base::Instant;

constexpr std::size_t kBufferBytes = 1 << 20;
constexpr std::uint64_t kMemoryKey = 7;
const auto kOwnAddress = net::FabricAddress::from_v4(0x0a000001);
const auto kPeerAddress = net::FabricAddress::from_v4(0x0a000002);

/// The wire between the endpoint and the script.
class DrillPort final : public net::Port {
 public:
  DrillPort() : pool_(4096, 9000) {
    facts_.name = "drill";
    facts_.address = kOwnAddress;
    facts_.ip_mtu = 9000;
    facts_.link_rate = base::BitRate::from_gbps(100);
  }
  const net::PortFacts& facts() const override { return facts_; }
  net::PacketPool& pool() override { return pool_; }
  std::size_t receive(Instant, std::span<net::RxPacket> out) override {
    std::size_t n = 0;
    while (n < out.size() && !in_.empty()) {
      out[n++] = std::move(in_.front());
      in_.pop_front();
    }
    return n;
  }
  std::size_t send(Instant, std::span<net::TxPacket> packets) override {
    for (net::TxPacket& p : packets) out_.push_back(std::move(p));
    return packets.size();
  }
  void inject(std::span<const std::uint8_t> bytes, net::TosByte tos) {
    net::RxPacket rx;
    rx.packet = pool_.allocate();
    std::copy(bytes.begin(), bytes.end(), rx.packet.append(bytes.size()));
    rx.source = kPeerAddress;
    rx.destination = kOwnAddress;
    rx.tos = tos;
    in_.push_back(std::move(rx));
  }
  std::deque<net::TxPacket>& sent() { return out_; }

 private:
  sim::SlabPool pool_;
  net::PortFacts facts_;
  std::deque<net::RxPacket> in_;
  std::deque<net::TxPacket> out_;
};

std::optional<std::uint64_t> number(std::string_view text) {
  int radix = 10;
  if (text.starts_with("0x")) {
    radix = 16;
    text.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const bool negative = text.starts_with("-");
  if (negative) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, radix);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return negative ? 0 - value : value;
}

std::optional<Duration> duration(const std::string& text) {
  double value = 0;
  char unit[3] = {};
  if (std::sscanf(text.c_str(), "%lf%2s", &value, unit) != 2) return {};
  const std::string_view u = unit;
  const double ns = u == "ns" ? 1 : u == "us" ? 1e3 : u == "ms" ? 1e6 : u == "s" ? 1e9 : 0;
  if (ns == 0 || value < 0) return {};
  return Duration::from_ns(static_cast<std::int64_t>(value * ns));
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line.substr(0, line.find('#')));
  std::vector<std::string> words;
  for (std::string w; in >> w;) words.push_back(w);
  return words;
}

class Script final : public ses::CompletionSink {
 public:
  std::string run(std::istream& in);
  void on_completion(ses::EndpointId, const ses::Completion& c) override {
    codes_[static_cast<unsigned>(c.context)] = static_cast<unsigned>(c.code);
    ++completions_[static_cast<unsigned>(c.context)];
  }

 private:
  using Words = std::span<const std::string>;

  void start();
  void turn();
  void pass(Duration span);
  void step(Words words);
  void set(Words words);
  void post(const std::string& what, Words words);
  void packet_in(Words words);
  void packet_out(Words words);
  std::size_t match(Words words, std::span<const std::uint8_t> bytes);
  void match_field(const Header& header, const FieldValues& found, const std::string& word);
  void count(Words words);
  void drops(Words words);
  void gauge(Words words);
  std::uint64_t value(const std::string& text);
  void fail(const std::string& why) {
    if (failure_.empty()) failure_ = why;
  }
  std::uint64_t number_at(Words words, std::size_t i) {
    if (i < words.size()) return value(words[i]);
    fail("a number is missing");
    return 0;
  }
  static std::string show(std::span<const std::uint8_t> bytes);

  fep::FepConfig config_;
  DrillPort port_;
  base::Rng rng_{1};
  base::Trace trace_{64};
  std::unique_ptr<fep::Fep> fep_;
  ses::EndpointId endpoint_ = 0;
  ses::PeerId peer_ = 0;
  Instant now_ = Instant::from_ns(1'000'000'000);
  net::TosByte arriving_tos_ = net::TosByte::of(0, 2);
  std::map<std::string, std::uint64_t, std::less<>> variables_;
  std::map<unsigned, unsigned> codes_, completions_;
  unsigned posted_ = 0;
  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(kBufferBytes);
  std::string failure_;
};

using Setter = std::function<void(fep::FepConfig&, std::uint64_t)>;

template <typename T>
Setter pds_field(T pds::PdsConfig::*member) {
  return [member](fep::FepConfig& c, std::uint64_t v) {
    if constexpr (std::is_same_v<T, Duration>) {
      c.pds.*member = Duration::from_us(static_cast<std::int64_t>(v));
    } else {
      c.pds.*member = static_cast<T>(v);
    }
  };
}

/// Times are microseconds.
const std::map<std::string, Setter, std::less<>> kSettings = {
    {"start_psn", pds_field(&pds::PdsConfig::forced_start_psn)},
    {"rto", pds_field(&pds::PdsConfig::rto_init_time)},
    {"max_rto", pds_field(&pds::PdsConfig::max_rto_retx_cnt)},
    {"nack_retx_time", pds_field(&pds::PdsConfig::nack_retx_time)},
    {"max_nack", pds_field(&pds::PdsConfig::max_nack_retx_cnt)},
    {"clear_time", pds_field(&pds::PdsConfig::pds_clear_time)},
    {"close_req_time", pds_field(&pds::PdsConfig::close_req_time)},
    {"idle_time", pds_field(&pds::PdsConfig::pdc_idle_time)},
    {"syn_safety", pds_field(&pds::PdsConfig::syn_retx_safety_time)},
    {"ack_gen_trigger", pds_field(&pds::PdsConfig::ack_gen_trigger)},
    {"ack_per_packet", pds_field(&pds::PdsConfig::enb_ack_per_pkt)},
    {"ack_on_ecn", pds_field(&pds::PdsConfig::ack_on_ecn)},
    {"mp_range", pds_field(&pds::PdsConfig::local_mp_range)},
    {"default_mpr", pds_field(&pds::PdsConfig::default_mpr)},
    {"max_pdc", pds_field(&pds::PdsConfig::max_pdc)},
    {"trimming", pds_field(&pds::PdsConfig::use_trimming)},
    {"peer_timeout", pds_field(&pds::PdsConfig::peer_timeout)},
    {"payload",
     [](fep::FepConfig& c, std::uint64_t v) { c.payload_mtu = static_cast<std::uint32_t>(v); }},
    {"cc",
     [](fep::FepConfig& c, std::uint64_t v) { c.cc.algorithm = static_cast<cc::Algorithm>(v); }},
};

std::string Script::run(std::istream& in) {
  config_.protection = fep::DataProtection::kNone;
  config_.payload_mtu = 1024;
  config_.cc.algorithm = cc::Algorithm::kNone;
  config_.cc.load_balancing = cc::LoadBalancing::kSingle;
  config_.pds.forced_start_psn = 1000;
  std::string line;
  for (unsigned at = 1; std::getline(in, line); ++at) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    if (words[0] == "set") {
      set(Words(words).subspan(1));
    } else {
      if (!fep_) start();
      step(words);
    }
    if (!failure_.empty()) return fmt::format("line {}: {}\n    {}", at, line, failure_);
  }
  return {};
}

void Script::start() {
  fep_ = std::make_unique<fep::Fep>(config_, port_, rng_, trace_, now_);
  ses::Ses& ses = fep_->ses();
  ses::EndpointConfig endpoint;
  endpoint.resource_index = 1;
  endpoint_ = ses.open_endpoint(now_, endpoint, *this).value();
  ses::Address peer = ses.address_of(endpoint_);
  peer.fabric_address = kPeerAddress;
  peer_ = ses.add_peer(peer).value();
  const iovec bytes{memory_.data(), memory_.size()};
  ses::MemoryRequest memory;
  memory.iov = {&bytes, 1};
  memory.remote_read = memory.remote_write = true;
  memory.virtual_addressing = false;
  memory.key = kMemoryKey;
  variables_["key"] = ses.register_memory(memory).value();
}

void Script::turn() {
  constexpr int kEnough = 1000;
  for (int i = 0; i < kEnough; ++i) {
    if (!fep_->turn(now_)) return;
  }
  fail("the endpoint finds no end");
}

void Script::pass(Duration span) {
  const Instant end = now_ + span;
  constexpr int kEnough = 100'000;
  for (int i = 0; i < kEnough; ++i) {
    turn();
    const Instant next = fep_->next_deadline();
    if (next > end) break;
    now_ = std::max(now_ + Duration::from_ns(1), next);
  }
  now_ = end;
  turn();
}

void Script::step(Words words) {
  const std::string& what = words[0];
  const Words rest = words.subspan(1);
  if (what == "write" || what == "send" || what == "read" || what == "receive") {
    post(what, rest);
  } else if (what == "wait") {
    const auto span = rest.empty() ? std::nullopt : duration(rest[0]);
    if (!span) return fail("wait needs a time: 10us, 2ms");
    pass(*span);
  } else if (what == "<") {
    packet_in(rest);
  } else if (what == ">") {
    packet_out(rest);
  } else if (what == "done") {
    const auto n = static_cast<unsigned>(number_at(rest, 0));
    if (completions_[n] != 1)
      return fail(fmt::format("operation {} has completed {} times", n, completions_[n]));
    if (rest.size() > 1 && rest[1].starts_with("code=") && codes_[n] != value(rest[1].substr(5))) {
      fail(fmt::format("operation {} has code {:#x}", n, codes_[n]));
    }
  } else if (what == "open") {
    const auto n = static_cast<unsigned>(number_at(rest, 0));
    if (completions_[n] != 0)
      fail(fmt::format("operation {} has completed with code {:#x}", n, codes_[n]));
  } else if (what == "count") {
    count(rest);
  } else if (what == "drops") {
    drops(rest);
  } else if (what == "gauge") {
    gauge(rest);
  } else if (what == "dscp") {
    arriving_tos_ =
        net::TosByte::of(static_cast<std::uint8_t>(number_at(rest, 0)), arriving_tos_.ecn());
  } else if (what == "ecn") {
    arriving_tos_ =
        net::TosByte::of(arriving_tos_.dscp(), static_cast<std::uint8_t>(number_at(rest, 0)));
  } else if (what == "skip") {
    port_.sent().clear();
  } else {
    fail(fmt::format("'{}' begins no step", what));
  }
}

void Script::set(Words words) {
  if (fep_) return fail("settings come before the first step");
  const auto at = words.empty() ? kSettings.end() : kSettings.find(words[0]);
  if (at == kSettings.end()) return fail("there is no such setting");
  at->second(config_, number_at(words, 1));
}

void Script::post(const std::string& what, Words words) {
  const std::uint64_t bytes = number_at(words, 0);
  if (bytes > kBufferBytes) return fail("too large");
  const iovec memory{memory_.data(), bytes};
  ++posted_;
  ses::PostResult<ses::Posted> posted = ses::PostError::kAgain;
  ses::Ses& ses = fep_->ses();
  if (what == "receive") {
    ses::ReceiveRequest r;
    r.iov = {&memory, 1};
    r.context = posted_;
    posted = ses.receive(now_, endpoint_, r);
  } else if (what == "send") {
    ses::SendRequest r;
    r.peer = peer_;
    r.iov = {&memory, 1};
    r.context = posted_;
    posted = ses.send(now_, endpoint_, r);
  } else {
    ses::RmaRequest r;
    r.peer = peer_;
    r.read = what == "read";
    r.iov = {&memory, 1};
    r.key = variables_["key"];
    r.context = posted_;
    posted = ses.rma(now_, endpoint_, r);
  }
  if (!posted.has_value())
    return fail(fmt::format("refused with error {}", static_cast<int>(posted.error())));
  turn();
}

std::uint64_t Script::value(const std::string& text) {
  if (text.starts_with("$")) {
    const std::size_t sign = text.find_first_of("+-", 1);
    const std::string name = text.substr(1, sign == std::string::npos ? sign : sign - 1);
    const auto at = variables_.find(name);
    if (at == variables_.end()) {
      fail(fmt::format("${} has no value yet", name));
      return 0;
    }
    if (sign == std::string::npos) return at->second;
    const std::uint64_t step = number(text.substr(sign + 1)).value_or(0);
    return text[sign] == '+' ? at->second + step : at->second - step;
  }
  const auto n = number(text);
  if (!n) fail(fmt::format("'{}' is no number", text));
  return n.value_or(0);
}

void Script::packet_in(Words words) {
  std::vector<std::uint8_t> packet;
  const Header* header = nullptr;
  FieldValues fields;
  const auto flush = [&] {
    if (header == nullptr) return;
    const auto bytes = header->encode(fields);
    packet.insert(packet.end(), bytes.begin(), bytes.end());
    header = nullptr;
    fields.clear();
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    if (word == "/") {
      flush();
    } else if (word == "payload") {
      flush();
      packet.insert(packet.end(), number_at(words, ++i), 0x42);
    } else if (equals == std::string::npos) {
      flush();
      header = find_header(word);
      if (header == nullptr)
        return fail(
            fmt::format("there is no header '{}': {}", word, fmt::join(header_names(), " ")));
    } else {
      const std::string name = word.substr(0, equals);
      if (header == nullptr || !header->has_field(name))
        return fail(fmt::format("there is no field '{}' here", name));
      fields[name] = value(word.substr(equals + 1));
    }
  }
  flush();
  port_.inject(packet, arriving_tos_);
  turn();
}

void Script::packet_out(Words words) {
  if (words.empty()) return fail("which packet?");
  if (words[0] == "nothing") {
    if (!port_.sent().empty())
      fail("sent: " + show(std::as_const(port_.sent().front().packet).bytes()));
    return;
  }
  if (port_.sent().empty()) return fail("nothing was sent");
  const net::TxPacket tx = std::move(port_.sent().front());
  port_.sent().pop_front();
  const auto bytes = tx.packet.bytes();
  match(words, bytes);
  if (!failure_.empty()) failure_ += "\n    sent: " + show(bytes);
}

std::size_t Script::match(Words words, std::span<const std::uint8_t> bytes) {
  std::size_t at = 0;
  const Header* header = nullptr;
  std::optional<FieldValues> found;
  for (std::size_t i = 0; i < words.size() && failure_.empty(); ++i) {
    const std::string& word = words[i];
    if (word == "/") continue;
    if (word == "payload") {
      const std::uint64_t wanted = number_at(words, ++i);
      if (bytes.size() - at != wanted) fail(fmt::format("{} bytes of payload", bytes.size() - at));
      at = bytes.size();
    } else if (word.find('=') != std::string::npos) {
      if (header == nullptr) {
        fail("a header must come before its fields");
      } else {
        match_field(*header, *found, word);
      }
    } else {
      header = find_header(word);
      if (header == nullptr) {
        fail(fmt::format("there is no header '{}'", word));
        break;
      }
      found = header->decode(bytes.subspan(at));
      if (!found) {
        fail(fmt::format("too short for {}", word));
        break;
      }
      at += header->size();
      // What makes the header what it is, unless the script says otherwise.
      for (const char* const field : {"type", "syn", "som"}) {
        if (!header->has_field(field)) continue;
        bool named = false;
        for (std::size_t k = i + 1; k < words.size() && words[k] != "/"; ++k) {
          named |= words[k].starts_with(std::string(field) + "=");
        }
        if (!named && found->at(field) != header->defaults().find(field)->second) {
          fail(fmt::format("not {}: {} is {}", word, field, found->at(field)));
        }
      }
    }
  }
  return at;
}

void Script::match_field(const Header& header, const FieldValues& found, const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const std::string text = word.substr(equals + 1);
  if (!header.has_field(name))
    return fail(fmt::format("{} has no field '{}'", header.name(), name));
  const std::uint64_t is = found.at(name);
  if (text.starts_with("?")) {
    variables_[text.substr(1)] = is;
    return;
  }
  // Compare what the field can hold: -1 is 0xffff in 16 bits.
  const std::uint64_t wanted = value(text);
  const auto bytes = header.encode({{name, wanted}});
  const std::uint64_t as_field = header.decode(bytes)->at(name);
  if (is != as_field) fail(fmt::format("{} is {} ({:#x}), not {}", name, is, is, as_field));
}

void Script::count(Words words) {
  if (words.size() != 2) return fail("count EVENT VALUE");
  for (std::size_t i = 0; i < base::kEventCount; ++i) {
    const auto id = static_cast<base::EventId>(i);
    if (base::describe(id).name != words[0]) continue;
    if (trace_.count(id) != value(words[1]))
      fail(fmt::format("{} happened {} times", words[0], trace_.count(id)));
    return;
  }
  fail("there is no such event");
}

void Script::drops(Words words) {
  if (words.size() != 2) return fail("drops REASON VALUE");
  for (std::size_t i = 0; i < base::kDropReasonCount; ++i) {
    const auto reason = static_cast<base::DropReason>(i);
    if (base::name_of(reason) != words[0]) continue;
    if (trace_.drops(reason) != value(words[1]))
      fail(fmt::format("{} packets were dropped for {}", trace_.drops(reason), words[0]));
    return;
  }
  fail("there is no such reason");
}

void Script::gauge(Words words) {
  if (words.size() != 2) return fail("gauge NAME VALUE");
  const pds::Pds::Gauges g = fep_->pds().gauges();
  const std::map<std::string_view, std::size_t> gauges = {{"pdcs_open", g.pdcs_open},
                                                          {"pdcs_half_open", g.pdcs_half_open},
                                                          {"outstanding", g.outstanding_packets},
                                                          {"queued_messages", g.queued_messages},
                                                          {"stored_responses", g.stored_responses},
                                                          {"tombstones", g.tombstones}};
  const auto at = gauges.find(words[0]);
  if (at == gauges.end()) return fail("there is no such gauge");
  if (at->second != value(words[1])) fail(fmt::format("{} is {}", words[0], at->second));
}

std::string Script::show(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < 2) return "too short";
  const unsigned type = bytes[0] >> 3;
  for (const std::string_view name : header_names()) {
    const Header* h = find_header(name);
    const auto values = h->decode(bytes);
    if (!values || !h->has_field("type") || !values->contains("type")) continue;
    if (h->defaults().find("type")->second != type) continue;
    if (h->has_field("syn") && values->at("syn") != h->defaults().find("syn")->second) continue;
    std::string s = fmt::format("{} bytes, {}", bytes.size(), name);
    for (const auto& [field, v] : *values) s += fmt::format(" {}={}", field, v);
    return s;
  }
  return fmt::format("{} bytes of type {}", bytes.size(), type);
}

}  // namespace

std::string run_script(std::istream& script) {
  return std::make_unique<Script>()->run(script);
}

}  // namespace uet::drill
