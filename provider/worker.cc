#include "provider/worker.h"

#include <algorithm>
#include <utility>

#include "fep/linger.h"
#include "fep/security.h"
#include "lib/ports/open_port.h"
#include "lib/ports/system_random.h"
#include "provider/errors.h"
#include "provider/patient_lock.h"
#include "provider/port_candidates.h"
#include "provider/progress.h"
#include "provider/provider.h"
#include "provider/workers.h"

namespace uet::provider {
namespace {

/// A sleep is looked at this often: it costs nothing, and bounds what an event that the kernel did not tell could do.
constexpr base::Duration kLongestSleep = base::Duration::from_seconds(1);

/// The thread that forks may itself be in the middle of a call.
constexpr base::Duration kForkPatience = base::Duration::from_ms(100);

}  // namespace

Worker::Worker(const fep::Settings& settings, net::FabricAddress address)
    : settings_(settings), address_(address), rng_(ports::make_rng(settings.seed)) {}

/// Keys that are read again bring jobs.
bool Worker::covers(std::uint32_t job) {
  const std::lock_guard guard(lock_);
  const fep::Security* security = fep_->security();
  return security == nullptr || security->covers(job);
}

bool Worker::start(const PortChoice& choice, std::uint32_t job, std::string& error) {
  if (!settings_.trace.empty()) {
    trace_file_ = fep::TraceFile::open(settings_.trace, trace_, error);
    if (trace_file_ == nullptr) return false;
    last_words_ = std::make_unique<LastWords>(trace_file_->descriptor(), trace_);
  }
  if (!settings_.path_log.empty()) {
    path_log_ = fep::PathLog::open(settings_.path_log, error);
    if (path_log_ == nullptr) return false;
  }
  Workers::note_files(address_, trace_file_.get(), path_log_.get());
  const net::PortRequest request = settings_.port_request(choice.spec, choice.address, rng_);
  port_ = ports::open_port({.request = request, .impair = settings_.impair, .pcap = settings_.pcap},
                           trace_, error);
  if (port_ == nullptr) return false;
  if (!error.empty()) tell_user(std::exchange(error, {}));
  Workers::note_port(address_, port_.get());
  fep::Settings for_job = settings_;
  for_job.job = job;
  const auto config = for_job.fep_config(port_->facts(), ports::number_of_process(settings_.seed));
  if (!config) {
    error = config.error();
    return false;
  }
  const net::PortFacts& facts = port_->facts();
  if (settings_.mtu > facts.ip_mtu)
    tell_user("FI_UET_MTU: " + std::to_string(settings_.mtu) + " is more than port " + facts.name +
              " carries, " + std::to_string(facts.ip_mtu) + ": packets through it are no larger");
  if (config->security != nullptr && !is_configured(settings_)) {
    if (const std::string risk = config->security->why_risky_at(facts.address); !risk.empty())
      tell_user(risk);
  }
  fep_ = std::make_unique<fep::Fep>(*config, *port_, rng_, trace_, clock_.now());
  if (settings_.progress != fep::Progress::kManual) {
    progress_required_ = settings_.progress == fep::Progress::kThread;
    thread_ = std::make_unique<ProgressThread>(*this);
    if (!thread_->start(error)) return false;
  }
  live_ = LiveView::show(*this);
  Workers::note_at_work(address_, this);
  return true;
}

Worker::~Worker() {
  Workers::note_at_work(address_, nullptr);
  live_.reset();
  // It asks us for itself to the end.
  if (thread_ != nullptr) thread_->stop();
  thread_.reset();
  // Without memory for it peers hear nothing more.
  (void)guarded([&] {
    if (fep_ != nullptr) linger();
    return 0;
  });
  fep_.reset();
  Workers::note_port(address_, nullptr);
  port_.reset();
  Workers::note_files(address_, nullptr, nullptr);
}

/// The peers may not have heard our last acknowledgements, and only we can send them again. Stays
/// until every delivery context is closed, or until nothing more comes.
void Worker::linger() {
  const base::Instant begin = clock_now();
  if (path_log_ != nullptr) path_log_->write(begin, *fep_);
  fep_->pds().close_all(begin);
  const auto received = [this] { return trace_.count(base::EventId::kPacketReceived); };
  fep::Linger linger(begin, settings_.rto_max, received());
  Held held(lock_);
  while (true) {
    const base::Instant now = clock_.now_exactly();
    fep_->turn(now);
    if (linger.is_over(now, fep_->is_idle(), received())) return;
    sleep(held, now + base::Duration::from_ms(5), loop_progress_);
  }
}

void WorkerLock::lock_before_fork() {
  auto held = lock_within(*this, kForkPatience);
  is_held_for_fork_ = held.owns_lock();
  (void)held.release();
}

/// Threads that sleep here, and the progress thread, are the parent's: none of them is to be woken or waited for.
void Worker::abandon_in_child() {
  is_abandoned_ = true;
  sleepers_.abandon_in_child();
  progress_required_ = false;
  (void)thread_.release();
  lock_.unlock_in_child();
}

void Worker::stop_thread() {
  if (thread_ != nullptr) thread_->stop();
}

bool Worker::turn_at(base::Instant now) {
  if (is_abandoned_) [[unlikely]]
    return false;
  note_poll(now);
  return turn_loop(now);
}

void Worker::poll() {
  Held held(lock_, std::try_to_lock);
  if (!held) {
    // Its holder may be waiting for this core.
    sched_yield();
    return;
  }
  const base::Instant now = clock_.now();
  if (!courtesy_.is_due(now, turn_for_poll(now))) return;
  const base::Instant left = clock_.now_exactly();
  held.unlock();
  sched_yield();
  if (held.try_lock()) courtesy_.back(left, clock_.now_exactly());
}

/// The caller sees its completions before ACKs leave, where it is known to be back soon. Should it not be, the thread sends them.
/// Those of one poll alone: what comes next has them leave, whatever else may.
bool Worker::turn_for_poll(base::Instant now) {
  if (is_abandoned_) [[unlikely]]
    return false;
  note_poll(now);
  has_completion_ = false;
  const bool have_waited = fep_->holds_acks();
  bool did = fep_->take_in(now);
  const bool may_wait = have_waited ? !has_completion_ && delayed_acks_.may_go_on(now)
                                    : has_completion_ && delayed_acks_.may_wait(now);
  const bool may_hold = may_wait && may_put_off() && thread_->is_watchful();
  if ((!may_hold || !fep_->hold_acks()) && transmit(now)) {
    did = true;
    const bool may_be_acks = has_completion_ || have_waited;
    if (may_be_acks && delayed_acks_.awaits_answer()) delayed_acks_.on_sent(clock_.now_exactly());
  }
  after_turn(now, did);
  return did;
}

/// What is put off waits for the application, and the thread looks after it. One that sleeps in a call would be woken for it.
bool Worker::may_put_off() const {
  return thread_ != nullptr && !has_sleepers();
}

bool Worker::turn_loop(base::Instant now) {
  bool did = fep_->take_in(now);
  did |= transmit(now);
  after_turn(now, did);
  return did;
}

bool Worker::transmit(base::Instant now) {
  delayed_posts_.on_left();
  return fep_->transmit(now);
}

void Worker::after_turn(base::Instant now, bool did) {
  is_port_armed_ = false;
  // Of what peers wrote without a completion here, nothing stays behind.
  if (did && !devices_.empty()) devices_.settle();
  if (path_log_ != nullptr) path_log_->on_turn(now, *fep_);
  if (!did) return;
  idle_poll_.reset();
  loop_progress_.signal();
}

void Worker::after_post(base::Instant now, const DelayedPosts::Post& post) {
  if (is_abandoned_) [[unlikely]]
    return;
  note_call(now);
  idle_poll_.reset();
  delayed_acks_.on_answer(now);
  using Verdict = DelayedPosts::Verdict;
  const Verdict verdict = may_put_off() ? delayed_posts_.on_post(now, post) : Verdict::kLeave;
  if (verdict == Verdict::kWait && thread_->is_watchful()) return;
  transmit(now);
  if (verdict != Verdict::kLeave) delayed_posts_.on_sent(clock_.now_exactly());
}

/// The application calls.
void Worker::note_call(base::Instant now) {
  note_application();
  delayed_acks_.on_call(now);
  delayed_posts_.on_call(now);
}

/// It takes packets in.
void Worker::note_poll(base::Instant now) {
  note_call(now);
  application_polls_.store(application_polls_.load(std::memory_order_relaxed) + 1,
                           std::memory_order_relaxed);
  delayed_posts_.on_poll();
}

/// Ends a long sleep of the progress thread: the deadline that it sleeps until may be stale.
void Worker::note_application() {
  application_turns_.store(application_turns_.load(std::memory_order_relaxed) + 1,
                           std::memory_order_relaxed);
  if (thread_ != nullptr) thread_->wake_from_deep_sleep();
}

void Worker::require_progress_thread() {
  if (thread_ == nullptr || progress_required_.exchange(true)) return;
  thread_->kick();
}

void Worker::application_sleeps() {
  if (has_progress_thread()) thread_->kick();
}

void Worker::carry_out_left() {
  start_left();
  if (thread_ == nullptr || !thread_->is_current()) note_application();
}

/// What several threads posted leaves together, with what that caused in turn.
void Worker::start_left() {
  if (is_abandoned_) return;
  do {
    left_again_ = false;
    left_.take([](LeftWork& work) { return work.carry_out(); });
  } while (left_again_);
  // Locks are given back in destructors. What finds no memory leaves with a later turn.
  (void)guarded_fast([&] { return transmit(clock_.now()); });
}

bool Worker::has_sleepers() const {
  return !sleepers_.empty() || (thread_ != nullptr && thread_->is_in_deep_sleep());
}

/// A turn takes the wake-up of its port away, also from those who sleep on it; when packets wait already, one of them is woken.
void Worker::serve_sleepers() {
  const base::Instant deadline = fep_->next_deadline();
  bool has_news = false;
  if (!is_port_armed_ && !sleepers_.empty()) {
    is_port_armed_ = port_->arm_wakeup();
    has_news = !is_port_armed_;
  }
  sleepers_.serve(has_news ? base::Instant{} : deadline);
  if (thread_ != nullptr) thread_->serve(deadline);
}

bool Worker::sleep(Held& held, base::Instant end, WaitObject& object) {
  is_port_armed_ = port_->arm_wakeup();
  const base::Instant due = is_port_armed_ ? fep_->next_deadline() : base::Instant{};
  const base::Instant now = clock_.now_exactly();
  if (std::min(end, due) <= now) {
    held.unlock();
    held.lock();
    return true;
  }
  const int port_fd = port_->wakeup_fd();  // a port may lose it, with the lock held
  const base::Duration nap = port_fd < 0 ? idle_poll_.next() : kLongestSleep;
  const base::Instant alarm = std::min({end, due, now + nap});
  // Of a port that wakes no sleeper the thread watches that looks at it first.
  const bool watches = !sleepers_.are_watching() || (port_fd < 0 && alarm < sleepers_.alarm());
  Sleeper me(watches ? alarm : std::min(end, now + kLongestSleep), watches);
  sleepers_.add(me);
  object.add(me);
  application_sleepers_.fetch_add(1, std::memory_order_relaxed);
  held.unlock();
  struct Back {  // also when the thread is cancelled in its sleep
    ~Back() {
      held.lock();
      worker.application_sleepers_.fetch_sub(1, std::memory_order_relaxed);
      worker.sleepers_.remove(me);
    }
    Worker& worker;
    Held& held;
    Sleeper& me;
  } const back{*this, held, me};
  return me.sleep(watches ? port_fd : -1, me.alarm() - now);
}

}  // namespace uet::provider
