#include "lib/dpdk/guest_state.h"

#include <pthread.h>

#include <clocale>
#include <cstring>

namespace uet::dpdk {

GuestState::GuestState() {
  has_affinity_ = pthread_getaffinity_np(pthread_self(), sizeof affinity_, &affinity_) == 0;
  for (int s = 1; s < kSignals; ++s) has_handler_[s] = sigaction(s, nullptr, &handlers_[s]) == 0;
  if (const char* locale = std::setlocale(LC_ALL, nullptr)) locale_ = locale;
}

GuestState::~GuestState() {
  if (has_affinity_) pthread_setaffinity_np(pthread_self(), sizeof affinity_, &affinity_);
  for (int s = 1; s < kSignals; ++s) {
    struct sigaction now {};
    if (!has_handler_[s] || sigaction(s, nullptr, &now) != 0) continue;
    // Handler and action share storage, so one comparison serves both kinds.
    const bool is_same =
        now.sa_sigaction == handlers_[s].sa_sigaction && now.sa_flags == handlers_[s].sa_flags;
    if (!is_same) sigaction(s, &handlers_[s], nullptr);
  }
  const char* locale = std::setlocale(LC_ALL, nullptr);
  if (locale != nullptr && locale_ != locale) std::setlocale(LC_ALL, locale_.c_str());
}

}  // namespace uet::dpdk
