/// Memory of a device, which the CPU cannot touch: tests/provider/standin is the driver.
#include <dlfcn.h>
#include <rdma/fi_atomic.h>

#include <cstring>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

/// The driver's library, as a program calls it: the stand-in, or a real one if LD_LIBRARY_PATH names no stand-in.
class Cuda {
 public:
  Cuda() : library_(::dlopen("libcuda.so.1", RTLD_NOW)) {
    int device = 0;
    is_ready_ = library_ != nullptr && call<int(unsigned)>("cuInit")(0) == 0 &&
                call<int(int*, int)>("cuDeviceGet")(&device, 0) == 0 &&
                call<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context_, device) == 0 &&
                call<int(void*)>("cuCtxPushCurrent_v2")(context_) == 0;
  }
  ~Cuda() {
    if (is_ready_) (void)call<int(void**)>("cuCtxPopCurrent_v2")(&context_);
  }
  Cuda(const Cuda&) = delete;
  Cuda& operator=(const Cuda&) = delete;
  bool is_ready() const { return is_ready_; }
  bool is_stand_in() const { return ::dlsym(library_, kFailAfter) != nullptr; }

  std::uint8_t* allocate(std::size_t n) const {
    std::uint64_t address = 0;
    EXPECT_EQ(call<int(std::uint64_t*, std::size_t)>("cuMemAlloc_v2")(&address, n), 0);
    return reinterpret_cast<std::uint8_t*>(address);
  }
  void free(std::uint64_t address) const {
    EXPECT_EQ(call<int(std::uint64_t)>("cuMemFree_v2")(address), 0);
  }
  void copy_in(std::uint64_t to, const void* from, std::size_t n) const {
    EXPECT_EQ(call<int(std::uint64_t, const void*, std::size_t)>("cuMemcpyHtoD_v2")(to, from, n),
              0);
  }
  void copy_out(void* to, std::uint64_t from, std::size_t n) const {
    EXPECT_EQ(call<int(void*, std::uint64_t, std::size_t)>("cuMemcpyDtoH_v2")(to, from, n), 0);
  }
  /// Only of a stand-in. -1: never.
  void fail_after(long copies) const { call<void(long)>(kFailAfter)(copies); }

 private:
  static constexpr const char* kFailAfter = "standin_fail_after";
  template <typename Function>
  Function* call(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(library_, name));
  }
  void* library_;
  void* context_ = nullptr;
  bool is_ready_ = false;
};

/// Registered memory of a device.
class DeviceBuffer {
 public:
  DeviceBuffer(const Cuda& cuda, std::size_t n) : cuda_(cuda), size(n), address(cuda.allocate(n)) {}
  ~DeviceBuffer() {
    if (mr != nullptr) {
      EXPECT_EQ(fi_close(&mr->fid), 0);
    }
    cuda_.free(at());
  }
  int add(fid_domain* domain, std::uint64_t access = FI_SEND | FI_RECV | FI_READ | FI_WRITE |
                                                     FI_REMOTE_READ | FI_REMOTE_WRITE) {
    const iovec iov{address, size};
    fi_mr_attr attr{};
    attr.mr_iov = &iov;
    attr.iov_count = 1;
    attr.access = access;
    attr.iface = FI_HMEM_CUDA;
    return fi_mr_regattr(domain, &attr, 0, &mr);
  }
  void* desc() const { return fi_mr_desc(mr); }
  std::uint64_t at(std::size_t offset = 0) const {
    return reinterpret_cast<std::uintptr_t>(address) + offset;
  }
  /// By the program, past the provider.
  void fill(const std::vector<std::uint8_t>& bytes, std::size_t offset = 0) {
    cuda_.copy_in(at(offset), bytes.data(), bytes.size());
  }
  std::vector<std::uint8_t> bytes(std::size_t n, std::size_t offset = 0) const {
    std::vector<std::uint8_t> out(n);
    cuda_.copy_out(out.data(), at(offset), n);
    return out;
  }
  void set_word(std::size_t index, std::uint64_t value) {
    cuda_.copy_in(at(index * sizeof value), &value, sizeof value);
  }
  std::uint64_t word(std::size_t index) const {
    std::uint64_t value = 0;
    cuda_.copy_out(&value, at(index * sizeof value), sizeof value);
    return value;
  }

 private:
  const Cuda& cuda_;

