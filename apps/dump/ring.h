/// The files of a capture, oldest first: a ring is read as one, and what it has lost is known.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "lib/wire/capture_part.h"
#include "lib/wire/capture_reader.h"

namespace uet::dump {

struct CloseFile {
  void operator()(std::FILE* f) const {
    if (f != stdin) std::fclose(f);
  }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

/// Behind the newest file of a ring of ours, `path`, the older ones of the same capture are found by their names. A file
/// that is no such file, and standard input ("-"), are read alone.
class CaptureFiles final : public wire::ByteSource {
 public:
  /// False when `path` cannot be opened: errno says why.
  bool open(const std::string& path);
  std::size_t read(std::span<std::uint8_t> out) override;

  std::size_t count() const { return files_.size(); }
  /// Packets that were overwritten before the first one here, as the head of the oldest file tells; 0 for other programs' files.
  std::uint64_t packets_missing() const { return packets_missing_; }

 private:
  std::vector<File> files_;
  std::size_t at_ = 0;
  std::uint64_t packets_missing_ = 0;
};

}  // namespace uet::dump
