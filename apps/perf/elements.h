/// The elements that a collective operation moves and reduces: their type, and the reduction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace uet::perf {

inline constexpr std::string_view kElementTypes[] = {"float", "double", "int32"};
inline constexpr std::string_view kReductions[] = {"sum", "max", "min"};

/// Values that tests put in are small whole numbers, so that a sum is exact in every type and in every order.
class Elements {
 public:
  /// Null for a name that is in neither list.
  static std::optional<Elements> of(std::string_view type, std::string_view reduction);

  std::size_t bytes() const { return bytes_; }
  std::string_view type() const { return type_; }
  std::string_view reduction() const { return reduction_; }
  /// `into[i]` becomes the reduction of itself and `from[i]`.
  void reduce(std::uint8_t* into, const std::uint8_t* from, std::size_t count) const {
    reduce_(into, from, count);
  }
  double reduced(double a, double b) const;
  void store(std::uint8_t* at, double value) const;
  double load(const std::uint8_t* at) const;

 private:
  using Reduce = void (*)(std::uint8_t*, const std::uint8_t*, std::size_t);
  Elements(std::string_view type, std::string_view reduction, std::size_t bytes,
           Reduce reduction_of_type)
      : type_(type), reduction_(reduction), bytes_(bytes), reduce_(reduction_of_type) {}

  std::string_view type_, reduction_;
  std::size_t bytes_;
  Reduce reduce_;
};

}  // namespace uet::perf
