#include "apps/drill/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "apps/drill/testbed.h"
#include "lib/base/quantity.h"

namespace uet::drill {

namespace {

using base::Duration;
using base::Instant;

/// More packets than this that are not the expected one are not listed.
constexpr std::size_t kGotMost = 20;

/// Steps that want so many words behind their own, and no more.
constexpr std::array<std::pair<std::string_view, std::size_t>, 9> kWords = {{{"skip", 0},
                                                                             {"settle", 0},
                                                                             {"end", 0},
                                                                             {"wait", 1},
                                                                             {"repeat", 1},
                                                                             {"dscp", 1},
                                                                             {"ecn", 1},
                                                                             {"entropy", 1},
                                                                             {"from", 1}}};

class Run {
 public:
  Run(const Script& script, Testbed& testbed) : script_(script), testbed_(testbed) {}

  Outcome run() {
    fail(script_.wrong);
    testbed_.begin(script_, variables_, definitions_);
    check_testbed();
    for (next_step_ = 0; next_step_ < script_.steps.size() && !has_failed();) {
      const Step& step = script_.steps[next_step_++];
      outcome_.line = step.line;
      outcome_.step = step.text;
      take(step);
      check_testbed();
    }
    if (!loops_.empty()) fail("repeat without end");
    testbed_.end();
    if (!has_failed()) return {};
    outcome_.verdict = Verdict::kFail;
    return std::move(outcome_);
  }

 private:
  /// What the endpoint is sent again and again until it gives the expected answer.
  struct Repeated {
    std::vector<std::uint8_t> bytes;
    Duration every;
    Instant next_at;
  };

  /// Steps from `first` to `end` come again.
  struct Loop {
    std::size_t first = 0;
    std::uint64_t left = 0;  ///< rounds, with this one
  };

  Duration quiet() const { return std::max(testbed_.quiet(), quiet_); }
  Duration patience() const { return std::max(testbed_.patience(), script_.patience); }
  bool has_failed() const { return !outcome_.why.empty(); }
  void fail(const std::string& why) {
    if (outcome_.why.empty()) outcome_.why = why;
  }
  void check_testbed() { fail(testbed_.trouble()); }
  std::uint64_t number_at(Words words, std::size_t i) {
    if (i < words.size()) return variables_.read(words[i], outcome_.why).value_or(0);
    fail("a number is missing");
    return 0;
  }

  /// The only number of a step, which goes up to `most`.
  std::uint64_t number_up_to(std::uint64_t most, Words words) {
    const std::uint64_t value = number_at(words, 0);
    if (value > most) fail(fmt::format("{} is more than {}", value, most));
    return value;
  }

  void take(const Step& step);
  bool has_its_words(const std::string& what, Words words);
  std::vector<std::string> with_definitions(const std::vector<std::string>& words);
  void packet_in(Words words);
  void packet_in_every(Words words);
  void packet_out(Words words);
  void packet_out_somewhere(Words words);
  void never(Words words);
  void nothing();
  bool is_sound(Words words);
  void found(const Variables& tried);
  void keep_quiet(Words words);
  void wait(Words words);
  void let(Words words);
  void repeat(Words words);
  void end_of_repeat();
  std::optional<SeenPacket> next(Instant until);
  void not_this(Words words, const SeenPacket& packet, const Match& match);
  std::string with_values(Words words);

