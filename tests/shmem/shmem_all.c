// Every kind of operation of OpenSHMEM 1.4: puts and gets of all sizes, strided and not waited for, atomics, locks, waits,
// collectives. Each process checks what it can know; the last line of each is "pe P of N: W wrong".

#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { kLongest = 100000, kRounds = 50 };

static int me, pes, next, previous;
static long wrong;

// Symmetric memory: at the same place everywhere.
static long slots[kLongest];
static long source[kLongest];
static long counter, guarded, lock, flag;
static unsigned long bits;
static long work[SHMEM_REDUCE_MIN_WRKDATA_SIZE + 64];
static long sync_words[4][SHMEM_REDUCE_SYNC_SIZE + SHMEM_BCAST_SYNC_SIZE + SHMEM_COLLECT_SYNC_SIZE +
                          SHMEM_ALLTOALL_SYNC_SIZE];

static void expect(int is_right, const char* what) {
  if (is_right) return;
  if (++wrong <= 5) fprintf(stderr, "pe %d: wrong: %s\n", me, what);
}

static long value(int pe, int i) {
  return pe * 1000000L + i;
}

static void fill(int n) {
  for (int i = 0; i < n; ++i) {
    source[i] = value(me, i);
    slots[i] = -1;
  }
  shmem_barrier_all();
}

static void expect_slots(int pe, int n, const char* what) {
  int is_right = 1;
  for (int i = 0; i < n; ++i) is_right &= slots[i] == value(pe, i);
  expect(is_right, what);
  shmem_barrier_all();
}

/// Of every size, to the next process and from it.
static void put_and_get(void) {
  static long back[kLongest];
  for (int n = 1; n <= kLongest; n *= 10) {
    fill(n);
    shmem_long_put(slots, source, (size_t)n, next);
    shmem_barrier_all();
    expect_slots(previous, n, "put");
    shmem_long_get(back, source, (size_t)n, next);
    int is_right = 1;
    for (int i = 0; i < n; ++i) is_right &= back[i] == value(next, i);
    expect(is_right, "get");
    fill(n);
    for (int i = 0; i < n; i += n / 10 + 1) {
      const int rest = n - i, length = n / 10 + 1 < rest ? n / 10 + 1 : rest;
      shmem_long_put_nbi(slots + i, source + i, (size_t)length, next);
    }
    shmem_quiet();
    shmem_barrier_all();
    expect_slots(previous, n, "put_nbi");
  }
  fill(10);
  shmem_long_p(&slots[3], 77 + me, next);
  shmem_barrier_all();
  expect(slots[3] == 77 + previous, "p");
  expect(shmem_long_g(&slots[3], next) == 77 + me, "g");
  shmem_barrier_all();
}

/// Every third slot of the target from every second of the source.
static void strided(void) {
  const int n = 1000;
  fill(3 * n);
  shmem_long_iput(slots, source, 3, 2, (size_t)n, next);
  shmem_barrier_all();
  int is_right = 1;
  for (int i = 0; i < 3 * n; ++i)
    is_right &= slots[i] == (i % 3 == 0 ? value(previous, i / 3 * 2) : -1);
  expect(is_right, "iput");
  shmem_barrier_all();
}

/// Data, a fence, a flag: who sees the flag sees the data.
static void wait_for_flag(void) {
  for (long round = 1; round <= kRounds; ++round) {
    const int n = 500;
    for (int i = 0; i < n; ++i) source[i] = value(me, i) + round;
    shmem_long_put(slots, source, (size_t)n, next);
    shmem_fence();
    shmem_long_p(&flag, round, next);
    shmem_long_wait_until(&flag, SHMEM_CMP_GE, round);
    int is_right = 1;
    for (int i = 0; i < n; ++i) is_right &= slots[i] == value(previous, i) + round;
    expect(is_right, "put before the flag");
    shmem_barrier_all();
  }
}

