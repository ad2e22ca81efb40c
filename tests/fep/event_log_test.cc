#include "fep/report/event_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "fep/report/live_report.h"
#include "lib/wire/enums.h"
#include "pds/pdc_state.h"

namespace uet::fep {
namespace {

using base::DropReason;
using base::EventId;
using base::Instant;

TEST(EventLog, every_event__is_one_json_object_with_its_own_keys) {
  for (std::size_t i = 0; i < base::kEventCount; ++i) {
    const base::Event event{Instant::from_ns(5), static_cast<EventId>(i), 3, base::Psn(9), 1, 2};
    const auto json = nlohmann::json::parse(to_json(event), nullptr, false);
    ASSERT_TRUE(json.is_object()) << to_json(event);
    EXPECT_EQ(json["t"], 5);
    EXPECT_EQ(json["event"], base::describe(event.id).name);
    EXPECT_EQ(json["pdc"], 3);
  }
}

TEST(EventLog, keys__are_single_words) {
  for (std::size_t i = 0; i < base::kEventCount; ++i) {
    const base::Event event{Instant(), static_cast<EventId>(i), 3, base::Psn(9), 1, 2};
    const auto json = nlohmann::json::parse(to_json(event));
    for (const auto& [key, value] : json.items())
      EXPECT_EQ(key.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos) << key;
  }
}

TEST(EventLog, types_and_codes_of_the_wire__are_named) {
  const auto json_of = [](EventId id, std::uint64_t a, std::uint64_t b) {
    return nlohmann::json::parse(to_json(base::Event{Instant(), id, 3, base::Psn(9), a, b}));
  };
  const auto type = static_cast<unsigned>(wire::PdsType::kRudReq);
  EXPECT_EQ(json_of(EventId::kPacketSent, 1084, type)["pds_type"], "RUD_REQ");
  const auto trimmed = static_cast<unsigned>(wire::NackCode::kTrimmed);
  EXPECT_EQ(json_of(EventId::kNackSent, trimmed, 0)["nack_code"], "TRIMMED");
  EXPECT_EQ(json_of(EventId::kNackSent, 0x1ff, 0)["nack_code"], 0x1ff);  // none of the wire
}

TEST(EventLog, a_pdc__has_states_and_a_role_in_words) {
  const auto json_of = [](EventId id, std::uint64_t a, std::uint64_t b) {
    return nlohmann::json::parse(to_json(base::Event{Instant(), id, 3, base::Psn(9), a, b}));
  };
  const auto from = static_cast<unsigned>(pds::PdcState::kEstablished);
  const auto changed = json_of(EventId::kPdcStateChanged, from, pds::kPdcStateCount);
  EXPECT_EQ(changed["from"], "ESTABLISHED");
  EXPECT_EQ(changed["to"], pds::kPdcStateCount);  // none
  const auto opened = json_of(EventId::kPdcOpened, 1, static_cast<unsigned>(pds::Mode::kRod));
  EXPECT_EQ(opened["role"], "target");
  EXPECT_EQ(opened["mode"], "rod");
  EXPECT_EQ(json_of(EventId::kPdcOpened, 0, 4)["mode"], 4);  // none
}

TEST(EventLog, drops__are_named) {
  base::Trace trace;
  trace.drop(Instant(), DropReason::kBadCrc, 100);
  EXPECT_EQ(nlohmann::json::parse(to_json(trace.recorded().front()))["reason"], "bad-crc");
}

TEST(TraceFile, has_a_line_for_each_event_and_one_of_counters) {
  const std::string path = testing::TempDir() + "trace_file_test." + std::to_string(getpid());
  base::Trace trace;
  std::string error;
  auto file = TraceFile::open(path, trace, error);
  ASSERT_NE(file, nullptr) << error;
  trace.emit(Instant::from_ns(1), EventId::kPdcOpened, 7, base::Psn(1), 0, 1);
  trace.emit(Instant::from_ns(2), EventId::kTimeout, 7, base::Psn(1), 1, 1'000'000);
  file.reset();
  std::string lines;
  for (const base::Event& event : trace.recorded()) lines += to_json(event) + "\n";
  std::ifstream in(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}),
            lines + counters_to_json(trace) + "\n");
  std::remove(path.c_str());
}

TEST(TraceFile, a_full_disk__is_told_and_its_events_are_counted) {
  base::Trace trace;
  std::string error;
  auto file = TraceFile::open("/dev/full", trace, error);
  ASSERT_NE(file, nullptr) << error;
  testing::internal::CaptureStderr();
  constexpr std::uint64_t kEvents = 1000;
  for (std::uint64_t i = 0; i < kEvents; ++i) trace.emit(Instant(), EventId::kAckSent);
  file.reset();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("cannot write /dev/full: No space left on device"), std::string::npos)
      << said;
  EXPECT_GT(net::not_written().front().records, kEvents / 2);
  const auto report = nlohmann::json::parse(LiveReport("stat", 7, "program").text());
  ASSERT_EQ(report["not_written"].size(), 1u);
  EXPECT_EQ(report["not_written"][0]["file"], "/dev/full");
  EXPECT_EQ(report["not_written"][0]["records"], net::not_written().front().records);
  EXPECT_EQ(report["not_written"][0]["why"], "No space left on device");
}

TEST(EventLog, counters__leave_out_zeros) {
  base::Trace trace;
  trace.emit(Instant(), EventId::kAckSent);
  trace.emit(Instant(), EventId::kAckSent);
  trace.drop(Instant(), DropReason::kTruncated);
  const auto json = nlohmann::json::parse(counters_to_json(trace));
  EXPECT_EQ(json["events"]["ack-sent"], 2);
  EXPECT_EQ(json["drops"]["truncated"], 1);
  EXPECT_EQ(json["drops"].size(), 1u);
}

}  // namespace
}  // namespace uet::fep
