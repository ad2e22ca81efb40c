/// The virtual harness: one endpoint of ours, driven on virtual time.
#pragma once

#include <memory>
#include <string>

#include "apps/drill/testbed.h"
#include "pds/parameters.h"
#include "tests/drill/drill_port.h"
#include "tests/drill/endpoint.h"

namespace uet::drill {

/// For one script. A script made for live endpoints gets time, as a network would; for any other what is expected is there at
/// once.
class VirtualTestbed final : public Testbed {
 public:
  VirtualTestbed();

  std::string lacks(const Script& script) override;
  void begin(const Script& script, Variables& variables, Definitions& definitions) override;
  base::Instant now() const override { return now_; }
  base::Duration patience() const override { return patience_; }
  base::Duration quiet() const override { return quiet_; }
  void arrive(std::span<const std::uint8_t> bytes, const Travel& travel) override;
  std::optional<SeenPacket> next(base::Instant until) override;
  void pass(base::Duration span) override;
  StepResult step(Words words) override;
  std::string trouble() override { return std::exchange(trouble_, {}); }

 private:
  void start();
  void turn();
  bool pass_to_deadline(base::Instant end);
  void take_setting(Words words);
  void set(Words words);
  void set_parameter(const pds::Parameter& parameter, const std::string& text);
  void port(Words words);
  void initiate(Words words);
  void count(Words words);
  void drops(Words words);
  void gauge(Words words);
  void endpoint_step(Words words);
  void fail(const std::string& why) {
    if (trouble_.empty()) trouble_ = why;
  }
  void fail_at(const Step& setting) { trouble_ = setting.text + ": " + trouble_; }
  std::uint64_t number_at(Words words, std::size_t i) {
    if (i < words.size()) return variables_->read(words[i], trouble_).value_or(0);
    fail("a number is missing");
    return 0;
  }

  fep::FepConfig config_;
  bool is_pds_alone_ = false;
  bool is_unknown_ = false;  ///< the step of now begins with no word of ours
  DrillPort port_;
  Variables* variables_ = nullptr;
  std::unique_ptr<Endpoint> endpoint_;
  base::Instant now_ = base::Instant::from_ns(1'000'000'000);
  base::Duration patience_, quiet_;
  std::string trouble_;
};

}  // namespace uet::drill
