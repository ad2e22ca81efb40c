/* A C program that is short of address space opens a domain. libstdc++ comes into it with the provider, by dlopen(), so what the C++
 * run time keeps for each thread is not there from the start. Every attempt works or fails with an error; none ends the process. */
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kOpened = 0, kNoMemory = 10, kNotBegun = 11, kOtherError = 12, kNoWord = 13 };
enum { kKiB = 1024, kMiB = 1024 * kKiB, kBlock = 256 };

static struct fi_info* info;

static struct fi_info* ask(void) {
  struct fi_info *hints = fi_allocinfo(), *found = NULL;
  if (hints == NULL) return NULL;
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = FI_TAGGED;
  hints->fabric_attr->prov_name = strdup("uet");
  if (fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE | FI_NUMERICHOST, hints, &found))
    found = NULL;
  fi_freeinfo(hints);
  return found;
}

static unsigned long address_space(void) {
  unsigned long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL) return 0;
  if (fscanf(file, "%lu", &pages) != 1) pages = 0;
  fclose(file);
  return pages * (unsigned long)sysconf(_SC_PAGESIZE);
}

static int limit_to(unsigned long more) {
  struct rlimit limit;
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = address_space() + more;
  return setrlimit(RLIMIT_AS, &limit);
}

static int open_domain(void) {
  struct fid_fabric* fabric = NULL;
  struct fid_domain* domain = NULL;
  int ret = fi_fabric(info->fabric_attr, &fabric, NULL);
  if (ret == 0) ret = fi_domain(fabric, info, &domain, NULL);
  if (domain != NULL) fi_close(&domain->fid);
  if (fabric != NULL) fi_close(&fabric->fid);
  if (ret == 0) return kOpened;
  if (ret == -FI_ENOMEM) return kNoMemory;
  /* For a thread or a port that the system refuses without saying what it lacks. */
  return ret == -FI_ENODEV ? kNotBegun : kOtherError;
}

/* Takes all that malloc() has, but for `left` bytes in small blocks. */
static void use_up_all_but(unsigned long left) {
  void* kept[4096];
  unsigned long count = 0;
  while (count < left / kBlock && count < 4096 && (kept[count] = malloc(kBlock)) != NULL) ++count;
  for (size_t size = kMiB; size >= 16; size /= 2)
    while (malloc(size) != NULL) continue;
  while (count > 0) free(kept[--count]);
}

struct Attempt {
  unsigned long more; /* bytes beyond those that the process has */
  unsigned long left; /* where `more` is 0: bytes that malloc() still has */
  int outcome;
};

/* Limits the process after the thread has its stack. */
static void* open_in_thread(void* of) {
  struct Attempt* attempt = of;
  if (limit_to(attempt->more) != 0) return NULL;
  if (attempt->more == 0) use_up_all_but(attempt->left);
  attempt->outcome = open_domain();
  return NULL;
}

/* In a process of its own; 127 is the exit status of a program that the loader ends. */
static int attempt_in_child(struct Attempt attempt, int in_thread) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    pthread_t thread;
    attempt.outcome = kOtherError;
    if (!in_thread)
      open_in_thread(&attempt);
    else if (pthread_create(&thread, NULL, open_in_thread, &attempt) == 0)
      pthread_join(thread, NULL);
    _exit(attempt.outcome);
  }
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Whether standard error, a file, has a word of memory. Empties it. */
static int has_word_of_memory(void) {
  char text[4096] = "";
  const ssize_t bytes = pread(STDERR_FILENO, text, sizeof text - 1, 0);
  const int is_empty = ftruncate(STDERR_FILENO, 0) == 0 && lseek(STDERR_FILENO, 0, SEEK_SET) == 0;
  return is_empty && bytes > 0 && strstr(text, "150 MB of address space") != NULL;
}

/* 0 when it opens in the end, and was refused cleanly before. */
static int run(int in_thread) {
  struct Attempt attempt = {.more = 0};
  while (attempt.more < 512ul * kMiB) {
    int outcome = attempt_in_child(attempt, in_thread);
    if (outcome == kOpened && attempt.more > 0) return 0;
    /* With nothing left there may be no memory for words. */
    if (!has_word_of_memory() && outcome == kNoMemory && attempt.more > 0) outcome = kNoWord;
    if (outcome != kNoMemory && outcome != kNotBegun) {
      printf("%s with %lu KiB more, %lu bytes left: exit status %d\n",
             in_thread ? "a thread" : "the first thread", attempt.more / kKiB, attempt.left,
             outcome);
      return 1;
    }
    if (attempt.left < 256ul * kKiB)
      attempt.left += attempt.left < 32ul * kKiB ? kBlock : 16ul * kKiB;
    else
      attempt.more += 4ul * kMiB;
  }
  printf("it never opened\n");
  return 1;
}

int main(void) {
  info = ask();
  if (info == NULL) {
    fprintf(stderr, "the provider has no answer to fi_getinfo\n");
    return 1;
  }
  FILE* const errors = tmpfile();
  if (errors == NULL || dup2(fileno(errors), STDERR_FILENO) < 0) return 1;
  const int failures = run(0) + run(1);
  fi_freeinfo(info);
  return failures;
}
