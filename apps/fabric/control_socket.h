/// The control socket: a Unix stream socket, a command a line, a JSON object a line back.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace uet::fabric {

/// Never blocks. Clients beyond kClientsMax, lines beyond kLineMax and clients that do not read
/// their answers are hung up on.
class ControlSocket {
 public:
  /// Null, with a sentence in `error`. A socket without a listener is replaced; any other file is left alone.
  static std::unique_ptr<ControlSocket> open(const std::string& path, std::string& error);
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  /// Takes what has arrived; `answer` gives the reply to each line, without its end.
  void serve(const std::function<std::string(std::string_view line)>& answer);

 private:
  static constexpr std::size_t kClientsMax = 8;
  static constexpr std::size_t kLineMax = 4096;
  static constexpr std::size_t kReplyMax = 16 << 20;

  struct Client {
    int fd = -1;
    std::string in, out;
  };

  explicit ControlSocket(std::string path) : path_(std::move(path)) {}
  bool listen(std::string& error);
  void accept_all();
  bool read_from(Client& client, const std::function<std::string(std::string_view)>& answer);
  static bool write_to(Client& client);

  std::string path_;
  int fd_ = -1;
  bool is_bound_ = false;
  std::vector<Client> clients_;
};

/// The other end: sends one line, waits for the reply. False, with a sentence in `reply`.
bool ask(const std::string& path, const std::string& line, int timeout_ms, std::string& reply);

}  // namespace uet::fabric
