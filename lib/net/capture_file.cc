#include "lib/net/capture_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/base/cancellation.h"
#include "lib/net/output_file.h"
#include "lib/wire/capture_part.h"

namespace uet::net {

std::unique_ptr<CaptureFile> CaptureFile::open(const CaptureFileConfig& config,
                                               std::string& error) {
  std::unique_ptr<CaptureFile> capture(new CaptureFile(config));
  if (capture->start_file()) return capture;
  error = "cannot write the capture " + config.path + ": " + std::strerror(errno);
  return nullptr;
}

CaptureFile::~CaptureFile() {
  if (file_ != nullptr) std::fclose(file_);
}

bool CaptureFile::start_file() {
  auto out = open_output_file(config_.path);
  bytes_in_file_ = 0;
  if (!out) return false;
  file_ = out->file;
  config_.path = std::move(out->path);
  block_.clear();
  const std::string comment = wire::CapturePart{.capture = config_.started_ns,
                                                .part = ++part_,
                                                .files = config_.files,
                                                .packets_before = packets_written_}
                                  .to_comment();
  wire::append_file_start(block_, {.link = wire::LinkType::kEthernet,
                                   .application = "uet",
                                   .interface_name = config_.interface_name,
                                   .comment = comment,
                                   .snap_length = config_.snap_bytes});
  put(block_);
  return file_ != nullptr;
}

/// The current file becomes path.1, path.1 becomes path.2, and the oldest is overwritten.
void CaptureFile::rotate() {
  for (unsigned i = config_.files - 1; i > 0; --i) {
    const std::string from = i == 1 ? config_.path : config_.path + '.' + std::to_string(i - 1);
    std::rename(from.c_str(), (config_.path + '.' + std::to_string(i)).c_str());
  }
  // Only now: before, another endpoint could take the file for one without a writer.
  std::fclose(std::exchange(file_, nullptr));
  start_file();
}

void CaptureFile::write(const wire::PacketRecord& record) {
  const base::WithoutCancellation without_cancellation;
  if (file_ == nullptr) {
    ++packets_lost_;
    return;
  }
  block_.clear();
  wire::PacketRecord kept = record;
  if (config_.snap_bytes != 0 && record.data.size() > config_.snap_bytes) {
    kept.wire_length = std::max(record.wire_length, record.data.size());
    kept.data = record.data.first(config_.snap_bytes);
  }
  wire::append_packet(block_, kept);
  if (bytes_in_file_ + block_.size() > config_.file_bytes_max && packets_written_ > 0) {
    const std::vector<std::uint8_t> keep = block_;  // start_file() uses the buffer
    rotate();
    block_ = keep;
  }
  put(block_);
  if (file_ == nullptr)
    ++packets_lost_;
  else
    ++packets_written_;
}

void CaptureFile::put(const std::vector<std::uint8_t>& bytes) {
  if (file_ == nullptr) return;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) {
    std::fclose(file_);
    file_ = nullptr;
    return;
  }
  bytes_in_file_ += bytes.size();
  has_unflushed_ = true;
}

void CaptureFile::abandon_in_child() {
  net::abandon_in_child(std::exchange(file_, nullptr));
}

void CaptureFile::flush() {
  if (file_ == nullptr || !has_unflushed_) return;
  const base::WithoutCancellation without_cancellation;
  std::fflush(file_);
  has_unflushed_ = false;
}

}  // namespace uet::net