static void atomics(void) {
  long last = -1;
  for (int i = 0; i < kRounds; ++i) {
    const long got = shmem_long_atomic_fetch_add(&counter, 1, 0);
    expect(got > last, "fetch_add grows");
    last = got;
    shmem_long_atomic_inc(&counter, 0);
    shmem_long_atomic_add(&counter, 3, 0);
    expect(shmem_long_atomic_fetch_inc(&counter, 0) > last, "fetch_inc grows");
  }
  shmem_ulong_atomic_or(&bits, 1UL << me, 0);
  shmem_barrier_all();
  expect(shmem_long_atomic_fetch(&counter, 0) == 6L * kRounds * pes, "sum of the atomics");
  expect(shmem_ulong_atomic_fetch(&bits, 0) == (1UL << pes) - 1, "or");
  shmem_barrier_all();
  shmem_ulong_atomic_xor(&bits, 1UL << me, 0);
  shmem_barrier_all();
  expect(shmem_ulong_atomic_fetch(&bits, 0) == 0, "xor");
  shmem_barrier_all();
  expect(shmem_long_atomic_swap(&slots[9], 500 + me, me) != 500 + me, "swap");
  expect(
      shmem_long_atomic_compare_swap(&slots[9], 500 + me, 900, me) == 500 + me && slots[9] == 900,
      "compare_swap");
  expect(shmem_long_atomic_compare_swap(&slots[9], 1, 2, me) == 900 && slots[9] == 900,
         "compare_swap of another value");
  shmem_barrier_all();
}

/// A counter that is read and written under a lock.
static void locks(void) {
  for (int i = 0; i < 10; ++i) {
    shmem_set_lock(&lock);
    const long now = shmem_long_g(&guarded, 0);
    shmem_long_p(&guarded, now + 1, 0);
    shmem_quiet();
    shmem_clear_lock(&lock);
  }
  shmem_barrier_all();
  expect(shmem_long_g(&guarded, 0) == 10L * pes, "lock");
  shmem_barrier_all();
}

static void collectives(void) {
  const int n = 20;
  fill(n);
  shmem_broadcast64(slots, source, (size_t)n, 0, 0, 0, pes, sync_words[0]);
  shmem_barrier_all();
  if (me != 0)
    expect_slots(0, n, "broadcast");
  else
    shmem_barrier_all();
  shmem_long_sum_to_all(slots, source, n, 0, 0, pes, work, sync_words[1]);
  int is_right = 1;
  for (int i = 0; i < n; ++i)
    is_right &= slots[i] == pes * (pes - 1) / 2 * 1000000L + (long)pes * i;
  expect(is_right, "sum_to_all");
  shmem_barrier_all();
  shmem_fcollect64(slots, source, (size_t)n, 0, 0, pes, sync_words[2]);
  is_right = 1;
  for (int i = 0; i < n * pes; ++i) is_right &= slots[i] == value(i / n, i % n);
  expect(is_right, "fcollect");
  fill(n * pes);
  shmem_alltoall64(slots, source, (size_t)n, 0, 0, pes, sync_words[3]);
  is_right = 1;
  for (int i = 0; i < n * pes; ++i) is_right &= slots[i] == value(i / n, me * n + i % n);
  expect(is_right, "alltoall");
  shmem_barrier_all();
}

int main(void) {
  shmem_init();
  me = shmem_my_pe();
  pes = shmem_n_pes();
  next = (me + 1) % pes;
  previous = (me + pes - 1) % pes;
  for (int i = 0; i < 4; ++i)
    for (size_t k = 0; k < sizeof sync_words[i] / sizeof(long); ++k)
      sync_words[i][k] = SHMEM_SYNC_VALUE;
  shmem_barrier_all();
  put_and_get();
  strided();
  wait_for_flag();
  atomics();
  locks();
  collectives();
  printf("pe %d of %d: %ld wrong\n", me, pes, wrong);
  fflush(stdout);
  shmem_finalize();
  return wrong == 0 ? 0 : 1;
}