 public:
  const std::size_t size;
  std::uint8_t* const address;
  fid_mr* mr = nullptr;
};

Info hmem_hints() {
  Info hints = make_hints();
  hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV | FI_HMEM;
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_HMEM | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  return hints;
}

class DeviceTest : public PairTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(driver.is_ready())
        << "no device: for the stand-in LD_LIBRARY_PATH must name its folder; meson sets it";
  }
  void open_with_device() {
    const Info hints = hmem_hints();
    open(hints.get());
  }
  void expect_success(Side& side) {
    const Got got = wait_for(side);
    EXPECT_FALSE(got.failed) << fi_strerror(got.error.err);
  }

  Cuda driver;
};

/// A driver that refuses copies when it is told to.
class RefusalTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!driver.is_stand_in()) GTEST_SKIP() << "a real driver refuses no copy";
  }
  void TearDown() override {
    if (driver.is_stand_in()) driver.fail_after(-1);
  }
  /// A message in memory of the CPU, for which b has posted `to`.
  void expect_next_message(const std::vector<std::uint8_t>& to) {
    const auto bytes = pattern(to.size(), 9);
    ASSERT_EQ(fi_send(a.ep, bytes.data(), bytes.size(), nullptr, to_b, nullptr), 0);
    expect_success(b);
    EXPECT_EQ(to, bytes);
  }
};

// --- What is on offer

// Covers: FI-67
TEST_F(DeviceTest, getinfo__offers_device_memory_when_asked) {
  const Info hints = hmem_hints();
  const Info info = get_info(hints.get());
  ASSERT_NE(info, nullptr);
  EXPECT_NE(info->caps & FI_HMEM, 0u);
  EXPECT_NE(info->tx_attr->caps & FI_HMEM, 0u);
  EXPECT_NE(info->rx_attr->caps & FI_HMEM, 0u);
  EXPECT_NE(info->domain_attr->mr_mode & FI_MR_HMEM, 0);
  EXPECT_EQ(info->domain_attr->mr_mode & FI_MR_LOCAL, 0);
  const Info others = make_hints();
  EXPECT_EQ(get_info(others.get())->caps & FI_HMEM, 0u);
  EXPECT_EQ(get_info(others.get())->domain_attr->mr_mode & FI_MR_HMEM, 0);
}

/// What is not registered cannot be told from the CPU's.
TEST_F(DeviceTest, getinfo__needs_programs_that_register_device_memory) {
  const Info hints = hmem_hints();
  hints->domain_attr->mr_mode &= ~(FI_MR_HMEM | FI_MR_LOCAL);
  int error = 0;
  EXPECT_EQ(get_info(hints.get(), &error), nullptr);
  EXPECT_EQ(error, -FI_ENODATA);
}

/// LCI offers FI_MR_LOCAL alone.
TEST_F(DeviceTest, getinfo__takes_the_promise_to_register_all_memory_as_well) {
  const Info hints = hmem_hints();
  hints->domain_attr->mr_mode &= ~FI_MR_HMEM;
  const Info info = get_info(hints.get());
  ASSERT_NE(info, nullptr);
  EXPECT_NE(info->caps & FI_HMEM, 0u);
  EXPECT_NE(info->domain_attr->mr_mode & FI_MR_LOCAL, 0);
  EXPECT_EQ(info->domain_attr->mr_mode & ~hints->domain_attr->mr_mode, 0);
  open(hints.get());
  DeviceBuffer from(driver, 4096), to(driver, 4096);
  ASSERT_EQ(from.add(a.domain), 0);
  ASSERT_EQ(to.add(b.domain), 0);
  const auto bytes = pattern(4096, 3);
  from.fill(bytes);
  ASSERT_EQ(fi_recv(b.ep, to.address, to.size, to.desc(), to_a, nullptr), 0);
  ASSERT_EQ(fi_send(a.ep, from.address, from.size, from.desc(), to_b, nullptr), 0);
  expect_success(b);
  expect_success(a);
  EXPECT_EQ(to.bytes(4096), bytes);
}

