// The PDC state machine against its committed matrix, and the sizes that memory budgets rest on.
#include <fstream>
#include <iostream>
#include <sstream>

#include <gtest/gtest.h>

#include "pds/engine.h"

namespace uet::pds {
namespace {

std::string matrix() {
  std::ostringstream out;
  for (const bool initiator : {true, false}) {
    out << (initiator ? "initiator" : "target") << '\n';
    for (std::size_t s = 0; s < kPdcStateCount; ++s)
      for (std::size_t i = 0; i < kPdcInputCount; ++i) {
        const auto next = next_state(static_cast<PdcState>(s), static_cast<PdcInput>(i), initiator);
        out << "  " << name_of(static_cast<PdcState>(s)) << " + "
            << name_of(static_cast<PdcInput>(i)) << " = " << (next ? name_of(*next) : "-") << '\n';
      }
  }
  return out.str();
}

// A change here is a change of the protocol: look at the diff of tests/pds/pdc_matrix.txt.
TEST(PdcState, matrix_is_the_committed_one) {
  std::ifstream file(UET_PDC_MATRIX);
  std::stringstream committed;
  committed << file.rdbuf();
  if (std::getenv("UET_WRITE_MATRIX") != nullptr)
    std::ofstream(UET_PDC_MATRIX) << matrix();
  else
    EXPECT_EQ(matrix(), committed.str());
}

TEST(PdcSize, idle_pdc_fits_its_budget) {
  std::cout << "sizeof(Pdc) = " << sizeof(Pdc) << ", outstanding packet " << sizeof(TxRecord)
            << ", kept answer " << sizeof(RxRecord) << ", message " << sizeof(Message)
            << " bytes\n";
  EXPECT_LE(sizeof(Pdc), 1024u);
}

}  // namespace
}  // namespace uet::pds
