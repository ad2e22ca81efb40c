#include "pds/tx_poll.h"

#include <algorithm>

namespace uet::pds {

namespace {

/// How many packets the first of several PDCs of a CCC may still send. All go to one peer under one window, so what a turn delays is a
/// packet of another message there, by 32 KiB at payloads of 4 KiB. A turn ends with its message: messages that take PDCs in turn
/// leave in their order, as those that are numbered are to arrive.
std::size_t left_of_turn(const Congestion& congestion) {
  constexpr std::uint32_t kTurn = 8;
  return std::min(kTurn - congestion.turn,
                  congestion.ready.front().tx.queue.front().segments_left());
}

/// The first one goes behind the others.
template <typename List>
void end_turn(List& list) {
  if (&list.front() != &list.back()) list.splice(list.end(), list, list.begin());
}

void end_turn(Congestion& congestion) {
  congestion.turn = 0;
  end_turn(congestion.ready);
}

void leave_turns(Congestion& congestion) {
  congestion.turn = 0;
  congestion.ready.pop_front();
}

template <typename List>
bool is_alone(const List& list) {
  return &list.front() == &list.back();
}

}  // namespace

// A CCC that may not send leaves the ring and comes back with the next event that can change that.
std::size_t DataPoll::poll(Instant now, const Planes& planes, std::span<net::TxPacket> out) {
  if (env_.sends_credit_state) out = out.first(1);  // what asks for credit goes before the next one
  std::size_t sent = 0;
  while (sent < out.size()) {
    CongestionRing waiting;
    const std::size_t more = poll_ready(now, planes, out.subspan(sent), waiting);
    if (!waiting.empty()) scheduler_.ready().splice(scheduler_.ready().begin(), waiting);
    if (more == 0) break;
    sent += more;
  }
  return sent;
}

// `waiting` gets those whose good paths lead through ports that are busy.
std::size_t DataPoll::poll_ready(Instant now, const Planes& planes, std::span<net::TxPacket> out,
                                 CongestionRing& waiting) {
  CongestionRing& ready = scheduler_.ready();
  while (!ready.empty()) {
    Congestion& congestion = ready.front();
    // While every port with a link is free there is nothing to wait for.
    if (planes.free != planes.up && congestion.sprayed &&
        congestion.ccc->worthwhile_planes(now, planes.free) == 0) {
      ready.pop_front();
      waiting.push_back(congestion);
      continue;
    }
    while (!congestion.ready.empty()) {
      Pdc& pdc = congestion.ready.front();
      Psn psn;
      const DataSender::Work work = sender_.next_work(now, pdc, psn);
      if (work == DataSender::Work::kNone) {
        leave_turns(congestion);
        continue;
      }
      const ByteCount nominal = sender_.nominal_of_next(pdc, work, psn);
      if (!congestion.ccc->may_send(nominal) && !pdc.tx.has_credit_exemption) {
        if (!find_credit_exemption(now, congestion)) break;
        continue;
      }
      if (work == DataSender::Work::kNew && sender_.is_plain(pdc)) [[likely]] {
        const bool has_all_turns = planes.free == planes.up && is_alone(ready) && waiting.empty();
        const bool is_only_one = is_alone(congestion.ready);
        const std::size_t turn = !has_all_turns ? 1
                                 : is_only_one  ? out.size()
                                                : left_of_turn(congestion);
        const std::size_t sent =
            sender_.send_run(now, pdc, nominal, planes, out.first(std::min(turn, out.size())));
        if (is_only_one || sent == turn)
          end_turn(congestion);
        else
          congestion.turn += static_cast<std::uint8_t>(sent);
        end_turn(ready);
        return sent;
      }
      const Built built = sender_.send(now, pdc, work, psn, planes, out.front());
      if (built == Built::kNothing) {
        leave_turns(congestion);
        continue;
      }
      if (built == Built::kPacket) end_turn(congestion);
      end_turn(ready);
      return built == Built::kPacket ? 1 : 0;
    }
    ready.pop_front();
  }
  return 0;
}

// A PDC in CREATING cannot ask for credit, and when all its packets were NACKed no RTO is armed: one packet per RTO is exempt from
// credit, to avoid deadlock. [CC 5.3]
void DataPoll::arm_credit_exemption(Instant now, Pdc& pdc) {
  if (pdc.state == PdcState::kCreating && pdc.tx.rtx_count > 0 &&
      pdc.deadline(PdcTimer::kRetransmit).is_never())
    scheduler_.set_timer(pdc, PdcTimer::kRetransmit, now + window_.rto(pdc, 0));
}

// The CCC may not send. One of its PDCs that is exempt from credit comes to the front, wherever it stands; the others wait for theirs.
// A reader whose window is full has any number of them, and each of its ACKs leads here.
bool DataPoll::find_credit_exemption(Instant now, Congestion& congestion) {
  if (!congestion.seeks_exemption) return false;
  for (Pdc& pdc : congestion.ready) {
    ++looked_;
    if (!pdc.tx.has_credit_exemption) {
      arm_credit_exemption(now, pdc);
      continue;
    }
    congestion.ready.erase(congestion.ready.iterator_to(pdc));
    congestion.ready.push_front(pdc);
    return true;
  }
  congestion.seeks_exemption = false;
  return false;
}

}  // namespace uet::pds