/// The plug-in's two protocols, with the hints of its source. The first version of libfabric that it asks for is newer than ours.
// Covers: FI-67, FI-75
TEST_F(DeviceTest, getinfo__serves_the_hints_of_the_nccl_plugin) {
  Info rdma = make_hints();
  rdma->caps = FI_MSG | FI_RMA | FI_HMEM | FI_LOCAL_COMM | FI_REMOTE_COMM;
  rdma->mode = FI_CONTEXT | FI_CONTEXT2;
  rdma->ep_attr->type = FI_EP_RDM;
  rdma->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_HMEM | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
                               FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  rdma->domain_attr->mr_key_size = 2;
  rdma->domain_attr->threading = FI_THREAD_COMPLETION;
  rdma->domain_attr->cq_data_size = 4;
  const Info from_kernels(fi_dupinfo(rdma.get()));  // its newest part, which reads who sent
  from_kernels->caps |= FI_SOURCE;
  Info sendrecv = make_hints();
  sendrecv->caps = FI_LOCAL_COMM | FI_REMOTE_COMM | FI_TAGGED | FI_MSG | FI_HMEM | FI_RMA | FI_READ;
  sendrecv->mode = FI_CONTEXT | FI_CONTEXT2;
  sendrecv->ep_attr->type = FI_EP_RDM;
  sendrecv->domain_attr->mr_mode = rdma->domain_attr->mr_mode;
  sendrecv->domain_attr->mr_key_size = 2;
  sendrecv->domain_attr->threading = FI_THREAD_SAFE;
  sendrecv->tx_attr->msg_order = sendrecv->rx_attr->msg_order = FI_ORDER_SAS;
  for (const fi_info* hints : {rdma.get(), from_kernels.get(), sendrecv.get()}) {
    for (const std::uint32_t version : {FI_VERSION(1, 6), FI_VERSION(1, 17)}) {
      const Info info = get_info(hints, nullptr, version);
      ASSERT_NE(info, nullptr);
      EXPECT_EQ(info->caps & hints->caps, hints->caps);
      EXPECT_NE(info->domain_attr->mr_mode & FI_MR_HMEM, 0);
      EXPECT_EQ(info->domain_attr->mr_mode & ~hints->domain_attr->mr_mode, 0);
      EXPECT_EQ(info->domain_attr->threading, hints->domain_attr->threading);
      EXPECT_GE(info->domain_attr->mr_key_size, 2u);
      EXPECT_GE(info->domain_attr->cq_data_size, 4u);
      EXPECT_NE(info->fabric_attr->name, nullptr);
    }
  }
}

/// Our copies are calls of CUDA, so a program that forbids them must go by the CPU's memory.
TEST_F(DeviceTest, cuda_api_option__says_that_copies_call_it) {
  constexpr int kCudaApiPermitted = 10;  // newer than the headers
  open_with_device();
  bool permitted = true;
  EXPECT_EQ(fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, kCudaApiPermitted, &permitted, sizeof permitted),
            0);
  permitted = false;
  EXPECT_EQ(fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, kCudaApiPermitted, &permitted, sizeof permitted),
            -FI_EOPNOTSUPP);
}

// --- Registration

fi_mr_attr sending(const iovec& iov) {
  fi_mr_attr attr{};
  attr.mr_iov = &iov;
  attr.iov_count = 1;
  attr.access = FI_SEND;
  return attr;
}

// Covers: FI-68
TEST_F(DeviceTest, registration__of_what_is_no_device_memory_is_refused) {
  open_with_device();
  char byte = 0;
  const iovec iov{&byte, 1};
  fi_mr_attr attr = sending(iov);
  fid_mr* mr = nullptr;
  attr.iface = FI_HMEM_CUDA;
  EXPECT_EQ(fi_mr_regattr(a.domain, &attr, 0, &mr), -FI_EINVAL);
  attr.iface = FI_HMEM_ROCR;
  EXPECT_EQ(fi_mr_regattr(a.domain, &attr, 0, &mr), -FI_EOPNOTSUPP);
  attr.iface = FI_HMEM_SYSTEM;
  EXPECT_EQ(fi_mr_regattr(a.domain, &attr, 0, &mr), 0);
  EXPECT_EQ(fi_close(&mr->fid), 0);
  DeviceBuffer memory(driver, 8192);
  const iovec beyond{memory.address, memory.size + 1};
  attr.mr_iov = &beyond;
  attr.iface = FI_HMEM_CUDA;
  EXPECT_EQ(fi_mr_regattr(a.domain, &attr, 0, &mr), -FI_EINVAL);
  if (!driver.is_stand_in()) return;  // a real driver's memory says itself which device it is of
  const iovec missing{memory.address, memory.size};
  attr.mr_iov = &missing;
  attr.device.cuda = 5;
  EXPECT_EQ(fi_mr_regattr(a.domain, &attr, 0, &mr), -FI_ENODEV);
}

