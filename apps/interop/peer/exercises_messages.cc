/// Exercises about messages that meet receives.

#include <rdma/fi_tagged.h>

#include <cstring>
#include <deque>
#include <list>

#include "apps/interop/peer/session.h"

namespace uet::interop {
namespace {

/// Around every limit of packets and headers that peers may disagree about, and of several windows.
constexpr std::size_t kMessageSizes[] = {
    0, 1, 7, 8, 32, 33, 256, 1023, 1024, 1025, 2047, 4096, 4097, 16384, 100001, 262144, 1 << 20};
constexpr unsigned kAtOnce = 8;

void post_receive(Session& s, Operation& operation, Bytes& into) {
  s.endpoint.post(operation, "fi_recv", [&](void* context) {
    return fi_recv(s.endpoint.ep(), into.data(), into.size(), nullptr, FI_ADDR_UNSPEC, context);
  });
}

void post_send(Session& s, Operation& operation, const Bytes& from, fi_addr_t to) {
  s.endpoint.post(operation, "fi_send", [&](void* context) {
    return fi_send(s.endpoint.ep(), from.data(), from.size(), nullptr, to, context);
  });
}

/// Messages 0 to `count` - 1 of one size arrived in any order: each of them once.
void verify_each_once(const std::deque<Bytes>& received, std::size_t size) {
  std::vector<bool> was_there(received.size(), false);
  for (const Bytes& bytes : received) {
    std::size_t which = 0;
    while (which < received.size() && first_difference(bytes.data(), size, which)) ++which;
    if (size == 0) continue;
    if (which == received.size()) verify(bytes.data(), size, 0, "a message");
    if (was_there[which])
      throw std::runtime_error("message " + std::to_string(which) + " of " + std::to_string(size) +
                               " bytes came twice, and another not at all");
    was_there[which] = true;
  }
}

struct Batch {
  explicit Batch(std::size_t count) : operations(count) {}
  std::deque<Operation> operations;
  std::deque<Bytes> bytes;
};

/// `count` messages of one size in one direction. The receives are there before, or come after the first messages.
void one_way(Session& s, bool is_receiver, std::size_t size, unsigned count, bool is_expected) {
  Batch& batch = s.endpoint.keep<Batch>(count);
  const std::string mark = "size " + std::to_string(size);
  if (is_receiver) {
    batch.bytes.assign(count, Bytes(size));
    if (!is_expected) s.control.meet(mark);
    for (unsigned i = 0; i < count; ++i) post_receive(s, batch.operations[i], batch.bytes[i]);
    if (is_expected) s.control.meet(mark);
    for (Operation& operation : batch.operations) {
      s.endpoint.wait_for(operation, "a receive");
      if (operation.length != size)
        throw std::runtime_error("a message of " + std::to_string(operation.length) +
                                 " bytes came, not of " + std::to_string(size));
    }
    verify_each_once(batch.bytes, size);
    s.control.say("got it");
  } else {
    s.control.meet(mark);
    for (unsigned i = 0; i < count; ++i) batch.bytes.push_back(message_of(size, i));
    for (unsigned i = 0; i < count; ++i) post_send(s, batch.operations[i], batch.bytes[i], s.peer);
    for (Operation& operation : batch.operations) s.endpoint.wait_for(operation, "a send");
    s.control.hear();
  }
}

}  // namespace

void play_sends(Session& s) {
  for (const std::size_t size : kMessageSizes) {
    for (const bool is_expected : {true, false}) {
      one_way(s, s.is_server, size, kAtOnce, is_expected);
      one_way(s, !s.is_server, size, kAtOnce, is_expected);
    }
  }
}

void play_tagged(Session& s) {
  constexpr std::uint64_t kTag = 0x5ea0'0000'0000'0000;
  constexpr unsigned kCount = 32;
  for (const bool to_server : {true, false}) {
    for (const std::size_t size : {std::size_t{8}, std::size_t{3000}, std::size_t{100001}}) {
      Batch& batch = s.endpoint.keep<Batch>(kCount);
      s.control.meet("tags");
      for (unsigned i = 0; i < kCount; ++i) {
        const bool is_receiver = s.is_server == to_server;
        // Receives in the reverse order of the sends: only the tag can tell.
        const unsigned number = is_receiver ? kCount - 1 - i : i;
        batch.bytes.push_back(is_receiver ? Bytes(size) : message_of(size, number));
        Bytes& bytes = batch.bytes.back();
        s.endpoint.post(batch.operations[i], "a tagged operation", [&](void* context) {
          return is_receiver ? fi_trecv(s.endpoint.ep(), bytes.data(), size, nullptr,
                                        FI_ADDR_UNSPEC, kTag + number, 0, context)
                             : fi_tsend(s.endpoint.ep(), bytes.data(), size, nullptr, s.peer,
                                        kTag + number, context);
        });
      }
      for (unsigned i = 0; i < kCount; ++i) {
        s.endpoint.wait_for(batch.operations[i], "a tagged operation");
        if (s.is_server == to_server)
          verify(batch.bytes[i].data(), size, kCount - 1 - i, "the message of a tag");
      }
    }
  }
}

void play_ordered(Session& s) {
  constexpr unsigned kCount = 200;
  constexpr std::size_t kLarge = 20000;
  // Small ones overtake large ones where order is not kept.
  const auto size_of = [](unsigned i) { return i % 3 == 0 ? kLarge : std::size_t{64}; };
  for (const bool to_server : {true, false}) {
    Batch& batch = s.endpoint.keep<Batch>(kCount);
    const bool is_receiver = s.is_server == to_server;
    for (unsigned i = 0; i < kCount && is_receiver; ++i) {
      batch.bytes.emplace_back(kLarge);
      post_receive(s, batch.operations[i], batch.bytes[i]);
    }
    s.control.meet("order");
    for (unsigned i = 0; i < kCount && !is_receiver; ++i) {
      batch.bytes.push_back(message_of(size_of(i), i));
      post_send(s, batch.operations[i], batch.bytes[i], s.peer);
    }
    for (unsigned i = 0; i < kCount; ++i) {
      s.endpoint.wait_for(batch.operations[i], "an ordered message");
      if (!is_receiver) continue;
      if (batch.operations[i].length != size_of(i))
        throw std::runtime_error("receive " + std::to_string(i) + " took a message of " +
                                 std::to_string(batch.operations[i].length) +
                                 " bytes, not the one of its turn");
      verify(batch.bytes[i].data(), size_of(i), i, "the message of its turn");
    }
    s.control.meet("ordered");
  }
}

void play_datagrams(Session& s) {
  constexpr unsigned kCount = 64;
  const std::size_t size = s.endpoint.info().ep_attr->max_msg_size;
  for (const bool to_server : {true, false}) {
    for (unsigned first = 0; first < kCount; first += kAtOnce) {
      one_way(s, s.is_server == to_server, first % 2 == 0 ? size : 33, kAtOnce, true);
    }
  }
}

void serve_many(Endpoint& endpoint, std::vector<Control>& clients) {
  constexpr std::size_t kReceives = 256, kBytes = 8;
  struct Slot {
    Operation receive, answer;
    Bytes bytes = Bytes(kBytes), answer_bytes;
    bool is_answering = false;
  };
  auto& slots = endpoint.keep<std::list<Slot>>(kReceives);
  std::vector<fi_addr_t> peers;
  const auto receive = [&](Slot& slot) {
    endpoint.post(slot.receive, "fi_recv", [&](void* context) {
      return fi_recv(endpoint.ep(), slot.bytes.data(), kBytes, nullptr, FI_ADDR_UNSPEC, context);
    });
  };
  for (Slot& slot : slots) receive(slot);
  for (Control& client : clients) {
    client.say(endpoint.name());
    peers.push_back(endpoint.insert(client.hear()));
    client.say(std::to_string(peers.size() - 1));
  }
  for (Control& client : clients) client.say("all are here");
  const std::size_t wanted = clients.size() * kManyMessages;
  std::vector<unsigned> next(clients.size(), 0);
  std::size_t answered = 0;
  const auto serve = [&](Slot& slot) {
    if (slot.is_answering) {
      if (!slot.answer.is_done) return;
      endpoint.wait_for(slot.answer, "an answer");
      slot.is_answering = false;
      ++answered;
      receive(slot);
    } else if (slot.receive.is_done) {
      endpoint.wait_for(slot.receive, "a receive");
      std::uint32_t from = 0, number = 0;
      std::memcpy(&from, slot.bytes.data(), sizeof from);
      std::memcpy(&number, slot.bytes.data() + sizeof from, sizeof number);
      if (from >= peers.size() || number != next[from]++)
        throw std::runtime_error("message " + std::to_string(number) + " of client " +
                                 std::to_string(from) + " came when another was due");
      slot.answer_bytes = slot.bytes;
      endpoint.post(slot.answer, "fi_send", [&](void* context) {
        return fi_send(endpoint.ep(), slot.answer_bytes.data(), kBytes, nullptr, peers[from],
                       context);
      });
      slot.is_answering = true;
    }
  };
  while (answered < wanted) {
    const std::size_t before = answered;
    endpoint.wait_until(
        [&] {
          for (Slot& slot : slots) serve(slot);
          return answered > before;
        },
        std::to_string(wanted - answered) + " messages of " + std::to_string(wanted) +
            " never came");
  }
  // None leaves before the last answer has arrived.
  for (Control& client : clients) client.hear();
  for (Control& client : clients) client.meet("end");
  endpoint.drain();
}

void play_one_of_many(Session& s) {
  const auto self = static_cast<std::uint32_t>(std::stoul(s.control.hear()));
  s.control.hear();  // all are here
  for (std::uint32_t number = 0; number < kManyMessages; ++number) {
    auto& [send, receive] = s.endpoint.keep<std::pair<Operation, Operation>>();
    Bytes& out = s.endpoint.keep<Bytes>(sizeof self + sizeof number);
    Bytes& in = s.endpoint.keep<Bytes>(out.size());
    std::memcpy(out.data(), &self, sizeof self);
    std::memcpy(out.data() + sizeof self, &number, sizeof number);
    post_receive(s, receive, in);
    post_send(s, send, out, s.peer);
    s.endpoint.wait_for(send, "a send");
    s.endpoint.wait_for(receive, "the answer");
    if (in != out) throw std::runtime_error("the answer is that to another message");
  }
  s.control.say("done");
}

}  // namespace uet::interop
