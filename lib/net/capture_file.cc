#include "lib/net/capture_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "lib/base/cancellation.h"
#include "lib/wire/capture_part.h"

namespace uet::net {

std::unique_ptr<CaptureFile> CaptureFile::open(const CaptureFileConfig& config,
                                               std::string& error) {
  if (auto file = OutputFile::open(config.path))
    return std::unique_ptr<CaptureFile>(new CaptureFile(config, std::move(file)));
  error = "cannot write the capture " + config.path + ": " + std::strerror(errno);
  return nullptr;
}

CaptureFile::CaptureFile(const CaptureFileConfig& config, std::unique_ptr<OutputFile> file)
    : config_(config), file_(std::move(file)) {
  begin_part();
}

/// The head of a file, which waits with the packets behind it where the disk is full.
void CaptureFile::begin_part() {
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
  file_->write(block_);
  bytes_in_file_ = block_.size();
}

/// The current file becomes path.1, path.1 becomes path.2, and the oldest is overwritten.
void CaptureFile::rotate() {
  const std::string path = file_->path();
  for (unsigned i = config_.files - 1; i > 0; --i) {
    const std::string from = i == 1 ? path : path + '.' + std::to_string(i - 1);
    std::rename(from.c_str(), (path + '.' + std::to_string(i)).c_str());
  }
  // Only now: before, another endpoint could take the file for one without a writer.
  file_->close();
  if (file_->reopen()) begin_part();
}

void CaptureFile::write(const wire::PacketRecord& record) {
  const base::WithoutCancellation without_cancellation;
  if (!file_->is_open() && file_->reopen()) begin_part();
  wire::PacketRecord kept = record;
  if (config_.snap_bytes != 0 && record.data.size() > config_.snap_bytes) {
    kept.wire_length = std::max(record.wire_length, record.data.size());
    kept.data = record.data.first(config_.snap_bytes);
  }
  kept.lost_before = lost_before_;
  const auto make_block = [&] {
    block_.clear();
    wire::append_packet(block_, kept);
  };
  make_block();
  // While the disk is full a file is not ended: what waits for room in it would be lost.
  if (file_->is_open() && bytes_in_file_ + block_.size() > config_.file_bytes_max &&
      packets_written_ > 0 && file_->flush()) {
    rotate();
    make_block();  // the head of the file took the buffer
  }
  if (!file_->write(block_)) {
    ++packets_lost_;
    ++lost_before_;
    return;
  }
  bytes_in_file_ += block_.size();
  ++packets_written_;
  lost_before_ = 0;
}

}  // namespace uet::net
