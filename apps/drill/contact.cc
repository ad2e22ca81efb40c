// How a script comes to a PDC with the endpoint: the first sign of life, and openings that a secured endpoint challenges. [TSS 11.2]

#include <algorithm>

#include "apps/drill/headers.h"
#include "apps/drill/live_testbed.h"
#include "lib/wire/enums.h"

namespace uet::drill {

namespace {

using base::Duration;
using base::Instant;

/// An opening without an answer is sent again.
constexpr Duration kKnockAgain = Duration::from_ms(200);

bool has_word(const Step& step, std::string_view word) {
  return std::find(step.words.begin(), step.words.end(), word) != step.words.end();
}

/// "BAD_INDEX", or nothing when the packet is no such answer.
std::string refusal_in(const SeenPacket& packet) {
  const auto headers = tell_headers(packet.bytes);
  if (headers.size() < 2 || headers[1]->name() != "response") return {};
  const auto fields = *headers[1]->decode(std::span(packet.bytes).subspan(headers[0]->size()));
  const auto code = static_cast<wire::ReturnCode>(fields.at("return_code"));
  if (code == wire::ReturnCode::kOk || code == wire::ReturnCode::kNull) return {};
  return show_value(*headers[1], "return_code", fields.at("return_code"));
}

/// The first of our packets that opens a PDC; null when the script has none.
const Step* opening_of(const Script& script) {
  for (const Step& step : script.steps)
    if ((step.words[0] == "<" || step.words[0] == "every") &&
        (has_word(step, "request_syn") || has_word(step, "control_syn")))
      return &step;
  return nullptr;
}

/// A packet of UET that names our PDC.
bool is_for(const SeenPacket& packet, std::uint64_t id) {
  const auto headers = tell_headers(packet.bytes);
  if (headers.empty()) return false;
  const auto fields = *headers.front()->decode(packet.bytes);
  const auto named = fields.find("dpdcid");
  return named != fields.end() && named->second == id;
}

}  // namespace

/// A secured target says where it expects us to start. False: the packet does not.
bool LiveTestbed::learn_start(const SeenPacket& packet) {
  const auto headers = tell_headers(packet.bytes);
  if (headers.empty() || headers.front()->name() != "nack") return false;
  const auto fields = *headers.front()->decode(packet.bytes);
  if (fields.at("nack_code") != static_cast<std::uint64_t>(wire::NackCode::kNewStartPsn))
    return false;
  next_start_ = static_cast<std::uint32_t>(fields.at("payload"));
  return true;
}

/// An opening with what begin() chose, and the first answer to it.
std::optional<SeenPacket> LiveTestbed::knock(const Variables& variables,
                                             const Definitions& definitions, bool is_ordered,
                                             Instant until) {
  std::vector<std::string> words = {"request_syn", "psn=$start", "spdcid=$id", "ar=1",
                                    "next_hdr=REQUEST_STD"};
  if (is_ordered) words.emplace_back("type=ROD_REQ");
  words.emplace_back("/");
  const auto& request = definitions.at("request");
  const auto& body = definitions.at("body");
  words.insert(words.end(), request.begin(), request.end());
  words.insert(words.end(), {"message_id=$msg", "/"});
  words.insert(words.end(), body.begin(), body.end());
  std::string why;
  send(build_packet(words, variables, why), {});
  const std::uint64_t id = variables.read("$id", why).value_or(0);
  while (auto answer = receive(until))
    if (is_for(*answer, id)) return answer;
  return {};
}

/// The script's PDC opens where the endpoint wants it to.
void LiveTestbed::take_up_challenge(const Script& script, Variables& variables,
                                    const Definitions& definitions) {
  const Step* const opening = opening_of(script);
  if (opening == nullptr) return;
  const bool is_ordered = has_word(*opening, "type=ROD_REQ") || has_word(*opening, "isrod=1");
  constexpr int kTries = 5;
  for (int i = 0; i < kTries; ++i) {
    const auto answer = knock(variables, definitions, is_ordered, now() + kKnockAgain);
    ledger_.forget();
    if (!answer || !learn_start(*answer)) continue;
    variables.set("start", next_start_);
    return;
  }
}

bool LiveTestbed::reach(Duration patience) {
  const Instant end = now() + patience;
  bool was_challenged = false;
  while (now() < end) {
    Variables variables;
    Definitions definitions;
    begin({}, variables, definitions);
    const auto answer = knock(variables, definitions, false, std::min(end, now() + kKnockAgain));
    if (!answer) continue;
    const bool is_challenge = learn_start(*answer);
    refusal_ = refusal_in(*answer);
    LiveTestbed::end();
    if (is_challenge && !was_challenged) {
      was_challenged = true;
      continue;
    }
    challenges_ |= is_challenge;  // also where the one before said that we should start
    return true;
  }
  return was_challenged;
}

}  // namespace uet::drill
