/// uet-interop-peer: one side of an exercise, over any libfabric provider that FI_PROVIDER names. uet-interop starts two of them.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>

#include "apps/interop/peer/session.h"
#include "apps/program.h"

namespace uet::interop {
namespace {

enum ExitCode { kPassed = 0, kFailed = 1, kUsage = 2, kUnsupported = 77 };

constexpr std::uint64_t kAll = FI_MSG | FI_RMA | FI_ATOMIC;

const std::array kExercises = {
    ExerciseEntry{"sends", "messages of all sizes both ways, expected and not", {}, play_sends},
    ExerciseEntry{"tagged",
                  "tagged messages that meet receives in another order",
                  {.caps = FI_TAGGED},
                  play_tagged},
    ExerciseEntry{"ordered",
                  "messages that must meet receives in their order",
                  {.is_ordered = true},
                  play_ordered},
    ExerciseEntry{"datagrams", "a datagram endpoint", {.is_datagram = true}, play_datagrams},
    ExerciseEntry{"writes",
                  "writes of all sizes",
                  {.caps = FI_MSG | FI_RMA, .is_delivered = true},
                  play_writes},
    ExerciseEntry{
        "write-data", "writes with immediate data", {.caps = FI_MSG | FI_RMA}, play_write_data},
    ExerciseEntry{"reads", "reads of all sizes", {.caps = FI_MSG | FI_RMA}, play_reads},
    ExerciseEntry{"atomics", "sums, fetching sums, compare-and-swap", {.caps = kAll}, play_atomics},
    ExerciseEntry{"idempotent",
                  "idempotent writes and reads (RUDI)",
                  {.caps = FI_MSG | FI_RMA},
                  play_idempotent},
    ExerciseEntry{"mixed",
                  "all of them at once, in rounds",
                  {.caps = kAll, .is_delivered = true},
                  play_mixed},
    ExerciseEntry{"many", "many clients of one server", {}, play_one_of_many},
};

struct Options {
  std::string exercise, control = "127.0.0.1";
  bool is_server = false;
  unsigned port = 4795, rounds = 20, clients = 1, sessions = 1;
  double patience_s = 10;
};

int tell(ExitCode code, const char* what, const std::exception& e) {
  std::fprintf(stderr, "uet-interop-peer: %s%s\n", what, e.what());
  return code;
}

/// Names are exchanged; then the exercise, until the other side goes away or both are done.
void play_once(const ExerciseEntry& exercise, const Options& options, Endpoint& endpoint,
               Control control) {
  Session session{.endpoint = endpoint,
                  .control = control,
                  .is_server = options.is_server,
                  .rounds = options.rounds};
  control.say(endpoint.name());
  session.peer = endpoint.insert(control.hear());
  endpoint.on_wait = [&] {
    if (control.is_lost()) throw ControlLost("the other side hung up");
  };
  exercise.play(session);
  endpoint.on_wait = nullptr;
  control.meet("end");
}

void serve_all(const Options& options, Endpoint& endpoint, const Listener& listener) {
  std::vector<Control> clients;
  while (clients.size() < options.clients)
    clients.push_back(listener.accept(options.patience_s, [&] { endpoint.progress(); }));
  serve_many(endpoint, clients);
}

/// A session that ends because the other side went away is followed by the next one on the same endpoint. So is one in which an
/// operation failed, where sessions are left: the first ones may have met delivery state that the peer lost with its process.
int play(const ExerciseEntry& exercise, const Options& options) {
  Endpoint endpoint(exercise.wanted, options.patience_s);
  const auto progress = [&] { endpoint.progress(); };
  std::optional<Listener> listener;
  if (options.is_server) listener.emplace(options.control, options.port);
  if (options.clients > 1 && options.is_server) {
    serve_all(options, endpoint, *listener);
    return kPassed;
  }
  for (unsigned session = 1;; ++session) {
    try {
      play_once(exercise, options, endpoint,
                listener ? listener->accept(options.patience_s, progress)
                         : connect_to(options.control, options.port, options.patience_s, progress));
      return kPassed;
    } catch (const ControlLost& why) {
      if (session == options.sessions) throw;
      std::fprintf(stderr, "session %u ended: %s\n", session, why.what());
    } catch (const OperationFailed& why) {
      if (session == options.sessions) throw;
      std::fprintf(stderr, "session %u ended: %s\n", session, why.what());
    }
    endpoint.drain();
  }
}

int run(int argc, char** argv) {
  Options o;
  CLI::App app{
      "One side of an exercise between two libfabric endpoints. Prints nothing when all went "
      "well."};
  app.name("uet-interop-peer");
  std::string side;
  std::string names;
  for (const ExerciseEntry& e : exercises())
    names += "\n  " + std::string(e.name) + ": " + std::string(e.title);
  app.add_option("side", side, "server or client")
      ->required()
      ->check(CLI::IsMember({"server", "client"}));
  app.add_option("exercise", o.exercise, "what to do:" + names)->required();
  app.add_option("--control", o.control, "IPv4 address where the server listens by TCP")
      ->capture_default_str();
  app.add_option("--port", o.port, "and its port")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  app.add_option("--rounds", o.rounds, "of the exercise mixed")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--clients", o.clients, "of the exercise many, at the server")
      ->check(CLI::Range(1, 4096));
  app.add_option("--sessions", o.sessions, "how often the other side may be started")
      ->check(CLI::Range(1, 100));
  app.add_option("--patience", o.patience_s, "seconds to wait for anything")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kPassed : kUsage;
  }
  o.is_server = side == "server";
  const ExerciseEntry* const exercise = find_exercise(o.exercise);
  if (exercise == nullptr) {
    std::fprintf(stderr, "uet-interop-peer: there is no exercise '%s'; --help lists them\n",
                 o.exercise.c_str());
    return kUsage;
  }
  try {
    return play(*exercise, o);
  } catch (const Unsupported& e) {
    return tell(kUnsupported, "unsupported: ", e);
  } catch (const std::exception& e) {
    return tell(kFailed, "", e);
  }
}

}  // namespace

std::span<const ExerciseEntry> exercises() {
  return kExercises;
}

const ExerciseEntry* find_exercise(std::string_view name) {
  const auto at = std::find_if(kExercises.begin(), kExercises.end(),
                               [&](const ExerciseEntry& e) { return e.name == name; });
  return at == kExercises.end() ? nullptr : at;
}

}  // namespace uet::interop

int main(int argc, char** argv) {
  return uet::apps::run_program("uet-interop-peer", [&] { return uet::interop::run(argc, argv); });
}
