/* Openings in a secure domain: an initiator opens and closes contexts towards a target, over a network that reorders
 * and loses, while an attacker who recorded every packet sends copies of any of them at any time. Nothing may be delivered
 * twice, and an honest message in the end is. [PDS 6.5, TSS 11]
 *
 * Each context carries one message in its SYN. Identifiers 0 to MESSAGES - 1 are the first contexts of the messages, those
 * behind them the ones on which a message goes again. A start PSN is a small number (no wrap). All packets verify: the attacker has only whole recorded ones, which is what sealing leaves him.
 * A target that restarts is a new program; a message may be delivered to it while the initiator still asks, and never after.
 *
 * METHOD 0: while no earlier life of the target has used the keys, it expects a PSN of this source (0-RTT), and a stranger opens at
 * once; after a restart every opening is challenged. METHOD 1: every opening is challenged with a random start (1-RTT): here a
 * number never used before, smaller or larger than the others.
 *
 * RENEWED: the keys came while the target was away, with contexts of the initiator towards its earlier life: no life of it has used them, and a context
 * may turn out to be lost, on which its message goes again on another one: a write, which may be carried out twice until the initiator knows that it
 * was, and never after. The initiator numbers what it seals.
 *
 * HELD: nothing is lost, but the attacker keeps one packet of the target back as long as he likes. When all packets have been answered the initiator
 * is where the target is: else its message would go again. NO_WAY_BACK: it stays away from a start that it was moved from, though the target says
 * that it is not where the initiator is now.
 *
 * Build options flip one rule each; every one of them must be caught (run.sh checks that):
 *   NO_GUARD         a SYN opens at once, whatever its start
 *   NO_FLOOR_AT_CLOSE  the target does not raise the expected PSN when a context closes
 *   TRUST_STRANGERS  a target that restarted opens for strangers at once
 *   TRUST_THE_KNOWN  a target that restarted challenges a source once, and then expects a PSN of it
 *   ANY_CONFIRMS     while a challenge is unanswered, a SYN with any start confirms it
 *   TRUST_OVERTAKEN  (with RENEWED) the target takes no notice of the order in which packets were sealed
 *   HEED_OLD_WORDS   (with HELD and NO_WAY_BACK) what the target said before moves the initiator away from where it has been moved to
 *   STALE_IS_FATAL   INVALID_SYN for a SYN of before the challenge ends the initiator's context, and its message goes again
 */
#ifndef METHOD
#define METHOD 0
#endif
#ifndef MESSAGES
#define MESSAGES 2
#endif
#ifndef RECORDS
#define RECORDS 3    /* packets the attacker can keep */
#endif
#ifndef REPLAYS
#define REPLAYS 2
#endif
#ifndef RESENDS
#define RESENDS 1   /* copies of a SYN that the initiator may send */
#endif
#ifndef RESTARTS
#define RESTARTS 1   /* of the target */
#endif
#ifdef HELD
#define BACK 12
#else
#define BACK 2
#endif
#ifndef EXPIRIES
#define EXPIRIES 1
#endif
#ifndef LOW
#define LOW 0         /* a challenge before all others, such as 90; 0: there is none */
#endif
#define UNKNOWN 255
#ifdef TRUST_THE_KNOWN
#define TRUSTED true
#else
#define TRUSTED fresh
#endif

#ifdef RENEWED
#define SEAL sealed++; number = sealed
#define SEAL_CLOSE number = sealed + 1   /* as the next SYN: repeated, it stays one state */
#define STAYS_FRESH (fresh && newest == 0)
#else
#define SEAL number = 0
#define SEAL_CLOSE number = 0
#define STAYS_FRESH false
#endif
#ifdef TRUST_OVERTAKEN
#define NEWEST true
#else
#define NEWEST (number >= newest)
#endif

mtype = { SYN, CLOSE, ACK, NEW_START, INVALID_SYN, LOST, CLOSED_ACK };

/* type, message, start, number */
chan forward = [2] of { mtype, byte, byte, byte };
/* type, message, value: required start, expected PSN or refused start; number */
chan back = [BACK] of { mtype, byte, byte, byte };
#ifdef HELD
#define SAY(type, m, value) said++; back!type, m, value, said
#define HEAR(number) if :: number > heard -> heard = number :: else -> skip fi
#else
#define SAY(type, m, value) back!type, m, value, 0
#define HEAR(number) skip
#endif

