// The PDC state machine against its committed matrix, and the sizes that memory budgets rest on.
#include <malloc.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include <gtest/gtest.h>

#include "pds/engine.h"
#include "tests/base/resident_memory.h"
#include "tests/base/sanitizers.h"
#include "tests/pds/harness.h"

namespace uet::pds {
namespace {

// While it lives, memory becomes resident by being used and not by being allocated: test runners
// set MALLOC_PERTURB_, with which malloc() writes to every byte of the pools. What earlier tests
// freed goes back to the system first, so that it does not count as resident already.
class UntouchedHeap {
 public:
  UntouchedHeap() {
    mallopt(M_PERTURB, 0);
    malloc_trim(0);
  }
  UntouchedHeap(const UntouchedHeap&) = delete;
  UntouchedHeap& operator=(const UntouchedHeap&) = delete;
  ~UntouchedHeap() {
    if (const char* perturb = std::getenv("MALLOC_PERTURB_"); perturb != nullptr)
      mallopt(M_PERTURB, std::atoi(perturb));
  }
};

std::string pdc_matrix() {
  std::ostringstream out;
  for (const Role role : {Role::kInitiator, Role::kTarget}) {
    out << (role == Role::kInitiator ? "initiator" : "target") << '\n';
    for (std::size_t s = 0; s < kPdcStateCount; ++s)
      for (std::size_t i = 0; i < kPdcInputCount; ++i) {
        const auto next = next_state(static_cast<PdcState>(s), static_cast<PdcInput>(i), role);
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
  if (std::getenv("UET_WRITE_MATRIX") != nullptr) {
    std::ofstream(UET_PDC_MATRIX) << pdc_matrix();
  } else {
    EXPECT_EQ(pdc_matrix(), committed.str());
  }
}

TEST(PdcSize, idle_pdc_fits_its_budget) {
  std::cout << "sizeof(Pdc) = " << sizeof(Pdc) << ", outstanding packet " << sizeof(TxRecord)
            << ", kept answer " << sizeof(RxRecord) << ", message " << sizeof(Message)
            << " bytes\n";
  EXPECT_LE(sizeof(Pdc), 1024u);
}

TEST(PdcSize, sixty_five_thousand_pdcs_fit_256_mib) {
#if UET_SANITIZED
  GTEST_SKIP() << "sanitizers take memory of their own";
#endif
  const UntouchedHeap heap;
  const std::size_t before = uet::test::resident_bytes();
  test::WorldOptions o;
  o.hosts = 1;
  o.pds.max_pdc = 65064;  // some places are for PDCs that this endpoint opens
  test::World w(o);
  const auto body = w.segment_bytes(1, 0, 1);
  for (std::uint32_t i = 0; i < 65000; ++i) {
    wire::PdsRequestSyn h;
    h.next_hdr = wire::NextHdr::kRequestStd;
    h.psn = Psn(i * 7919);
    h.spdcid = static_cast<std::uint16_t>(1 + i % 60000);
    w.inject(0, net::FabricAddress::from_v4(0x0b000000 + i), h, body);
    w.pump();
    wire::PdsControl probe;  // from a peer that hears us: others get half of the table at most
    probe.ctl_type = wire::ControlType::kProbe;
    probe.spdcid = h.spdcid;
    probe.dpdcid = w.acks(0).back().spdcid;
    w.inject(0, net::FabricAddress::from_v4(0x0b000000 + i), probe);
    w.pump();
    w.log.clear();
    w.host(0).ses.delivered.clear();
  }
  w.pump();
  EXPECT_EQ(w.host(0).pds->gauges().pdcs_open, 65000u);
  const std::size_t used = uet::test::resident_bytes() - before;
  std::cout << "65000 open PDCs: " << used / 1024 / 1024 << " MiB resident\n";
  EXPECT_LT(used, std::size_t{256} << 20);
}

}  // namespace
}  // namespace uet::pds
