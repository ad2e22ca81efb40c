#include "apps/fabric/run.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "apps/fabric/capture.h"
#include "apps/fabric/commands.h"
#include "apps/fabric/control_socket.h"
#include "apps/fabric/null_device.h"
#include "apps/fabric/pace.h"
#include "apps/output_path.h"
#include "lib/net/capture_file.h"
#include "lib/net/port_plugin.h"
#include "lib/ports/dpdk_plugin.h"

namespace uet::fabric {

namespace {

using Devices = std::vector<std::unique_ptr<net::FrameDevice>>;

volatile std::sig_atomic_t stop_requested = 0;

void request_stop(int) {
  stop_requested = 1;
}

void say(const std::string& text) {
  fmt::print(stderr, "uet-fabric: {}\n", text);
}

/// The folders of the sockets that this process makes; where one cannot be made, making the socket says so.
void make_folders(const Scenario& scenario) {
  constexpr std::string_view kSocket = ",socket=";
  std::vector<std::string> sockets = {scenario.control};
  for (const LegConfig& leg : scenario.legs) {
    const auto at = leg.port.find(kSocket);
    if (leg.port.find(",socket-abstract=no") == std::string::npos || at == std::string::npos)
      continue;
    const std::string path = leg.port.substr(at + kSocket.size());
    sockets.push_back(path.substr(0, path.find(',')));
  }
  for (const std::string& socket : sockets) {
    std::error_code ignored;
    const auto folder = std::filesystem::path(socket).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  }
}

bool open_devices(const Scenario& scenario, base::Trace& trace, Devices& devices,
                  std::string& error) {
  const auto open = reinterpret_cast<net::OpenFrameDeviceFunction>(
      ports::dpdk_symbol(net::kDpdkFrameEntry, error));
  if (open == nullptr) return false;
  for (std::size_t i = 0; i < scenario.legs.size(); ++i) {
    const LegConfig& leg = scenario.legs[i];
    devices.push_back(open({.spec = leg.port,
                            .packets = 512,
                            .mtu = leg.mtu,
                            .mac_seed = i + 1,
                            .devices = scenario.legs.size()},
                           trace, error));
    if (devices.back() == nullptr) {
      error = "leg " + leg.name + ": " + error;
      return false;
    }
  }
  return true;
}

/// Everything that runs beside the fabric itself.
class Runner {
 public:
  Runner(const Scenario& scenario, Devices devices)
      : scenario_(scenario),
        emulator_(scenario, std::move(devices)),
        commands_(emulator_, {.clock = [this] { return pace_.report(); },
                              .capture = [this](const std::string& p) { return capture(p); },
                              .quit = [] { stop_requested = 1; }}) {}

  /// Empty, or why it cannot start.
  std::string open() {
    std::string error;
    if (!scenario_.control.empty()) {
      control_ = ControlSocket::open(scenario_.control, error);
      if (control_ == nullptr) return error;
    }
    if (!scenario_.capture.empty()) return capture(scenario_.capture);
    return {};
  }

  void loop() {
    std::uint64_t turn = 0;
    constexpr std::uint64_t kServeEvery = 32;
    while (stop_requested == 0 && !is_over()) {
      const sim::SimTime now = pace_.now();
      pace_.begin_turn(now, emulator_.next_event());
      run_commands(now);
      const std::size_t frames = emulator_.turn(now);
      if (turn++ % kServeEvery == 0) serve();
      pace_.end_turn(frames, frames >= kManyFrames);
    }
    capture("");
  }

  /// Empty, or why it cannot be done.
  std::string write_stats() {
    if (scenario_.stats.empty()) return {};
    const auto cannot = [this] {
      return fmt::format("cannot write {}: {}", scenario_.stats, std::strerror(errno));
    };
    const std::string text = commands_.run("stats").dump(2) + '\n';
    std::FILE* file = scenario_.stats == "-" ? stdout : std::fopen(scenario_.stats.c_str(), "we");
    if (file == nullptr) return cannot();
    const bool ok = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    const bool flushed = file == stdout ? std::fflush(file) == 0 : std::fclose(file) == 0;
    return ok && flushed ? "" : cannot();
  }

  bool fell_behind() const { return pace_.report()["fell_behind"].get<bool>(); }

 private:
  static constexpr std::size_t kManyFrames = 32;

