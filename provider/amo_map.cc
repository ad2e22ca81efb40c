#include "provider/amo_map.h"

#include <array>

namespace uet::provider {
namespace {

using ses::AmoDatatype;
using ses::AmoOpcode;

// Numbers of libfabric 2, which 1.17 does not have. [FI 2.5.5]
constexpr int kFloat16 = 16, kBfloat16 = 17, kDiff = 19;

template <typename Value>
struct Row {
  int number;
  Value value;
};

template <typename Value, std::size_t N>
std::optional<Value> find(const std::array<Row<Value>, N>& table, int number) {
  for (const auto& row : table)
    if (row.number == number) return row.value;
  return std::nullopt;
}

constexpr std::array<Row<AmoOpcode>, 20> kOps = {
    {{FI_MIN, AmoOpcode::kMin},          {FI_MAX, AmoOpcode::kMax},
     {FI_SUM, AmoOpcode::kSum},          {FI_PROD, AmoOpcode::kProd},
     {FI_LOR, AmoOpcode::kLor},          {FI_LAND, AmoOpcode::kLand},
     {FI_BOR, AmoOpcode::kBor},          {FI_BAND, AmoOpcode::kBand},
     {FI_LXOR, AmoOpcode::kLxor},        {FI_BXOR, AmoOpcode::kBxor},
     {FI_ATOMIC_READ, AmoOpcode::kRead}, {FI_ATOMIC_WRITE, AmoOpcode::kWrite},
     {FI_CSWAP, AmoOpcode::kCswap},      {FI_CSWAP_NE, AmoOpcode::kCswapNe},
     {FI_CSWAP_LE, AmoOpcode::kCswapLe}, {FI_CSWAP_LT, AmoOpcode::kCswapLt},
     {FI_CSWAP_GE, AmoOpcode::kCswapGe}, {FI_CSWAP_GT, AmoOpcode::kCswapGt},
     {FI_MSWAP, AmoOpcode::kMswap},      {kDiff, AmoOpcode::kDiff}}};

constexpr std::array<Row<AmoDatatype>, 18> kTypes = {
    {{FI_INT8, AmoDatatype::kInt8},
     {FI_UINT8, AmoDatatype::kUint8},
     {FI_INT16, AmoDatatype::kInt16},
     {FI_UINT16, AmoDatatype::kUint16},
     {FI_INT32, AmoDatatype::kInt32},
     {FI_UINT32, AmoDatatype::kUint32},
     {FI_INT64, AmoDatatype::kInt64},
     {FI_UINT64, AmoDatatype::kUint64},
     {FI_FLOAT, AmoDatatype::kFloat},
     {FI_DOUBLE, AmoDatatype::kDouble},
     {FI_FLOAT_COMPLEX, AmoDatatype::kFloatComplex},
     {FI_DOUBLE_COMPLEX, AmoDatatype::kDoubleComplex},
     {FI_LONG_DOUBLE, AmoDatatype::kLongDouble},
     {FI_LONG_DOUBLE_COMPLEX, AmoDatatype::kLongDoubleComplex},
     {FI_INT128, AmoDatatype::kInt128},
     {FI_UINT128, AmoDatatype::kUint128},
     {kFloat16, AmoDatatype::kFloat16},
     {kBfloat16, AmoDatatype::kBfloat16}}};

}  // namespace

std::optional<AmoKind> find_amo(int op, int type, AtomicForm form) {
  const auto amo = find(kOps, op);
  const auto datatype = find(kTypes, type);
  if (!amo || !datatype) return std::nullopt;
  if (ses::has_compare_operands(*amo) != (form == AtomicForm::kCompare)) return std::nullopt;
  const bool fetching = form != AtomicForm::kPlain;
  if (ses::judge_amo(*amo, *datatype, fetching) != ses::ReturnCode::kOk) return std::nullopt;
  return AmoKind{*amo, *datatype, ses::amo_bytes(*datatype)};
}

std::size_t max_elements(const AmoKind& kind, AtomicForm form, std::size_t payload_mtu) {
  if (form != AtomicForm::kPlain) return 1;
  return ses::atomic_payload_of(static_cast<std::uint32_t>(payload_mtu)) / kind.element;
}

}  // namespace uet::provider