/// FI_MR_DMABUF and its structure are newer than the headers.
constexpr std::uint64_t kDmabuf = std::uint64_t{1} << 40;
struct Dmabuf {
  int fd;
  std::uint64_t offset;
  std::size_t len;
  void* base_addr;
};

// Covers: FI-69
TEST_F(DeviceTest, dmabuf__is_registered_by_its_address) {
  open_with_device();
  DeviceBuffer local(driver, 8192), remote(driver, 8192);
  ASSERT_EQ(local.add(a.domain), 0);
  const Dmabuf file{.fd = -1, .offset = 4096, .len = 4096, .base_addr = remote.address};
  fi_mr_attr attr{};
  attr.mr_iov = reinterpret_cast<const iovec*>(&file);
  attr.iov_count = 1;
  attr.access = FI_REMOTE_WRITE;
  attr.iface = FI_HMEM_CUDA;
  ASSERT_EQ(fi_mr_regattr(b.domain, &attr, kDmabuf, &remote.mr), 0);
  const auto bytes = pattern(4096, 3);
  local.fill(bytes);
  ASSERT_EQ(fi_writedata(a.ep, local.address, 4096, local.desc(), 1, to_b, remote.at(4096),
                         fi_mr_key(remote.mr), nullptr),
            0);
  expect_success(b);
  expect_success(a);
  EXPECT_EQ(remote.bytes(4096, 4096), bytes);
  ASSERT_EQ(fi_write(a.ep, local.address, 8, local.desc(), to_b, remote.at(4088),
                     fi_mr_key(remote.mr), nullptr),
            0);
  EXPECT_TRUE(wait_for(a).failed) << "it begins at base_addr and offset";
}

// Covers: FI-68
TEST_F(DeviceTest, dmabuf__without_an_address_or_of_the_cpu_is_refused) {
  open_with_device();
  DeviceBuffer memory(driver, 8192);
  Dmabuf file{.fd = -1, .offset = 0, .len = 8192, .base_addr = nullptr};
  fi_mr_attr attr{};
  attr.mr_iov = reinterpret_cast<const iovec*>(&file);
  attr.iov_count = 1;
  attr.access = FI_SEND;
  attr.iface = FI_HMEM_CUDA;
  fid_mr* mr = nullptr;
  EXPECT_EQ(fi_mr_regattr(a.domain, &attr, kDmabuf, &mr), -FI_EOPNOTSUPP);
  file.base_addr = memory.address;
  attr.iface = FI_HMEM_SYSTEM;
  EXPECT_EQ(fi_mr_regattr(a.domain, &attr, kDmabuf, &mr), -FI_EOPNOTSUPP);
  attr.iface = FI_HMEM_CUDA;
  attr.iov_count = 1000;
  EXPECT_EQ(fi_mr_regattr(a.domain, &attr, kDmabuf, &mr), -FI_EINVAL);
}

/// fi_mr(3): attr.iface means something to programs with FI_HMEM only.
TEST_F(DeviceTest, registration__without_the_capability_ignores_the_interface) {
  open();
  char byte = 0;
  const iovec iov{&byte, 1};
  fi_mr_attr attr = sending(iov);
  attr.iface = FI_HMEM_CUDA;
  fid_mr* mr = nullptr;
  ASSERT_EQ(fi_mr_regattr(a.domain, &attr, 0, &mr), 0);
  EXPECT_EQ(fi_close(&mr->fid), 0);
}

// --- Data

