/* A PDC's life between one initiator and one target: open by SYN, guaranteed response and CLEAR, Close Command,
 * over a network that loses, duplicates and reorders. [PDS 6, 7.3, 9.3, 10.4, 11, 16]
 *
 * PSNs are 0..N-1 for data and N for the Close Command. A "count" c stands for "every PSN below c": cack, clear and the
 * receive edge are counts, so nothing is negative. PSN GTD gets a guaranteed response, the others the default one.
 *
 * Build options flip one rule each; every one of them must be caught (run.sh checks that):
 *   NO_TOMBSTONE     the target forgets a closed PDC at once
 *   CACK_PASSES_GTD  CACK moves over a guaranteed response that was not cleared
 *   CLEAR_ON_SACK    the initiator clears what it has only seen covered by CACK, not answered
 *   CLOSE_EARLY      the initiator closes before every PSN is acknowledged
 *   INV_IS_FATAL     NACK INV_DPDCID for the Close Command counts as an error although the target closed normally
 */
#ifndef N
#define N 2
#endif
#define GTD 0
#ifndef DEPTH
#define DEPTH 3      /* packets in flight, each direction */
#endif
#ifndef LOSSES
#define LOSSES 2     /* packets the network may lose, both directions together */
#endif
#ifndef COPIES
#define COPIES 2     /* packets the network may deliver twice */
#endif
#ifndef RETRIES
#define RETRIES 3    /* retransmissions the initiator may make */
#endif
#define NONE 15

mtype = { REQ, CLEAR, CLOSE, ACK, INV_DPDCID, UNEXP_EVENT };
mtype = { CREATING, ESTABLISHED, CLOSE_ACK_WAIT, CLOSED, FAILED };

/* type, psn, syn, clear count */
chan forward = [DEPTH] of { mtype, byte, bool, byte };
/* type, psn, cack count, carries the guaranteed response */
chan back = [DEPTH] of { mtype, byte, byte, bool };

byte losses = LOSSES, copies = COPIES;

mtype i_state = CREATING;   /* initiator */
mtype t_state = CLOSED;     /* target */
byte delivered[N];          /* how often SES at the target saw each PSN */
bool sent[N];
bool answered[N];           /* SES at the initiator has its response */
byte opened = 0;            /* PDCs the target has created */

/* The network decides on sending: lose it, carry it once, carry it twice. A full pipe loses. */
inline transmit_forward(type, psn, syn, clear) {
  if
  :: len(forward) < DEPTH -> forward!type, psn, syn, clear
  :: len(forward) + 1 < DEPTH && copies > 0 ->
     copies--; forward!type, psn, syn, clear; forward!type, psn, syn, clear
  :: losses > 0 -> losses--
  :: len(forward) == DEPTH -> skip
  fi
}

inline transmit_back(type, psn, cack, gtd) {
  if
  :: len(back) < DEPTH -> back!type, psn, cack, gtd
  :: len(back) + 1 < DEPTH && copies > 0 ->
     copies--; back!type, psn, cack, gtd; back!type, psn, cack, gtd
  :: losses > 0 -> losses--
  :: len(back) == DEPTH -> skip
  fi
}

