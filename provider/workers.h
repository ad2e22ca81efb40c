/// The workers of the process, by the address of their FEP, and what fork() and the end of the process mean for them.
#pragma once

#include <memory>
#include <string>

#include "fep/report/event_log.h"
#include "fep/report/path_log.h"
#include "fep/settings/settings.h"
#include "lib/base/result.h"
#include "provider/port_picker.h"

namespace uet::provider {

class Worker;

/// Why there is no worker.
struct WorkerRefusal {
  std::string why;             ///< a sentence for the user
  bool is_port_taken = false;  ///< by a program without our locks: lose_port()
};

class Workers {
 public:
  /// The worker of this address: the running one, or a new one on a freshly opened port. It lives
  /// as long as the pointer is held. With keys, `job` chooses the secure domain; a running worker of
  /// another domain is refused. Waits while another thread opens or closes the worker of this
  /// address; those of other addresses do not wait for each other.
  static base::Result<std::shared_ptr<Worker>, WorkerRefusal> open(const fep::Settings& settings,
                                                                   const PortChoice& choice,
                                                                   std::uint32_t job);
  // Around fork(): a child inherits the sockets of all ports, and must not keep the addresses taken
  // when its parent ends. What it has of libfabric objects is good for nothing but closing: its workers
  // neither turn their loops nor end.
  static void lock_all();
  static void unlock_all();
  static void abandon_all_in_child();  ///< and unlocks
  /// At process exit: ends the threads; everything else stays as it is.
  static void stop_all();

  // --- From the worker of this address: what a child lets go of. Null before it is there, and before it goes.

  static void note_port(net::FabricAddress address, net::Port* port);
  static void note_files(net::FabricAddress address, fep::TraceFile* trace_file,
                         fep::PathLog* path_log);
  /// From the end of its start to the beginning of its end.
  static void note_at_work(net::FabricAddress address, Worker* worker);

 private:
  /// Ends a worker that nothing holds any longer, then lets its address go.
  static void retire(Worker* worker);
};

}  // namespace uet::provider
