/// Event queue: a software queue of control events.
#pragma once

#include <rdma/fi_eq.h>

#include <deque>
#include <mutex>
#include <vector>

#include "provider/object.h"
#include "provider/wait.h"

namespace uet::provider {

class Fabric;

/// Belongs to no worker: any thread may write and read it. It holds as many events as the
/// application asked for; fi_eq_write answers -FI_EAGAIN beyond, events of our own always find a
/// place.
class Eq final : public fid_eq {
 public:
  static int open(Fabric& fabric, const fi_eq_attr& attr, fid_eq** out, void* context);
  static Eq& of(fid_eq* f) { return *static_cast<Eq*>(f); }
  static Eq& of(fid_t f) { return of(reinterpret_cast<fid_eq*>(f)); }

  Users& users() { return users_; }
  /// An event of our own.
  void report(std::uint32_t event, const fi_eq_entry& entry);
  void report_error(const fi_eq_err_entry& entry);

  ssize_t read(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags);
  ssize_t read_error(fi_eq_err_entry* out, std::uint64_t flags);
  ssize_t write(std::uint32_t event, const void* buffer, std::size_t length);
  ssize_t sread(std::uint32_t* event, void* buffer, std::size_t length, int timeout_ms,
                std::uint64_t flags);
  int try_wait();
  int control(int command, void* arg);
  int close();

 private:
  struct Item {
    std::uint32_t event = 0;
    bool is_error = false;
    std::vector<std::uint8_t> bytes;
    fi_eq_err_entry error{};
  };
  Eq(Fabric& fabric, const fi_eq_attr& attr, void* context);
  ~Eq() = default;
  void append(Item item);
  ssize_t take(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags);

  const std::uint32_t api_version_;
  const std::size_t size_;
  const bool writable_;
  std::mutex mutex_;
  std::deque<Item> items_;
  WaitObject wait_;
  Users users_;
  UserOf fabric_use_;
};

}  // namespace uet::provider
