/// The items of docs/checklists by their number.
#pragma once

#include <string_view>

namespace uet::drill {

struct ChecklistItem {
  std::string_view item, title;
};

/// Null when there is none of that number.
const ChecklistItem* find_item(std::string_view item);

}  // namespace uet::drill