byte delivered[MESSAGES];     /* to this life of the target */
bool finished[MESSAGES];      /* the initiator knows that it was delivered */
#define IDS (2 * MESSAGES)
byte open_start[IDS], announced[IDS];   /* contexts at the target, by their identifier */
byte recorded_message[RECORDS], recorded_start[RECORDS], recorded_number[RECORDS], records = 0;
byte sealed = 0;
byte next_random = 100, next_low = LOW;
byte restarts = RESTARTS;
byte expiries = EXPIRIES;       /* challenges that New_PDC_Time may end */
bool over = false;
#ifdef HEED_OLD_WORDS
#define IS_OLD false
#else
#define IS_OLD (word < heard)
#endif
bool holds = false;      /* the attacker keeps a packet of the target back */
#ifdef HELD
byte said = 0;
#define NOTHING_WAS_LOST assert(false)
#else
#define NOTHING_WAS_LOST skip
#endif

/* Sealed and recorded, and carried or lost. */
inline send_syn(message, start) {
  SEAL;
  if
  :: records < RECORDS ->
     recorded_message[records] = message; recorded_start[records] = start; recorded_number[records] = number; records++
  :: else -> skip
  fi;
#ifdef HELD
  forward!SYN, message, start, number
#else
  if
  :: nfull(forward) -> forward!SYN, message, start, number
  :: true -> skip
  fi
#endif
}

proctype Initiator() {
  byte message = 0, id, start, former, told = 1, left, value, m, number, word, heard = 0;
  bool moved, done;
  do
  :: message < MESSAGES ->
     id = message; start = told; left = RESENDS; moved = false; done = false;
     send_syn(id, start);
     do
     :: !done && left > 0 -> left--; send_syn(id, start)
     :: back?NEW_START, m, value, word ->
        if
        :: !done && m == id && value != start && !(moved && IS_OLD) ->   /* in CREATING, for what is outstanding */
           former = start; start = value; moved = true; send_syn(id, start)
        :: else -> skip
        fi;
        HEAR(word)
     :: back?INVALID_SYN, m, value, word ->
        HEAR(word);
        if
#ifdef HELD
#ifndef NO_WAY_BACK
        :: !done && m == id && moved && value == start ->   /* the target has opened where this context was before */
           start = former; former = value; send_syn(id, start)
#endif
#endif
#ifdef STALE_IS_FATAL
        :: !done && m == id && id < MESSAGES ->      /* the message goes again on another context */
           id = message + MESSAGES; start = start + 3; moved = false; send_syn(id, start)
#else
        :: !done && m == id && !moved && id < MESSAGES ->
           id = message + MESSAGES; start = start + 3; send_syn(id, start)
#endif
        :: else -> skip
        fi
     :: back?LOST, m, value, word ->
        if
        :: !done && m == id && !moved && id < MESSAGES ->
           id = message + MESSAGES; start = start + 3; send_syn(id, start)
        :: else -> skip
        fi
     :: back?ACK, m, value, word -> HEAR(word); if :: m == id && value == start -> done = true; finished[message] = true :: else -> skip fi
     :: back?CLOSED_ACK, m, value, word -> HEAR(word); if :: m == id && done -> if :: value > told -> told = value :: else -> skip fi; break :: else -> skip fi
     :: done && empty(forward) -> SEAL_CLOSE; forward!CLOSE, id, start, number
     :: !done && left == 0 && empty(forward) && empty(back) && !holds -> NOTHING_WAS_LOST; goto gave_up   /* retries are used up: an error, not a copy */
     od;
     message++
  :: else -> break
  od;
gave_up:
  over = true;
end_drain:
  do
  :: back?_, _, _, _ -> skip
  od
}