proctype Initiator() {
  byte next = 0;             /* tx_next */
  byte tx_clear = 0;         /* count: every PSN below is answered */
  byte left = RETRIES;
  byte psn, cack, n;
  bool gtd, clear_wanted = false, all;
  mtype type;

end_wait:
  do
  /* New data. */
  :: atomic { (i_state == CREATING || i_state == ESTABLISHED) && next < N ->
       sent[next] = true;
       transmit_forward(REQ, next, (i_state == CREATING), tx_clear);
       next++ }

  /* RTO of any unanswered PSN: rebuilt with present ids and a fresh clear. */
  :: atomic { (i_state == CREATING || i_state == ESTABLISHED) && left > 0 && next > 0 ->
       n = 0;
       do
       :: n < next && !answered[n] -> break
       :: n < next -> n++
       :: n >= next -> break
       od;
       if
       :: n < next -> left--; transmit_forward(REQ, n, (i_state == CREATING), tx_clear)
       :: else
       fi; n = 0 }

  /* PDS_Clear_Time: no request carries the clear. */
  :: atomic { i_state == ESTABLISHED && clear_wanted ->
       clear_wanted = false; transmit_forward(CLEAR, 0, false, tx_clear) }

  /* Everything is answered: close. */
  :: atomic { i_state == ESTABLISHED && next == N ->
       all = true; n = 0;
       do :: n < N -> all = all && answered[n]; n++ :: n >= N -> break od;
#ifdef CLOSE_EARLY
       all = true;
#endif
       if
       :: all -> i_state = CLOSE_ACK_WAIT; transmit_forward(CLOSE, N, false, tx_clear)
       :: else
       fi; n = 0; all = false }
  :: atomic { i_state == CLOSE_ACK_WAIT && left > 0 -> left--; transmit_forward(CLOSE, N, false, tx_clear) }

  /* Retry limit: only when nothing more can come. */
  :: atomic { left == 0 && len(forward) == 0 && len(back) == 0 &&
              (i_state == CREATING || i_state == ESTABLISHED) -> i_state = FAILED }
  :: atomic { left == 0 && len(forward) == 0 && len(back) == 0 && i_state == CLOSE_ACK_WAIT -> i_state = CLOSED }

  :: atomic { back?ACK, psn, cack, gtd ->
       if
       :: i_state == CLOSED || i_state == FAILED -> skip
       :: else ->
          if :: i_state == CREATING -> i_state = ESTABLISHED :: else fi;
          /* Step 1: the PSN whose response is carried. */
          if
          :: psn < N && sent[psn] && !answered[psn] ->
             assert(psn != GTD || gtd);
             answered[psn] = true;
             if :: psn == GTD -> clear_wanted = true :: else fi
          :: else
          fi;
          /* Step 2: default responses for everything below CACK. */
          n = 0;
          do
          :: n < N && n < cack ->
#ifndef CLEAR_ON_SACK
             if
             :: !answered[n] -> assert(n != GTD); assert(sent[n]); answered[n] = true
             :: else
             fi;
#endif
             n++
          :: n >= N || n >= cack -> break
          od;
          /* Left edge. */
#ifdef CLEAR_ON_SACK
          if :: cack > tx_clear && cack <= N -> tx_clear = cack :: else fi;
          if :: psn < N && psn + 1 > tx_clear -> tx_clear = psn + 1 :: else fi;
#else
          do
          :: tx_clear < N && answered[tx_clear] -> tx_clear++
          :: else -> break
          od;
#endif
          if
          :: i_state == CLOSE_ACK_WAIT && (psn == N || cack == N + 1) -> i_state = CLOSED
          :: else
          fi
       fi; n = 0; psn = 0; cack = 0; gtd = false }

  :: atomic { back?INV_DPDCID, psn, cack, gtd ->
       if
#ifndef INV_IS_FATAL
       :: i_state == CLOSE_ACK_WAIT && psn == N -> i_state = CLOSED
#endif
       :: i_state == ESTABLISHED && psn < N && sent[psn] && !answered[psn] -> i_state = FAILED
#ifdef INV_IS_FATAL
       :: i_state == CLOSE_ACK_WAIT && psn == N -> assert(false)
#endif
       :: else
       fi; psn = 0; cack = 0; gtd = false }

  :: atomic { back?UNEXP_EVENT, psn, cack, gtd -> assert(false) }   /* a correct initiator never draws it */

  /* Reordering: any packet may be overtaken. */
  :: atomic { len(back) > 1 -> back?type, psn, cack, gtd; back!type, psn, cack, gtd;
              type = 0; psn = 0; cack = 0; gtd = false }
  od
}

proctype Target() {
  bool received[N];
  byte cack = 0, rx_clear = 0, edge = 0;
  bool tombstone = false;
  byte psn, clear, n;
  bool syn;
  mtype type;

end_wait:
  do
  :: atomic { forward?type, psn, syn, clear ->
       if
       :: t_state == CLOSED && type == REQ && syn && !tombstone ->      /* a SYN opens the PDC */
          t_state = ESTABLISHED; opened++;
          cack = 0; rx_clear = 0; edge = 0;
          n = 0;
          do :: n < N -> received[n] = false; n++ :: n >= N -> break od; n = 0
       :: t_state == CLOSED && type == REQ && syn && tombstone -> goto consumed  /* ghost */
       :: t_state == CLOSED && (type == CLOSE || (type == REQ && !syn)) ->
          transmit_back(INV_DPDCID, psn, 0, false); goto consumed
       :: t_state == CLOSED && type == CLEAR -> goto consumed
       :: t_state == ESTABLISHED -> skip
       fi;

       /* CLEAR: monotonic, never beyond what arrived. */
       if :: clear > rx_clear && clear <= edge -> rx_clear = clear :: else fi;

       if
       :: type == REQ && !received[psn] ->
          received[psn] = true;
          delivered[psn]++;
          assert(delivered[psn] <= 1)
       :: else
       fi;
       n = 0;
       do :: n < N && received[n] -> n++ :: else -> break od;
       edge = n; n = 0;
       cack = 0;
       do
       :: cack < N && received[cack] &&
#ifdef CACK_PASSES_GTD
          true
#else
          (cack != GTD || cack < rx_clear)
#endif
          -> cack++
       :: else -> break
       od;

       if
       :: type == REQ ->
          /* Stored response while uncleared, the default one afterwards; duplicates are answered alike. */
          transmit_back(ACK, psn, cack, (psn == GTD && psn >= rx_clear))
       :: type == CLEAR -> transmit_back(ACK, NONE, cack, false)
       :: type == CLOSE && edge == N ->
          transmit_back(ACK, N, N + 1, false);
          t_state = CLOSED;
#ifndef NO_TOMBSTONE
          tombstone = true
#endif
       :: type == CLOSE && edge < N -> transmit_back(UNEXP_EVENT, N, 0, false); t_state = CLOSED; tombstone = true
       fi;
consumed:
       type = 0; psn = 0; syn = false; clear = 0 }

  :: atomic { len(forward) > 1 -> forward?type, psn, syn, clear; forward!type, psn, syn, clear;
              type = 0; psn = 0; syn = false; clear = 0 }
  od
}

/* An observer from outside: a clean end means everything was delivered once and answered. */
active proctype Observer() {
  byte n = 0;
end_wait:
  atomic { i_state == CLOSED ->
    do
    :: n < N -> assert(delivered[n] == 1); assert(answered[n]); n++
    :: n >= N -> break
    od }
}

init { atomic { run Initiator(); run Target() } }
