#include "apps/drill/checklist.h"

namespace uet::drill {

namespace {

constexpr ChecklistItem kItems[] = {
#include "apps/drill/checklist_table.inc"
};

}  // namespace

const ChecklistItem* find_item(std::string_view item) {
  for (const ChecklistItem& i : kItems)
    if (i.item == item) return &i;
  return nullptr;
}

}  // namespace uet::drill
