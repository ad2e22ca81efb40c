/// The READs that a target issues for rendezvous, and its requests to restart what it put off: a bounded number, which sources
/// share. [SES 9, decision 142]
///
/// It says which message has come to its end; what that means to the receive is for its caller.
#pragma once

#include "ses/core.h"
#include "ses/loop_clock.h"
#include "ses/sender_table.h"

namespace uet::ses {

class Fetches {
 public:
  Fetches(Core& core, SenderTable& senders, const LoopClock& clock);
  ~Fetches();
  Fetches(const Fetches&) = delete;
  Fetches& operator=(const Fetches&) = delete;

  /// A receive has taken the message: from now on it is among those of its endpoint that are fetched.
  void join(UnexpectedMessage& u);
  /// Nothing is fetched for it any more. A READ under way goes on, and its end is that of no message.
  void leave(UnexpectedMessage& u);
  /// What is missing of it is asked for when there is a place, and its turn.
  void ask(Instant now, UnexpectedMessage& u);
  /// There may be places.
  void serve(Instant now);

  struct End {
    bool is_over = false;                  ///< there is a place: serve() must follow
    UnexpectedMessage* message = nullptr;  ///< whole, or it will not be; null: it has left before
    ReturnCode code = ReturnCode::kOk;
  };
  /// A READ, or a request to restart, has come to its end.
  End on_fetched(Instant now, Fetch& fetch, ReturnCode code);

  /// What this token of a restart was made for; null when it was made for none that is open.
  Fetch* find_restart(std::uint32_t token);

  struct Idle {
    UnexpectedMessage* message = nullptr;
    Fetch* under_way = nullptr;  ///< without a message now: to be given up
  };
  /// A message of which its source sends nothing for as long as one may rest, and whose fetch it gives up. [SES 4.3 rule 9]
  Idle take_idle();
  /// The same of one that waits for its turn behind others of its source.
  UnexpectedMessage* find_idle_waiting();

  std::size_t messages() const { return messages_; }

 private:
  void wait(UnexpectedMessage& u);
  void end_wait(UnexpectedMessage& u);
  bool begin(Instant now, UnexpectedMessage& u);
  bool go_on(Instant now, Fetch& fetch);
  bool ask_for_restart(Instant now, Fetch& fetch);
  void release(Fetch& fetch);
  bool is_idle(std::int64_t since_ns) const;

  Core& core_;
  SenderTable& senders_;
  const LoopClock& clock_;
  ChunkedPool<Fetch> pool_;
  boost::intrusive::list<Fetch, boost::intrusive::member_hook<Fetch, ListHook, &Fetch::hook>>
      active_;
  FetchTurnList turns_;       ///< senders whose messages wait for a place among them
  std::size_t messages_ = 0;  ///< those that have joined
};

}  // namespace uet::ses
