/// One of the two key slots of a secure domain. [TSS 7.4]
#pragma once

#include <memory>
#include <optional>

#include "tss/cipher.h"
#include "tss/kdf.h"
#include "tss/tx_counter.h"

namespace uet::tss {

/// empty: no key. ready: packets are accepted. active: ours leave under it. retiring: ours did.
enum class SlotState : std::uint8_t { kEmpty, kReady, kActive, kRetiring };

struct Association {
  SlotState state = SlotState::kEmpty;
  std::uint64_t generation = 0;  ///< of this filling; no two fillings of any slot share one
  KeyConfig key;
  Fingerprint fingerprint{};
  std::unique_ptr<KeyDerivation> kdf;   ///< where keys are derived
  std::unique_ptr<Cipher> common_open;  ///< where every sender has the same key
  std::unique_ptr<Cipher> common_seal;
  TxCounter counter;
  /// Of the packets that leave under the key, or left; none before it was selected. A client's is its key's.
  std::optional<std::uint16_t> epoch;
  bool is_fresh = false;  ///< no process of this host had the key before
  bool has_warned_low = false, has_warned_spent = false;
  bool is_reserving = false;     ///< the manager was asked for counters and has not answered
  bool has_asked_early = false;  ///< for counters before service() was due, and has too few still
};

}  // namespace uet::tss
