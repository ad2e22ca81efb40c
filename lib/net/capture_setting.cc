#include "lib/base/quantity.h"
#include "lib/net/capture_file.h"

namespace uet::net {

namespace {

constexpr const char* kKnownParts =
    "write path[,size=64M][,files=4][,snap=256]: bytes of a file, files kept, bytes kept of a "
    "packet";

/// A number with k, M or G behind it, within [least, most].
bool parse_bytes(std::string_view text, std::uint64_t least, std::uint64_t most,
                 std::uint64_t& out) {
  const auto value = base::parse_byte_size(text, most);
  if (!value || *value < least) return false;
  out = *value;
  return true;
}

bool parse_key(std::string_view key, std::string_view value, CaptureFileConfig& config) {
  std::uint64_t number = 0;
  if (key == "size")
    return parse_bytes(value, CaptureFileConfig::kFileBytesMin, CaptureFileConfig::kFileBytesMax,
                       config.file_bytes_max);
  if (key == "files") {
    if (!parse_bytes(value, 1, CaptureFileConfig::kFilesMax, number)) return false;
    config.files = static_cast<unsigned>(number);
    return true;
  }
  if (key == "snap") {
    if (!parse_bytes(value, CaptureFileConfig::kSnapMin, CaptureFileConfig::kSnapMax, number))
      return false;
    config.snap_bytes = static_cast<std::uint32_t>(number);
    return true;
  }
  return false;
}

}  // namespace

bool CaptureFileConfig::parse(std::string_view text, CaptureFileConfig& config,
                              std::string& error) {
  const std::size_t path_end = std::min(text.find(','), text.size());
  config.path = text.substr(0, path_end);
  text.remove_prefix(std::min(path_end + 1, text.size()));
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    const std::size_t equals = std::min(part.find('='), part.size());
    if (equals == part.size() ||
        !parse_key(part.substr(0, equals), part.substr(equals + 1), config)) {
      error = "'" + std::string(part) + "' is no setting of a capture or out of its bounds; " +
              kKnownParts;
      return false;
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  if (!config.path.empty()) return true;
  error = std::string("a capture needs a path; ") + kKnownParts;
  return false;
}

}  // namespace uet::net
