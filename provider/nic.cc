#include "provider/nic.h"

#include <rdma/fi_errno.h>

#include <cstring>
#include <memory>
#include <string>

#include "provider/errors.h"
#include "provider/object.h"

namespace uet::provider {
namespace {

/// One block: libfabric only sees pointers into it.
struct Nic final : fid_nic {
  fi_device_attr device{};
  fi_bus_attr bus{};
  fi_link_attr link{};
  std::string name, driver, mac;

  /// Lets the C structures point at this object's own texts.
  void connect();
};

int nic_close(fid* f) {
  delete static_cast<Nic*>(reinterpret_cast<fid_nic*>(f));
  return 0;
}

int nic_control(fid* f, int command, void* arg) {
  if (command != FI_DUP) return -FI_ENOSYS;
  return guarded([&] {
    auto copy = std::make_unique<Nic>(*static_cast<const Nic*>(reinterpret_cast<fid_nic*>(f)));
    copy->connect();
    *static_cast<fid_nic**>(arg) = copy.release();
    return 0;
  });
}

fi_ops nic_ops = make_ops({.close = nic_close, .control = nic_control});

char* text(std::string& s) {
  return s.empty() ? nullptr : s.data();
}

void Nic::connect() {
  fid = {.fclass = FI_CLASS_NIC, .context = nullptr, .ops = &nic_ops};
  device_attr = &device;
  bus_attr = &bus;
  link_attr = &link;
  prov_attr = nullptr;
  device.name = text(name);
  device.driver = text(driver);
  link.address = text(mac);
  static char ethernet[] = "Ethernet";
  link.network_type = ethernet;
}

}  // namespace

fid_nic* make_nic(const PortChoice& choice) {
  auto nic = std::make_unique<Nic>();
  nic->name = choice.device;
  nic->driver = choice.facts.driver;
  nic->mac = choice.facts.mac;
  if (const auto& pci = choice.facts.pci) {
    nic->bus.bus_type = FI_BUS_PCI;
    nic->bus.attr.pci = {.domain_id = pci->domain,
                         .bus_id = pci->bus,
                         .device_id = pci->device,
                         .function_id = pci->function};
  } else {
    nic->bus.bus_type = FI_BUS_UNKNOWN;
  }
  nic->link.mtu = choice.facts.mtu;
  nic->link.speed = choice.facts.bits_per_second;
  nic->link.state = choice.facts.is_up ? FI_LINK_UP : FI_LINK_DOWN;
  nic->connect();
  return nic.release();
}

}  // namespace uet::provider
