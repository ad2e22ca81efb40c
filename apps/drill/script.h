/// A packet script as it stands in its file: what it is about, and its steps.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "lib/base/units.h"

namespace uet::drill {

struct Step {
  unsigned line = 0;
  std::string text;                ///< as written, without comment
  std::vector<std::string> words;  ///< at least one
};

struct Script {
  std::string name;                ///< of the file, without folder and ending
  std::string title;               ///< empty: the script has none
  std::vector<std::string> items;  ///< of the checklists: "PDS-17"
  std::string says;                ///< what the specification says, in our words
  std::vector<std::string> needs;  ///< capabilities of the endpoint: "memory", "initiator"
  bool is_live = false;  ///< made for endpoints at an address: expected packets may take their time
  bool is_contact = false;    ///< played also where the endpoint has given no sign of life
  bool is_reference = false;  ///< what the consortium's reference needs, where the text leaves room
  base::Duration patience;    ///< for an expected packet at least; 0: the usual
  std::string wrong;          ///< what is wrong with the head
  std::vector<Step> settings;  ///< `set NAME VALUE` and `layer pds`: of the virtual harness only
  std::vector<Step> steps;
};

/// The head is `live`, `title TEXT`, `item ITEM...`, `says TEXT`, `needs CAPABILITY...`, `patience TIME`, `reference`, `contact` and settings, in any
/// order; the first other word begins the steps. `path` gives the name, and the item where no line does.
Script read_script(std::istream& in, const std::string& path);

}  // namespace uet::drill