// Covers: FI-69
TEST_F(DeviceTest, messages__of_all_sizes_arrive) {
  open_with_device();
  constexpr std::size_t kMost = 700'000;
  DeviceBuffer from(driver, kMost), to(driver, kMost);
  ASSERT_EQ(from.add(a.domain), 0);
  ASSERT_EQ(to.add(b.domain), 0);
  std::uint8_t seed = 0;
  for (const std::size_t n : {std::size_t{1}, std::size_t{100}, std::size_t{4096},
                              std::size_t{9000}, std::size_t{100'001}, kMost}) {
    for (const bool is_expected : {true, false}) {
      const auto bytes = pattern(n, ++seed);
      from.fill(bytes);
      const auto receive = [&] {
        ASSERT_EQ(fi_trecv(b.ep, to.address, n, to.desc(), FI_ADDR_UNSPEC, seed, 0, nullptr), 0);
      };
      if (is_expected) receive();
      ASSERT_EQ(fi_tsend(a.ep, from.address, n, from.desc(), to_b, seed, nullptr), 0);
      if (!is_expected) {
        expect_success(a);
        receive();
      }
      expect_success(b);
      EXPECT_EQ(to.bytes(n), bytes) << n << " bytes";
      if (is_expected) expect_success(a);
    }
  }
}

/// Read ahead of a send may not outlive it.
TEST_F(DeviceTest, buffer__that_changes_between_sends_is_read_again) {
  open_with_device();
  constexpr std::size_t kBytes = 50'000;
  DeviceBuffer from(driver, 4 * kBytes), to(driver, kBytes);
  ASSERT_EQ(from.add(a.domain), 0);
  ASSERT_EQ(to.add(b.domain), 0);
  for (std::uint8_t round = 0; round < 3; ++round) {
    const auto bytes = pattern(kBytes, round);
    from.fill(bytes);
    ASSERT_EQ(fi_recv(b.ep, to.address, kBytes, to.desc(), FI_ADDR_UNSPEC, nullptr), 0);
    ASSERT_EQ(fi_send(a.ep, from.address, kBytes, from.desc(), to_b, nullptr), 0);
    expect_success(b);
    expect_success(a);
    EXPECT_EQ(to.bytes(kBytes), bytes) << "round " << int{round};
  }
}

TEST_F(DeviceTest, many_messages_at_once__share_the_buffers) {
  open_with_device();
  constexpr std::size_t kMessages = 40, kBytes = 40'000;
  DeviceBuffer from(driver, kMessages * kBytes), to(driver, kMessages * kBytes);
  ASSERT_EQ(from.add(a.domain), 0);
  ASSERT_EQ(to.add(b.domain), 0);
  const auto bytes = pattern(kMessages * kBytes, 9);
  from.fill(bytes);
  for (std::size_t i = 0; i < kMessages; ++i)
    ASSERT_EQ(
        fi_trecv(b.ep, to.address + i * kBytes, kBytes, to.desc(), FI_ADDR_UNSPEC, i, 0, nullptr),
        0);
  for (std::size_t i = 0; i < kMessages; ++i)
    ASSERT_EQ(fi_tsend(a.ep, from.address + i * kBytes, kBytes, from.desc(), to_b, i, nullptr), 0);
  for (std::size_t i = 0; i < kMessages; ++i) {
    expect_success(b);
    expect_success(a);
  }
  EXPECT_EQ(to.bytes(bytes.size()), bytes);
}

TEST_F(DeviceTest, pieces__may_lie_in_both_memories) {
  open_with_device();
  DeviceBuffer from(driver, 8192), to(driver, 8192);
  ASSERT_EQ(from.add(a.domain), 0);
  ASSERT_EQ(to.add(b.domain), 0);
  const auto bytes = pattern(6000, 4);
  auto head = pattern(64, 5);
  from.fill(bytes);
  const iovec out[] = {{head.data(), head.size()}, {from.address, bytes.size()}};
  std::vector<std::uint8_t> in_head(64);
  const iovec in[] = {{in_head.data(), in_head.size()}, {to.address + 100, bytes.size()}};
  void* descs[] = {nullptr, to.desc()};
  ASSERT_EQ(fi_recvv(b.ep, in, descs, 2, FI_ADDR_UNSPEC, nullptr), 0);
  descs[1] = from.desc();
  ASSERT_EQ(fi_sendv(a.ep, out, descs, 2, to_b, nullptr), 0);
  expect_success(b);
  EXPECT_EQ(in_head, head);
  EXPECT_EQ(to.bytes(bytes.size(), 100), bytes);
}

TEST_F(DeviceTest, injected_bytes__may_change_at_once) {
  open_with_device();
  DeviceBuffer from(driver, 4096);
  ASSERT_EQ(from.add(a.domain), 0);
  const auto bytes = pattern(512, 6);
  std::vector<std::uint8_t> got(512);
  ASSERT_EQ(fi_recv(b.ep, got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  from.fill(bytes);
  ASSERT_EQ(fi_inject(a.ep, from.address, bytes.size(), to_b), 0);
  from.fill(pattern(512, 7));
  expect_success(b);
  EXPECT_EQ(got, bytes);
}

/// Open MPI 5 asks for FI_HMEM wherever it is on offer: that alone costs no program of the CPU's memory its short ways.
TEST_F(DeviceTest, before_the_first_region_of_a_device__memory_is_the_cpus) {
  const Variable manual("FI_UET_PROGRESS", "manual");  // b answers when it is polled
  open_with_device();
  constexpr std::uint64_t kLevel = FI_INJECT_COMPLETE | FI_COMPLETION;
  const auto post = [&](const std::vector<std::uint8_t>& bytes) {
    const iovec iov{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
    const fi_msg m{
        .msg_iov = &iov, .desc = nullptr, .iov_count = 1, .addr = to_b, .context = &a, .data = 0};
    return fi_sendmsg(a.ep, &m, kLevel);
  };
  const auto bytes = pattern(64, 4);
  fi_cq_tagged_entry entry{};
  ASSERT_EQ(post(bytes), 0);
  EXPECT_EQ(fi_cq_read(a.cq, &entry, 1), 1) << "it was copied by its call";
  DeviceBuffer memory(driver, 4096);
  ASSERT_EQ(memory.add(a.domain), 0);
  ASSERT_EQ(post(bytes), 0);
  EXPECT_EQ(fi_cq_read(a.cq, &entry, 1), -FI_EAGAIN) << "it may lie in the device";
  for (int i = 0; i < 2; ++i) {
    std::vector<std::uint8_t> in(64);
    ASSERT_EQ(fi_recv(b.ep, in.data(), in.size(), nullptr, to_a, nullptr), 0);
    expect_success(b);
    EXPECT_EQ(in, bytes);
  }
  expect_success(a);
}

TEST_F(DeviceTest, multi_receive__packs_messages_into_a_device) {
  open_with_device();
  DeviceBuffer to(driver, 64 * 1024);
  ASSERT_EQ(to.add(b.domain), 0);
  const iovec iov{to.address, to.size};
  void* desc = to.desc();
  const fi_msg buffer{.msg_iov = &iov,
                      .desc = &desc,
                      .iov_count = 1,
                      .addr = FI_ADDR_UNSPEC,
                      .context = nullptr,
                      .data = 0};
  ASSERT_EQ(fi_recvmsg(b.ep, &buffer, FI_MULTI_RECV), 0);
  for (std::uint8_t i = 0; i < 5; ++i) {
    const auto bytes = pattern(3000, i);
    ASSERT_EQ(fi_send(a.ep, bytes.data(), bytes.size(), nullptr, to_b, nullptr), 0);
    const Got got = wait_for(b);
    const std::size_t at =
        static_cast<std::size_t>(static_cast<std::uint8_t*>(got.entry.buf) - to.address);
    ASSERT_LT(at, to.size);
    EXPECT_EQ(to.bytes(bytes.size(), at), bytes);
    expect_success(a);
  }
}

// Covers: FI-69
TEST_F(DeviceTest, writes_and_reads__go_between_devices) {
  open_with_device();
  constexpr std::size_t kBytes = 300'000;
  DeviceBuffer local(driver, kBytes), remote(driver, kBytes);
  ASSERT_EQ(local.add(a.domain), 0);
  ASSERT_EQ(remote.add(b.domain), 0);
  const auto first = pattern(kBytes, 1), second = pattern(kBytes, 2);
  local.fill(first);
  ASSERT_EQ(fi_writedata(a.ep, local.address, kBytes, local.desc(), 0x55, to_b, remote.at(),
                         fi_mr_key(remote.mr), nullptr),
            0);
  EXPECT_EQ(wait_for(b).entry.data, 0x55u);
  EXPECT_EQ(remote.bytes(kBytes), first) << "in place when the target is told";
  expect_success(a);
  // The device itself changes it: no copy of ours may be older.
  remote.fill(second);
  ASSERT_EQ(fi_read(a.ep, local.address, kBytes, local.desc(), to_b, remote.at(),
                    fi_mr_key(remote.mr), nullptr),
            0);
  expect_success(a);
  EXPECT_EQ(local.bytes(kBytes), second);
  ASSERT_EQ(fi_write(a.ep, local.address, 100, local.desc(), to_b, remote.at(kBytes - 99),
                     fi_mr_key(remote.mr), nullptr),
            0);
  const Got beyond = wait_for(a);
  EXPECT_TRUE(beyond.failed);
  EXPECT_EQ(beyond.error.err, EFAULT);
}

/// The target is not told of a write by RUDI, so no completion of its own can bring the bytes into place.
TEST_F(DeviceTest, write_without_a_completion__is_in_place_when_the_loop_was_turned) {
  constexpr std::uint64_t kIdempotent = std::uint64_t{1} << 60;  // FI_UET_IDEMPOTENT
  open_with_device();
  DeviceBuffer remote(driver, 4096);
  const iovec whole{remote.address, remote.size};
  fi_mr_attr attr{};
  attr.mr_iov = &whole;
  attr.iov_count = 1;
  attr.access = FI_REMOTE_WRITE;
  attr.iface = FI_HMEM_CUDA;
  ASSERT_EQ(fi_mr_regattr(b.domain, &attr, kIdempotent, &remote.mr), 0);
  auto bytes = pattern(1000, 3);
  const iovec iov{bytes.data(), bytes.size()};
  const fi_rma_iov range{remote.at(), bytes.size(), fi_mr_key(remote.mr)};
  fi_msg_rma write{};
  write.msg_iov = &iov;
  write.iov_count = 1;
  write.addr = to_b;
  write.rma_iov = &range;
  write.rma_iov_count = 1;
  ASSERT_EQ(fi_writemsg(a.ep, &write, FI_COMPLETION | kIdempotent), 0);
  expect_success(a);
  EXPECT_EQ(remote.bytes(bytes.size()), bytes);
}

/// The rest of such a message is read by its receiver, out of the sender's device.
TEST_F(DeviceTest, rendezvous__reads_from_a_device) {
  const Variable on("FI_UET_RENDEZVOUS", "1"), from_bytes("FI_UET_RENDEZVOUS_FROM", "20000");
  open_with_device();
  constexpr std::size_t kBytes = 150'000;
  DeviceBuffer from(driver, kBytes), to(driver, kBytes);
  ASSERT_EQ(from.add(a.domain), 0);
  ASSERT_EQ(to.add(b.domain), 0);
  const auto bytes = pattern(kBytes, 2);
  from.fill(bytes);
  ASSERT_EQ(fi_tsend(a.ep, from.address, kBytes, from.desc(), to_b, 1, nullptr), 0);
  ASSERT_EQ(fi_trecv(b.ep, to.address, kBytes, to.desc(), FI_ADDR_UNSPEC, 1, 0, nullptr), 0);
  expect_success(b);
  expect_success(a);
  EXPECT_EQ(to.bytes(kBytes), bytes);
}

// Covers: FI-69
TEST_F(DeviceTest, atomics__work_on_a_device) {
  open_with_device();
  DeviceBuffer local(driver, 4096), remote(driver, 4096);
  ASSERT_EQ(local.add(a.domain), 0);
  ASSERT_EQ(remote.add(b.domain), 0);
  const std::uint64_t key = fi_mr_key(remote.mr);
  constexpr std::size_t kCount = 100;
  for (std::size_t i = 0; i < kCount; ++i) {
    local.set_word(i, i);
    remote.set_word(i, 1000);
  }
  ASSERT_EQ(fi_atomic(a.ep, local.address, kCount, local.desc(), to_b, remote.at(), key, FI_UINT64,
                      FI_SUM, nullptr),
            0);
  expect_success(a);
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_EQ(remote.word(i), 1000 + i);

  local.set_word(0, 7);
  ASSERT_EQ(fi_fetch_atomic(a.ep, local.address, 1, local.desc(), local.address + 512, local.desc(),
                            to_b, remote.at(8), key, FI_UINT64, FI_SUM, nullptr),
            0);
  expect_success(a);
  EXPECT_EQ(local.word(64), 1001u);
  EXPECT_EQ(remote.word(1), 1008u);

  local.set_word(1, 1008);  // compare
  ASSERT_EQ(fi_compare_atomic(a.ep, local.address, 1, local.desc(), local.address + 8, local.desc(),
                              local.address + 512, local.desc(), to_b, remote.at(8), key, FI_UINT64,
                              FI_CSWAP, nullptr),
            0);
  expect_success(a);
  EXPECT_EQ(local.word(64), 1008u);
  EXPECT_EQ(remote.word(1), 7u);
}

TEST_F(DeviceTest, datagrams__come_from_a_device) {
  const Info hints = make_hints();
  hints->ep_attr->type = FI_EP_DGRAM;
  hints->caps = FI_MSG | FI_HMEM;
  hints->domain_attr->mr_mode = FI_MR_HMEM;
  open(hints.get());
  DeviceBuffer from(driver, 4096), to(driver, 4096);
  ASSERT_EQ(from.add(a.domain, FI_SEND), 0);
  ASSERT_EQ(to.add(b.domain, FI_RECV), 0);
  const auto bytes = pattern(1000, 8);
  from.fill(bytes);
  ASSERT_EQ(fi_recv(b.ep, to.address, 4096, to.desc(), FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(a.ep, from.address, bytes.size(), from.desc(), to_b, nullptr), 0);
  expect_success(b);
  EXPECT_EQ(to.bytes(bytes.size()), bytes);
}

// --- When the driver refuses

// Covers: FI-70
TEST_F(RefusalTest, copy__fails_the_operation_and_those_after_it) {
  open_with_device();
  DeviceBuffer to(driver, 8192);
  ASSERT_EQ(to.add(b.domain), 0);
  const auto bytes = pattern(5000, 1);
  ASSERT_EQ(fi_recv(b.ep, to.address, to.size, to.desc(), FI_ADDR_UNSPEC, nullptr), 0);
  driver.fail_after(0);
  ASSERT_EQ(fi_send(a.ep, bytes.data(), bytes.size(), nullptr, to_b, nullptr), 0);
  const Got got = wait_for(b);
  EXPECT_TRUE(got.failed);
  EXPECT_EQ(got.error.err, EIO);
  EXPECT_EQ(fi_recv(b.ep, to.address, to.size, to.desc(), FI_ADDR_UNSPEC, nullptr), -FI_EIO);
  // Memory of the CPU is as good as before.
  std::vector<std::uint8_t> plain(bytes.size());
  ASSERT_EQ(fi_recv(b.ep, plain.data(), plain.size(), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  expect_next_message(plain);
}

// Covers: FI-70
TEST_F(RefusalTest, copy__of_a_source_fails_its_operation_and_delivers_nothing) {
  open_with_device();
  DeviceBuffer from(driver, 8192);
  ASSERT_EQ(from.add(a.domain), 0);
  std::vector<std::uint8_t> plain(5000);
  ASSERT_EQ(fi_recv(b.ep, plain.data(), plain.size(), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  driver.fail_after(0);
  ASSERT_EQ(fi_send(a.ep, from.address, plain.size(), from.desc(), to_b, nullptr), 0);
  EXPECT_EQ(wait_for(a).error.err, EIO);
  expect_next_message(plain);
}

/// The target's program hears that what a peer wrote is not there.
TEST_F(RefusalTest, copy__of_a_peers_write_is_told_to_its_target) {
  open_with_device();
  DeviceBuffer to(driver, 8192);
  ASSERT_EQ(to.add(b.domain), 0);
  const auto bytes = pattern(5000, 1);
  driver.fail_after(0);
  ASSERT_EQ(fi_writedata(a.ep, bytes.data(), bytes.size(), nullptr, 1, to_b, to.at(),
                         fi_mr_key(to.mr), nullptr),
            0);
  EXPECT_TRUE(wait_for(b).failed);
  EXPECT_EQ(wait_for(a).error.err, EIO) << "and the peer's";
}

TEST_F(RefusalTest, copy__for_a_peer_that_reads_fails_the_read) {
  open_with_device();
  DeviceBuffer from(driver, 65536);
  ASSERT_EQ(from.add(b.domain), 0);
  std::vector<std::uint8_t> plain(from.size);
  driver.fail_after(0);
  for (const std::size_t n : {std::size_t{8}, from.size}) {  // by an ACK, and as read data
    ASSERT_EQ(fi_read(a.ep, plain.data(), n, nullptr, to_b, from.at(), fi_mr_key(from.mr), nullptr),
              0);
    EXPECT_EQ(wait_for(a).error.err, EIO) << n;
  }
}

}  // namespace
}  // namespace uet::provider::testing