  bool is_over() const {
    return scenario_.duration.ns() != 0 &&
           emulator_.now() >= sim::SimTime() + sim::SimSpan::from(scenario_.duration);
  }

  void run_commands(sim::SimTime now) {
    const auto& all = scenario_.commands;
    for (; next_command_ < all.size() && all[next_command_].time.ns() <= now.instant().ns();
         ++next_command_) {
      const TimedCommand& command = all[next_command_];
      const Json reply = commands_.run(command.text);
      if (command.time.ns() != 0 || !reply["ok"].get<bool>())
        say(fmt::format("{:.3f} s: {}: {}", now.us() * 1e-6, command.text,
                        reply["ok"].get<bool>() ? "done" : reply["error"].get<std::string>()));
    }
  }

  void serve() {
    if (control_ == nullptr) return;
    control_->serve([this](std::string_view line) {
      return commands_.run(line).dump(-1, ' ', false, Json::error_handler_t::replace);
    });
  }

  std::string capture(const std::string& path) {
    std::string error;
    emulator_.set_tap(nullptr);
    capture_.reset();
    if (path.empty()) return {};
    capture_ = FabricCapture::open(path, scenario_.file, pace_.unix_ns_at_zero(), error);
    emulator_.set_tap(capture_.get());
    return error;
  }

  const Scenario& scenario_;
  Emulator emulator_;
  Commands commands_;
  std::unique_ptr<FabricCapture> capture_;
  std::unique_ptr<ControlSocket> control_;
  std::size_t next_command_ = 0;
  Pace pace_;
};

}  // namespace

std::string check_commands(const Scenario& scenario) {
  Devices devices;
  for (std::size_t i = 0; i < scenario.legs.size(); ++i)
    devices.push_back(std::make_unique<NullDevice>());
  Emulator emulator(scenario, std::move(devices));
  Commands commands(emulator, {.capture = [](const std::string&) { return std::string(); }});
  for (const TimedCommand& command : scenario.commands) {
    const Json reply = commands.run(command.text);
    if (!reply["ok"].get<bool>())
      return fmt::format("{}: {}", command.line, reply["error"].get<std::string>());
  }
  return {};
}

std::string check_outputs(const Scenario& scenario) {
  const std::string& stats = scenario.stats;
  if (!stats.empty() && apps::is_input(stats, {scenario.file}))
    return stats + " is the scenario; write the statistics into another file";
  net::CaptureFileConfig capture{.path = {}, .interface_name = {}};
  if (std::string why;
      !scenario.capture.empty() && !net::CaptureFileConfig::parse(scenario.capture, capture, why))
    return "--capture: " + why;
  if (!capture.path.empty() && apps::is_input(capture.path, {scenario.file}))
    return capture.path + " is the scenario; capture into another file";
  return {};
}

int run(const Scenario& scenario) {
  base::Trace trace;
  Devices devices;
  std::string error;
  if (const std::string& stats = scenario.stats;
      !stats.empty() && stats != "-" && !apps::can_write(stats)) {
    say(fmt::format("cannot write {}: {}", stats, std::strerror(errno)));
    return 1;
  }
  make_folders(scenario);
  if (!open_devices(scenario, trace, devices, error)) {
    say(error);
    return 1;
  }
  struct sigaction action {};
  action.sa_handler = request_stop;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  if (scenario.realtime) {
    if (const std::string problem = go_realtime(); !problem.empty()) say(problem);
  }
  Runner runner(scenario, std::move(devices));
  if (error = runner.open(); !error.empty()) {
    say(error);
    return 1;
  }
  say(fmt::format("ready: {} legs, {} leaves, {} paths{}", scenario.legs.size(), scenario.leaves,
                  scenario.leaves > 1 ? scenario.spines : 1,
                  scenario.control.empty() ? "" : ", control socket " + scenario.control));
  runner.loop();
  if (runner.fell_behind())
    say("fell behind real time for more than 1 % of the run: lower the rates, or use --realtime");
  const auto not_written = net::not_written();
  for (const net::NotWritten& file : not_written)
    say(fmt::format("{} lacks {} records: {}", file.path, file.records, std::strerror(file.error)));
  if (error = runner.write_stats(); !error.empty()) {
    say(error);
    return 1;
  }
  return not_written.empty() ? 0 : 1;
}

}  // namespace uet::fabric
