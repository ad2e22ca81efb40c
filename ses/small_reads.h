/// READs that went with a small header. Their data names no message, only the packet that asked for it. [SES 5, WIRE 5.16]
#pragma once

#include <vector>

#include "ses/tx_op.h"

namespace uet::ses {

/// PDCs and PSNs are ours, so chains stay short whatever peers do. A user owns the operations.
class SmallReads {
 public:
  /// Without `is_used` nothing is ever put in.
  explicit SmallReads(bool is_used) : buckets_(is_used ? kBuckets : 0) {}

  /// At each transmission: a packet that is sent again may have another PSN.
  void put(TxOp& op, base::Psn psn) {
    remove(op);
    op.request_psn = psn;
    op.in_small_reads = true;
    bucket(op.pdc, psn).push_back(op);
  }
  void remove(TxOp& op) {
    if (!op.in_small_reads) return;
    List& list = bucket(op.pdc, op.request_psn);
    list.erase(list.iterator_to(op));
    op.in_small_reads = false;
  }
  TxOp* find(pds::PdcRef pdc, base::Psn psn) {
    if (buckets_.empty()) return nullptr;
    for (TxOp& op : bucket(pdc, psn))
      if (op.pdc == pdc && op.request_psn == psn) return &op;
    return nullptr;
  }

 private:
  static constexpr std::size_t kBuckets = 1024;
  using List = OpList<&TxOp::small_hook>;

  List& bucket(pds::PdcRef pdc, base::Psn psn) {
    return buckets_[(psn.value() ^ pdc.value * 0x9e37'79b9u >> 16) % kBuckets];
  }

  std::vector<List> buckets_;
};

}  // namespace uet::ses