  const Script& script_;
  Testbed& testbed_;
  Variables variables_;
  Definitions definitions_;
  Travel travel_;
  std::size_t next_step_ = 0;
  std::vector<Loop> loops_;
  Repeated repeated_;
  Duration quiet_;                        ///< silence is proved by so long at least
  std::optional<Instant> last_, before_;  ///< when the last two expected packets came
  Outcome outcome_;
};

void Run::take(const Step& step) {
  const auto words = with_definitions(step.words);
  const std::string& what = words[0];
  const Words rest = Words(words).subspan(1);
  if (!has_its_words(what, rest)) return;
  if (what == "<") {
    packet_in(rest);
  } else if (what == ">") {
    packet_out(rest);
  } else if (what == ">>") {
    packet_out_somewhere(rest);
  } else if (what == "every") {
    packet_in_every(rest);
  } else if (what == "never") {
    never(rest);
  } else if (what == "wait") {
    wait(rest);
  } else if (what == "skip") {
    while (testbed_.next(testbed_.now())) {
    }
  } else if (what == "settle") {
    const Instant until = testbed_.now() + testbed_.quiet();
    while (testbed_.next(until)) {
    }
  } else if (what == "quiet") {
    keep_quiet(rest);
  } else if (what == "dscp") {
    travel_.tos =
        net::TosByte::of(static_cast<std::uint8_t>(number_up_to(63, rest)), travel_.tos.ecn());
  } else if (what == "ecn") {
    travel_.tos =
        net::TosByte::of(travel_.tos.dscp(), static_cast<std::uint8_t>(number_up_to(3, rest)));
  } else if (what == "entropy") {
    travel_.entropy =
        static_cast<std::uint16_t>(number_up_to(std::numeric_limits<std::uint16_t>::max(), rest));
  } else if (what == "from") {
    travel_.from = number_at(rest, 0);
  } else if (what == "let") {
    let(rest);
  } else if (what == "repeat") {
    repeat(rest);
  } else if (what == "end") {
    end_of_repeat();
  } else if (what == "define") {
    if (rest.size() < 2) return fail("define NAME WORD...");
    definitions_[rest[0]] = {rest.begin() + 1, rest.end()};
  } else {
    const StepResult result = testbed_.step(words);
    fail(result.is_known ? result.why : fmt::format("'{}' begins no step", what));
  }
}

/// What a step does not read is not passed over: `settle 3s` is meant to wait.
bool Run::has_its_words(const std::string& what, Words words) {
  for (const auto& [step, wanted] : kWords)
    if (step == what && words.size() != wanted)
      fail(fmt::format("{} wants {}", what, wanted == 0 ? "no more words" : "one word"));
  return !has_failed();
}

/// With the words of a definition in place of each `@NAME`.
std::vector<std::string> Run::with_definitions(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const std::string& word : words) {
    if (!word.starts_with("@")) {
      out.push_back(word);
      continue;
    }
    const auto at = definitions_.find(std::string_view(word).substr(1));
    if (at == definitions_.end())
      fail(fmt::format("{} is not defined", word));
    else
      out.insert(out.end(), at->second.begin(), at->second.end());
  }
  if (out.empty()) out.emplace_back();
  return out;
}

void Run::packet_in(Words words) {
  const auto bytes = build_packet(words, variables_, outcome_.why);
  if (!has_failed()) testbed_.arrive(bytes, travel_);
}

void Run::packet_in_every(Words words) {
  const auto every = words.empty() ? std::nullopt : base::parse_duration(words[0]);
  if (!every) return fail("every needs a time and a packet");
  repeated_.bytes = build_packet(words.subspan(1), variables_, outcome_.why);
  repeated_.every = *every;
  repeated_.next_at = testbed_.now() + *every;
  if (!has_failed()) testbed_.arrive(repeated_.bytes, travel_);
}

/// The next packet until then; what is to be repeated is, meanwhile.
std::optional<SeenPacket> Run::next(Instant until) {
  while (!repeated_.bytes.empty() && repeated_.next_at < until) {
    if (auto packet = testbed_.next(repeated_.next_at)) return packet;
    testbed_.arrive(repeated_.bytes, travel_);
    repeated_.next_at = testbed_.now() + repeated_.every;
  }
  return testbed_.next(until);
}

void Run::packet_out(Words words) {
  if (!words.empty() && words[0] == "nothing") {
    if (words.size() > 1) return fail("> nothing wants no more words: quiet TIME says how long");
    return nothing();
  }
  if (!is_sound(words)) return;
  const auto packet = next(testbed_.now() + patience());
  repeated_.bytes.clear();
  if (!packet) {
    outcome_.expected = with_values(words);
    return fail("nothing was sent");
  }
  Variables tried = variables_;
  const Match match = match_packet(words, *packet, tried);
  if (!match.is_exact()) return not_this(words, *packet, match);
  found(tried);
}

/// Of an expected packet: a misspelt one would be awaited in vain, and `never` would be right about it.
bool Run::is_sound(Words words) {
  fail(check_expected(words, variables_));
  return !has_failed();
}

void Run::found(const Variables& tried) {
  variables_ = tried;
  before_ = std::exchange(last_, testbed_.now());
}

void Run::packet_out_somewhere(Words words) {
  if (!is_sound(words)) return;
  const Instant until = testbed_.now() + patience();
  std::optional<std::pair<SeenPacket, Match>> closest;
  std::vector<std::string> got;
  while (auto packet = next(until)) {
    Variables tried = variables_;
    Match match = match_packet(words, *packet, tried);
    if (!match.error.empty()) return fail(match.error);
    if (match.is_exact()) {
      found(tried);
      repeated_.bytes.clear();
      return;
    }
    const std::string shown = show_packet(packet->bytes);
    if (got.size() < kGotMost && (got.empty() || got.back() != shown)) got.push_back(shown);
    const auto rank = [](const Match& m) { return std::pair(!m.is_kind, m.differences.size()); };
    if (!closest || rank(match) <= rank(closest->second))
      closest.emplace(std::move(*packet), std::move(match));
  }
  repeated_.bytes.clear();
  outcome_.expected = with_values(words);
  outcome_.got = std::move(got);
  if (!closest) return fail("no such packet was sent");
  if (closest->second.is_kind) outcome_.differences = closest->second.differences;
  fail("no such packet was sent" +
       (closest->second.is_kind ? "; in the closest one " + text_of(closest->second) : ""));
}

void Run::not_this(Words words, const SeenPacket& packet, const Match& match) {
  outcome_.expected = with_values(words);
  outcome_.differences = match.differences;
  outcome_.got.push_back(show_packet(packet.bytes));
  fail(text_of(match));
}

void Run::nothing() {
  const auto packet = testbed_.next(testbed_.now() + quiet());
  if (!packet) return;
  outcome_.expected = "no packet";
  outcome_.got.push_back(show_packet(packet->bytes));
  fail("a packet was sent");
}

/// Other packets may come, this one must not.
void Run::never(Words words) {
  if (!is_sound(words)) return;
  const Instant until = testbed_.now() + quiet();
  while (const auto packet = testbed_.next(until)) {
    Variables tried = variables_;
    const Match match = match_packet(words, *packet, tried);
    if (!match.error.empty()) return fail(match.error);
    if (!match.is_exact()) continue;
    outcome_.expected = "never " + with_values(words);
    outcome_.got.push_back(show_packet(packet->bytes));
    return fail("that packet was sent");
  }
}

/// `gap`: long enough for one more copy of what came twice, though its timeout doubles, and though copies came while the script
/// settled. When the first after that comes, it is at most twice as long since the last as the script settled and a gap.
void Run::keep_quiet(Words words) {
  if (words.size() == 1 && words[0] == "gap") {
    if (!before_) return fail("quiet gap: fewer than two packets were expected before");
    quiet_ = testbed_.quiet() * 2 + (*last_ - *before_) * 3;
    return;
  }
  const auto span = words.size() == 1 ? base::parse_duration(words[0]) : std::nullopt;
  if (!span) return fail("quiet TIME, or quiet gap");
  quiet_ = *span;
}

void Run::wait(Words words) {
  const auto span = words.empty() ? std::nullopt : base::parse_duration(words[0]);
  if (!span) return fail("wait needs a time: 10us, 2ms");
  testbed_.pass(*span);
}

void Run::let(Words words) {
  if (words.size() != 2) return fail("let NAME VALUE");
  variables_.set(words[0], number_at(words, 1));
}

void Run::repeat(Words words) {
  constexpr std::uint64_t kMost = 100'000;
  const std::uint64_t rounds = number_at(words, 0);
  if (rounds == 0 || rounds > kMost) return fail(fmt::format("repeat 1 to {} times", kMost));
  loops_.push_back({next_step_, rounds});
}

void Run::end_of_repeat() {
  if (loops_.empty()) return fail("end without repeat");
  if (--loops_.back().left > 0)
    next_step_ = loops_.back().first;
  else
    loops_.pop_back();
}

std::string Run::with_values(Words words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    const std::size_t at = word.find('$');
    std::string why;
    const auto value = at == std::string::npos || word.find('|') != std::string::npos
                           ? std::nullopt
                           : variables_.read(std::string_view(word).substr(at), why);
    text += value ? fmt::format("{}{}", word.substr(0, at), *value) : word;
  }
  return text;
}

}  // namespace

Outcome run_script(const Script& script, Testbed& testbed) {
  std::string lacks = testbed.lacks(script);
  if (!lacks.empty()) {
    Outcome skipped;
    skipped.verdict = Verdict::kSkip;
    skipped.why = std::move(lacks);
    return skipped;
  }
  return Run(script, testbed).run();
}

}  // namespace uet::drill
