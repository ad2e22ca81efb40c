#include "apps/dump/ring.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

namespace uet::dump {

namespace {

constexpr std::uint64_t kFilesMax = 10'000;

/// What the head of a file says; the file is back at its beginning afterwards.
std::optional<wire::CapturePart> part_of(std::FILE* file) {
  class Head final : public wire::ByteSource {
   public:
    explicit Head(std::FILE* f) : file_(f) {}
    std::size_t read(std::span<std::uint8_t> out) override {
      return std::fread(out.data(), 1, out.size(), file_);
    }

   private:
    std::FILE* file_;
  } head(file);
  wire::CaptureReader reader(head);
  wire::CapturedPacket first;
  reader.next(first);
  std::rewind(file);
  return wire::CapturePart::parse(reader.section_comment());
}

}  // namespace

bool CaptureFiles::open(const std::string& path) {
  files_.emplace_back(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (files_.front() == nullptr) return false;
  struct stat what {};
  if (fstat(fileno(files_.front().get()), &what) == 0 && S_ISDIR(what.st_mode)) {
    errno = EISDIR;  // fopen takes folders, which then read as if they were empty
    return false;
  }
  if (std::fseek(files_.front().get(), 0, SEEK_CUR) != 0) return true;  // a pipe
  auto newest = part_of(files_.front().get());
  if (!newest) return true;
  for (std::uint64_t back = 1; back < std::min(newest->files, kFilesMax); ++back) {
    File older(std::fopen((path + '.' + std::to_string(back)).c_str(), "rb"));
    const auto part = older == nullptr ? std::nullopt : part_of(older.get());
    if (!part || part->capture != newest->capture || part->part + back != newest->part) break;
    packets_missing_ = part->packets_before;
    files_.push_back(std::move(older));
  }
  if (files_.size() == 1) packets_missing_ = newest->packets_before;
  std::reverse(files_.begin(), files_.end());
  return true;
}

std::size_t CaptureFiles::read(std::span<std::uint8_t> out) {
  std::size_t got = 0;
  while (got < out.size() && at_ < files_.size()) {
    const std::size_t n = std::fread(out.data() + got, 1, out.size() - got, files_[at_].get());
    got += n;
    if (n == 0) ++at_;
  }
  return got;
}

}  // namespace uet::dump
