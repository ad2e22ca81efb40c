/// The side that does what the client asks for.

#include <fmt/core.h>

#include <cstdio>
#include <map>
#include <memory>

#include "apps/perf/fabric_bench.h"
#include "apps/perf/fabric_session.h"
#include "apps/perf/lap.h"
#include "apps/perf/memory.h"

namespace uet::perf {
namespace {

constexpr unsigned kSessionsMax = 16;

std::string text_of(const nlohmann::json& request, const char* key) {
  const auto at = request.find(key);
  return at != request.end() && at->is_string() ? at->get<std::string>() : std::string();
}

std::uint64_t number_of(const nlohmann::json& request, const char* key) {
  const auto at = request.find(key);
  return at != request.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
}

/// Empty, or why a client gets no session of so many bytes beside those that it has.
std::string why_no_session(std::uint64_t bytes, std::size_t sessions) {
  if (bytes == 0) return "the client asks for an empty buffer; is it the same version?";
  if (bytes > kBufferMax)
    return fmt::format(
        "{} of buffer are asked for, and the server gives {} at most: use a smaller --window or "
        "--size",
        in_gib(bytes), in_gib(kBufferMax));
  if (sessions == kSessionsMax)
    return fmt::format("the server has {} sessions at most: name fewer providers", kSessionsMax);
  return why_too_much(bytes, memory_available(), 1, " on each side");
}

class Server {
 public:
  Server(const FabricOptions& o, ControlChannel& control, Patience& patience)
      : demands_{o.tests, o.providers, o.sizes,
                 o.count, o.window,    o.ordered ? std::optional(true) : std::nullopt},
        control_(control),
        patience_(patience) {}

  int serve() {
    while (!is_over_) {
      try {
        answer(control_.await("the client's next request", [this] { make_progress(); }));
      } catch (const ControlLost&) {
        throw;
      } catch (const std::exception& error) {
        fail(error);
      }
    }
    return failures_ == 0 ? 0 : 1;
  }

 private:
  void answer(const nlohmann::json& request) {
    const std::string what = text_of(request, "do");
    if (what == "open") return open(request);
    if (what == "lap") return lap(request);
    if (what != "bye") throw ControlLost("the client asks for '" + what + "', which is unknown");
    control_.send({{"ok", true}});
    is_over_ = true;
  }

  /// A refusal leaves both sides in step.
  void refuse(const std::string& why) {
    ++failures_;
    fmt::print(stderr, "uet-perf: refused: {}\n", why);
    control_.send({{"refused", why}});
  }

  void open(const nlohmann::json& request) {
    const std::string provider = text_of(request, "provider");
    const bool ordered = number_of(request, "ordered") != 0;
    const std::uint64_t bytes = number_of(request, "bytes");
    if (const std::string why = why_refused(demands_, provider, ordered); !why.empty())
      return refuse(why);
    if (const std::string why = why_no_session(bytes, sessions_.size()); !why.empty())
      return refuse(why);
    at_work_ = number_of(request, "session");
    control_.send({{"ok", true}});
    sessions_[at_work_] =
        std::make_unique<FabricSession>(control_, patience_, provider, ordered, bytes);
    bytes_[at_work_] = bytes;
  }

  void lap(const nlohmann::json& request) {
    at_work_ = number_of(request, "session");
    const auto session = sessions_.find(at_work_);
    auto plan = request.contains("plan") ? plan_from_json(request["plan"]) : std::nullopt;
    const std::uint64_t messages = number_of(request, "messages");
    if (session == sessions_.end() || !plan || messages == 0 || messages > kCountMax ||
        plan->buffer_bytes() > bytes_[at_work_])
      throw ControlLost("the client asks for a run that makes no sense; is it the same version?");
    if (const std::string why = why_refused(demands_, *plan); !why.empty()) return refuse(why);
    plan->count = messages;
    control_.send({{"ok", true}});
    make_lap(*plan, static_cast<unsigned>(number_of(request, "number")), control_, patience_,
             *session->second)
        ->serve();
  }

  /// What the session at work still has under way is unknown after a failure: it goes.
  void fail(const std::exception& error) {
    ++failures_;
    const bool is_ours = dynamic_cast<const PeerFailed*>(&error) == nullptr;
    const std::string theirs = control_.settle(is_ours ? error.what() : "");
    fmt::print(stderr, "uet-perf: {}{}\n",
               is_ours ? "" : "the client failed: ", is_ours ? error.what() : theirs);
    sessions_.erase(at_work_);
  }

  void make_progress() {
    if (sessions_.empty()) return control_.wait_briefly();
    for (auto& [number, session] : sessions_) session->poll();
  }

  Demands demands_;
  ControlChannel& control_;
  Patience& patience_;
  std::map<std::uint64_t, std::unique_ptr<FabricSession>> sessions_;
  std::map<std::uint64_t, std::uint64_t> bytes_;  ///< of the session's buffer
  std::uint64_t at_work_ = 0;
  unsigned failures_ = 0;
  bool is_over_ = false;
};

}  // namespace

int run_fabric_server(const FabricOptions& options, ControlChannel& control, Patience& patience) {
  return Server(options, control, patience).serve();
}

}  // namespace uet::perf