proctype Target() {
  byte expected = UNKNOWN, m, s, number, newest = 0;
  mtype type;
  bool fresh = true, accepts;
end_wait:
  do
  :: restarts > 0 && !over ->                 /* everything is forgotten, and it is known whether the keys were used */
     atomic {
       restarts--; expected = UNKNOWN; fresh = STAYS_FRESH; newest = 0;
       for (m : 0 .. IDS - 1) { open_start[m] = UNKNOWN; announced[m] = UNKNOWN; delivered[m % MESSAGES] = 0 }
       m = 0;
#ifdef RENEWED
       if
       :: nfull(back) -> if :: m = 0 :: m = MESSAGES - 1 fi; SAY(LOST, m, 0)
       :: true -> skip
       fi
#endif
     }
  :: expiries > 0 && announced[0] != UNKNOWN -> expiries--; announced[0] = UNKNOWN   /* New_PDC_Time */
  :: atomic { forward?type, m, s, number ->
     if
     :: type == CLOSE && open_start[m] == s ->
        open_start[m] = UNKNOWN;
#ifndef NO_FLOOR_AT_CLOSE
        if
        :: METHOD == 0 && (expected == UNKNOWN || s + 1 > expected) -> expected = s + 1
        :: else -> skip
        fi;
#endif
        if :: nfull(back) -> SAY(CLOSED_ACK, m, (expected == UNKNOWN -> 1 : expected)) :: full(back) -> skip fi
     :: type == CLOSE && open_start[m] != s ->   /* INV_DPDCID: closed before */
        if :: nfull(back) -> SAY(CLOSED_ACK, m, 0) :: full(back) -> skip fi
     :: type == SYN && open_start[m] != UNKNOWN ->
        if
        :: open_start[m] == s -> if :: nfull(back) -> SAY(ACK, m, s) :: full(back) -> skip fi
        :: else -> if :: nfull(back) -> SAY(INVALID_SYN, m, s) :: full(back) -> skip fi
        fi
     :: type == SYN && open_start[m] == UNKNOWN ->
#ifdef NO_GUARD
        accepts = true;
#else
        if
        :: announced[m] != UNKNOWN ->
#ifdef ANY_CONFIRMS
           accepts = true
#else
           accepts = (s == announced[m]);
           if   /* the initiator leaves that start */
           :: !accepts && METHOD == 0 && (expected == UNKNOWN || s + 1 > expected) -> expected = s + 1
           :: else -> skip
           fi
#endif
        :: announced[m] == UNKNOWN ->
#ifdef TRUST_STRANGERS
           accepts = (METHOD == 0 && (expected == UNKNOWN || s >= expected))
#else
           accepts = (METHOD == 0 && TRUSTED && NEWEST && (expected != UNKNOWN && s >= expected || expected == UNKNOWN && fresh))
#endif
        fi;
#endif
        if
        :: accepts ->
           open_start[m] = s; announced[m] = UNKNOWN;
           delivered[m % MESSAGES]++;
#ifdef RENEWED
           assert(!finished[m % MESSAGES]);
#else
           assert(delivered[m % MESSAGES] == 1 && !finished[m % MESSAGES]);
#endif
           if :: nfull(back) -> SAY(ACK, m, s) :: full(back) -> skip fi
        :: else ->
           if
           :: announced[m] == UNKNOWN && METHOD == 0 && TRUSTED && NEWEST && expected != UNKNOWN -> announced[m] = expected
           :: announced[m] == UNKNOWN && (METHOD == 1 || !TRUSTED || !NEWEST || expected == UNKNOWN) ->
#ifdef RENEWED
              if
              :: METHOD == 0 && (expected == UNKNOWN || s + 1 > expected) -> expected = s + 1
              :: else -> skip
              fi;
#endif
              if   /* any number that was not used before: behind all others, or once before them */
              :: announced[m] = next_random; next_random = next_random + 20
              :: METHOD == 0 && next_low != 0 -> announced[m] = next_low; next_low = 0
              fi
           :: else -> skip
           fi;
           if :: nfull(back) -> SAY(NEW_START, m, announced[m]) :: full(back) -> skip fi
        fi
     fi;
     if :: number > newest -> newest = number :: else -> skip fi }
  od
}

proctype Attacker() {
  byte left = REPLAYS, which;
end_idle:
  do
  :: left > 0 && records > 0 && nfull(forward) ->
     left--;
     if
     :: which = 0
     :: records > 1 -> which = 1
     :: records > 2 -> which = 2
     fi;
     forward!SYN, recorded_message[which], recorded_start[which], recorded_number[which];
     which = 0
  :: left == 0 -> break
  od
}

#ifdef HELD
/* Keeps one packet of the target back, until later ones have come. */
proctype Holder() {
  byte m, value, word;
end_holder:
  atomic { back?NEW_START, m, value, word -> holds = true };
  atomic { back!NEW_START, m, value, word -> holds = false }
}
#endif

init {
  atomic {
    byte m;
    for (m : 0 .. IDS - 1) { open_start[m] = UNKNOWN; announced[m] = UNKNOWN }
#ifdef HELD
    run Holder();
#endif
    run Initiator(); run Target(); run Attacker() }
}
